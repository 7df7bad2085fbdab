"""Layout inference: every thread finds what it reads, and every owner is told what is written.

The kernels run on the block machine. Its registers begin as NaN, so that a thread which reads an
element that it does not hold, or that was written in another owner only, spoils the result.
"""

from __future__ import annotations

import pytest
from inferred import access_faults, inferred
from lowered import run_program
from matrix_programs import attention, chained, product
from tile_programs import PROGRAMS

import tilelang.language as T

#: Rows, columns and threads: powers of two, odd extents, threads that are no whole warps.
SIZES = [(16, 192, 128), (8, 229, 96), (4, 257, 33), (33, 3, 64)]
P = T.GemmWarpPolicy


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_tiles_of_any_extent(name, size):
    run_program(PROGRAMS[name](*size))


@pytest.mark.parametrize("size", [(5, 7, 48), (4, 12, 32)], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_accesses_of_tiles_element_by_element(name, size):
    assert access_faults(PROGRAMS[name](*size)) == []


@pytest.mark.parametrize(
    "program",
    [product(32, 16, 16, 64), product(16, 16, 16, 64, a_tile=True, turn_a=True), chained(16, 32)],
)
def test_accesses_around_products_element_by_element(program):
    assert access_faults(program) == []


MATRIX = {
    **{
        f"turn {a}{b}{tile}": product(
            64, 32, 32, 64, turn_a=bool(a), turn_b=bool(b), a_tile=bool(tile)
        )
        for a in (0, 1)
        for b in (0, 1)
        for tile in (0, 1)
    },
    **{
        f"{policy.name} {threads}": product(64, 96, 16, threads, policy=policy)
        for policy in (P.Square, P.FullRow, P.FullCol)
        for threads in (96, 128)
    },
    "one instruction": product(16, 8, 8, 32),
    "idle warps": product(16, 8, 16, 256),
    "no instruction": product(7, 9, 5, 64),
    "part of a warp": product(20, 20, 20, 33),
    "narrow result": product(32, 32, 32, 64, out="float16"),
    "int8": product(32, 32, 64, 64, dtype="int8", out="int32", turn_b=True),
    "float64": product(32, 32, 16, 64, dtype="float64", out="float64"),
    "tf32": product(32, 32, 16, 64, dtype="float32"),
    "attention": attention(64, 32, 32, 64),
    "attention across": attention(32, 32, 32, 64, P.FullCol),
    "attention on 48 threads": attention(8, 8, 8, 48),
    "chain": chained(32, 64),
    "chain on three warps": chained(48, 96),
}


@pytest.mark.parametrize("name", MATRIX)
def test_matrix_products_and_what_is_around_them(name):
    run_program(MATRIX[name])


@pytest.mark.parametrize(
    ("arch", "options"),
    [
        ("sm_75", {}), ("sm_75", {"dtype": "int8", "out": "int32"}), ("sm_70", {}),
        ("sm_89", {"dtype": "float8_e4m3fn", "turn_b": True}), ("sm_90a", {"dtype": "bfloat16"}),
    ],
)  # fmt: skip
def test_products_of_every_architecture(arch, options):
    run_program(product(32, 16, 32, 64, **options), arch)


SPILLS = {
    "turned": False, "square_and_turn": True, "neighbours": True, "scalar_element": True,
    "slices": True, "row_softmax": False, "column_sums": False, "bias_row": False,
    "accumulated": False, "three_axes": False, "staged": False,
}  # fmt: skip


@pytest.mark.parametrize("name", SPILLS)
def test_only_tiles_whose_uses_disagree_move(name):
    """They have a reason, which the kernel's notes give."""
    _, found, notes = inferred(PROGRAMS[name](16, 64, 64))
    assert bool(found.spilled) == SPILLS[name]
    assert all(reason for reason in found.spilled.values())
    for tile, reason in found.spilled.items():
        assert any(str(tile.name) in note and reason in note for note in notes)


def test_attention_keeps_all_of_its_tiles():
    assert inferred(attention(64, 64, 32, 128))[1].spilled == {}
