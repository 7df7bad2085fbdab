"""Every op of the records on the CPU targets and as emulated CUDA, cell by cell, against the
interpreter.

The slow cells complete the matrix: ``pytest testing/cells -m slow``.
"""

from __future__ import annotations

import fnmatch

import pytest
from tvm.ir import Call
from tvm_ffi import structural_walk

from testing.cells.cell import Cell
from testing.cells.emulated import EXCLUDED, emulated, excluded
from testing.cells.intrinsics import cpu_intrinsics, intrinsic_cells
from testing.cells.run import check_cells, program_of
from testing.cells.tile_ops import TILE_CELLS, tile_cells
from tilelang.errors import TileLangError
from tilelang.ir.op import TileCall, tile_ops

TILE_OPS = [op.name for op in tile_ops()]
INTRINSICS = [record.name for record in cpu_intrinsics()]
_RECORDS = {record.name: record for record in cpu_intrinsics()}


def all_cells() -> list[Cell]:
    cells = [cell for make in TILE_CELLS for cell in make()]
    return cells + [cell for record in cpu_intrinsics() for cell in intrinsic_cells(record)]


def fast(cells: list[Cell]) -> list[Cell]:
    return [cell for cell in cells if not cell.slow]


def sample(cells: list[Cell], count: int) -> list[Cell]:
    """Cells spread evenly over the list."""
    step = max(1, len(cells) // count)
    return cells[::step]


@pytest.mark.parametrize("op", TILE_OPS)
def test_tile_ops_on_llvm(op):
    check_cells(fast(tile_cells(op)), "llvm")


@pytest.mark.parametrize("op", TILE_OPS)
def test_tile_ops_as_c(op):
    check_cells(sample(fast(tile_cells(op)), 12), "c")


@pytest.mark.parametrize("op", TILE_OPS)
def test_tile_ops_in_emulated_cuda(op):
    check_cells(sample(emulated(fast(tile_cells(op))), 8), "emulator")


def groups_of_intrinsics() -> dict[str, list[str]]:
    """Intrinsics that share programs: one dozen a group, by position in the table."""
    names = [INTRINSICS[i : i + 12] for i in range(0, len(INTRINSICS), 12)]
    return {f"{group[0]}..{group[-1]}": group for group in names}


@pytest.mark.parametrize(
    "group", groups_of_intrinsics().values(), ids=groups_of_intrinsics().keys()
)
def test_intrinsics_on_llvm(group):
    check_cells([c for name in group for c in fast(list(intrinsic_cells(_RECORDS[name])))], "llvm")


@pytest.mark.parametrize(
    "group", groups_of_intrinsics().values(), ids=groups_of_intrinsics().keys()
)
def test_intrinsics_as_c(group):
    check_cells([fast(list(intrinsic_cells(_RECORDS[name])))[0] for name in group], "c")


@pytest.mark.parametrize(
    "group", groups_of_intrinsics().values(), ids=groups_of_intrinsics().keys()
)
def test_intrinsics_in_emulated_cuda(group):
    cells = [emulated(fast(list(intrinsic_cells(_RECORDS[name])))) for name in group]
    check_cells([found[0] for found in cells if found], "emulator")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["llvm", "c", "emulator"])
@pytest.mark.parametrize("op", TILE_OPS)
def test_all_tile_cells(op, target):
    cells = tile_cells(op)
    check_cells(emulated(cells) if target == "emulator" else cells, target)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["llvm", "c", "emulator"])
@pytest.mark.parametrize("name", INTRINSICS)
def test_all_intrinsic_cells(name, target):
    cells = list(intrinsic_cells(_RECORDS[name]))
    check_cells(emulated(cells) if target == "emulator" else cells, target)


@pytest.mark.slow
@pytest.mark.parametrize("cell", excluded(all_cells()), ids=lambda cell: cell.label)
def test_excluded_cells_do_not_work_yet(cell):
    """One that works meanwhile has to come in."""
    with pytest.raises((AssertionError, TileLangError)):
        check_cells([cell], "emulator")


def test_exclusions_name_cells():
    for pattern in EXCLUDED:
        assert any(fnmatch.fnmatch(cell.label, pattern) for cell in all_cells()), pattern


# --- completeness -------------------------------------------------------------------------------


def test_every_tile_op_has_cells():
    covered = {cell.op for make in TILE_CELLS for cell in make()}
    assert covered == set(TILE_OPS)


def test_every_intrinsic_of_the_cpu_has_cells():
    without = [r.name for r in cpu_intrinsics() if not fast(list(intrinsic_cells(r)))]
    assert not without


def test_cells_have_names_of_their_own():
    labels = [cell.label for cell in all_cells()]
    assert len(labels) == len(set(labels))


@pytest.mark.parametrize("op", TILE_OPS)
def test_cells_use_every_option_and_operand_of_a_tile_op(op):
    """A field of the record that no cell sets, or an operand none leaves out, is untested."""
    calls = []

    def on_call(call):
        found = TileCall.of(call)
        if found is not None and found.name == op:
            calls.append(found)

    for cell in tile_cells(op):
        structural_walk(program_of([cell]).body, (Call, on_call))
    record = calls[0].op
    for field in _fields(record):
        values = {repr(getattr(call.attrs, field)) for call in calls}
        fixed = field in _FIXED.get(op, ())
        assert len(values) == 1 if fixed else len(values) > 1, f"cells have {field} in {values}"
    for operand in record.operands:
        if operand.optional and operand.name not in _FIXED.get(op, ()):
            assert {call.get(operand.name) is None for call in calls} == {True, False}


# What only GPUs take (testing/python tests the refusal), and a field of a record shared by two ops.
_FIXED = {"atomic": ("use_tma",), "gemm": ("mbar",), "reducer_init": ("batch",)}


def _fields(record):
    return [field.name for field in record.attrs.__tvm_ffi_type_info__.fields]
