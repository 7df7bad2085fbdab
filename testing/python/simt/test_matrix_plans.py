"""Plans of matrix products: operands lie in the registers that their instruction reads."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import tirx as T

from tilelang.cuda.intrinsics.mma_rows import ELEMENT_BITS, find_mma_rows, mma_row
from tilelang.cuda.op.gemm_plan import GemmPlan, Instruction
from tilelang.cuda.op.storage import _swizzled
from tilelang.transform.simt.defaults import keeps_vectors

ACCUMULATORS = {"f32": "float32", "f16": "float16", "f64": "float64", "s32": "int32"}


def instructions():
    """Every instruction a plan may use."""
    pairs = [("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("tf32", "f32"), ("f64", "f64"),
             ("s8", "s32"), ("u8", "s32"), ("e4m3", "f32"), ("e5m2", "f32")]  # fmt: skip
    for a, c in pairs:
        for row in find_mma_rows(c, a, a, 90):
            yield Instruction(row.m, row.n, row.k, a, a, c, ACCUMULATORS[c])


@pytest.mark.parametrize("step", list(instructions()), ids=lambda step: step.name)
@pytest.mark.parametrize("warps", [(1, 1), (2, 2), (1, 3)], ids=str)
def test_registers_of_every_instruction(step, warps):
    """Of each warp, each tile and each step along k: lane, register and element agree."""
    row = mma_row(step.name)
    down, across = warps
    plan = GemmPlan(step, step.m * 2 * down, step.n * 2 * across, step.k * 2, down, across)
    assert (plan.m_tiles, plan.n_tiles, plan.k_tiles) == (2, 2, 2)
    assert (step.a_elements, step.b_elements, step.c_elements) == row.elements
    for warp in range(down * across):
        top, left = warp % down * plan.m // down, warp // down * plan.n // across
        for lane in range(0, 32, 3):
            thread = warp * 32 + lane
            for tile in range(2):
                for k in range(2):
                    for e in range(row.elements[0]):
                        i, j = row.a_position(lane, e)
                        index = (top + tile * step.m + i, k * step.k + j)
                        holds(plan.a, index, thread, (tile * 2 + k) * row.elements[0] + e)
                    for e in range(row.elements[1]):
                        i, j = row.b_position(lane, e)
                        index = (k * step.k + i, left + tile * step.n + j)
                        holds(plan.b, index, thread, (tile * 2 + k) * row.elements[1] + e)
                for other in range(2):
                    for e in range(row.elements[2]):
                        i, j = row.d_position(lane, e)
                        index = (top + tile * step.m + i, left + other * step.n + j)
                        holds(plan.c, index, thread, (tile * 2 + other) * row.elements[2] + e)


def holds(tile, index, thread, slot):
    assert tile.slot_of(index) == slot
    for part in tile.threads:
        if part.axis >= 0:
            digit = index[part.axis] // part.divisor % part.extent
            assert thread // part.stride % part.extent == digit


@pytest.mark.parametrize("step", list(instructions()), ids=lambda step: step.name)
def test_registers_fill_the_words_of_an_instruction(step):
    row = mma_row(step.name)
    bits = ELEMENT_BITS[step.a]
    assert [step.a_elements * bits // 32, step.b_elements * bits // 32] == list(row.registers[:2])


@pytest.mark.parametrize(
    ("dtype", "columns"),
    [("float16", 32), ("float16", 64), ("float16", 128), ("int8", 64), ("float32", 32)],
)
def test_swizzled_tiles_have_no_bank_conflicts(dtype, columns):
    """Eight rows that ``ldmatrix`` reads at once lie in eight different groups of four banks."""
    buffer = T.decl_buffer((64, columns), dtype, "S", scope="shared.dyn", layout=None)
    layout = _swizzled(buffer)
    size = np.dtype(dtype).itemsize
    piece = 16 // size
    assert keeps_vectors(layout, piece)
    flat = np.zeros((64, columns), np.int64)
    for part, extent in zip(layout.table(), layout.get_output_shape(), strict=True):
        flat = flat * extent + part
    assert sorted(flat.reshape(-1)) == list(range(64 * columns))
    for first in range(0, 64, 8):
        for column in range(0, columns, piece):
            banks = flat[first : first + 8, column] * size // 16 % 8
            assert len(set(banks.tolist())) == 8
