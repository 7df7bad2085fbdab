"""Every matrix instruction: the emulated one multiplies, the PTX one compiles."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from kernels import run

from tilelang.cuda.headers import include_dir
from tilelang.cuda.intrinsics import MMA_ROWS, find_mma_rows, mma_row
from tilelang.cuda.intrinsics.mma_rows import ELEMENT_BITS
from tilelang.errors import EmulatorError

TORCH = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "tf32": torch.float32,
    "f32": torch.float32,
    "f64": torch.float64,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "s8": torch.int8,
    "u8": torch.uint8,
    "s32": torch.int32,
}
KERNEL = """
#include <tl/mma.h>
extern "C" __global__ void kernel(const unsigned* a, const unsigned* b, unsigned* c) {{
  alignas(8) unsigned x[{a}], y[{b}], z[{c}];
  for (int i = 0; i < {a}; ++i) x[i] = a[threadIdx.x * {a} + i];
  for (int i = 0; i < {b}; ++i) y[i] = b[threadIdx.x * {b} + i];
  for (int i = 0; i < {c}; ++i) z[i] = c[threadIdx.x * {c} + i];
  tl::mma_{name}(z, x, y);
  for (int i = 0; i < {c}; ++i) c[threadIdx.x * {c} + i] = z[i];
}}
"""


def random_operand(dtype, shape, generator):
    """Values that ``dtype`` holds exactly, as float64."""
    if dtype in ("s4", "s8"):
        low, high = -(2 ** (ELEMENT_BITS[dtype] - 1)), 2 ** (ELEMENT_BITS[dtype] - 1)
        return torch.randint(low, high, shape, generator=generator).double()
    if dtype in ("u4", "u8"):
        return torch.randint(0, 2 ** ELEMENT_BITS[dtype], shape, generator=generator).double()
    if dtype == "s32":
        return torch.randint(-(2**31), 2**31, shape, generator=generator).double()
    values = torch.randn(shape, generator=generator)
    if dtype == "tf32":
        bits = values.view(torch.int32) & ~0x1FFF
        return bits.view(torch.float32).double()
    return values.to(TORCH[dtype]).double()


def pack(values, dtype):
    """Lane elements (32, n) as the bytes of their registers."""
    if dtype in ("s4", "u4"):
        nibbles = values.to(torch.int64).numpy() & 15
        return (nibbles[:, ::2] | nibbles[:, 1::2] << 4).astype(np.uint8)
    return values.to(TORCH[dtype]).contiguous().view(torch.uint8).numpy()


def distribute(matrix, position, count):
    lanes = [[matrix[position(lane, i)] for i in range(count)] for lane in range(32)]
    return torch.tensor(lanes, dtype=torch.float64)


@pytest.mark.parametrize("row", MMA_ROWS, ids=lambda row: row.name)
def test_emulated_product_equals_the_matrix_product(row):
    generator = torch.Generator().manual_seed(1)
    a = random_operand(row.a, (row.m, row.k), generator)
    b = random_operand(row.b, (row.k, row.n), generator)
    c = random_operand(row.d, (row.m, row.n), generator)
    counts = row.elements
    registers = dict(zip("abc", row.registers, strict=True))
    packed_a = pack(distribute(a, row.a_position, counts[0]), row.a)
    packed_b = pack(distribute(b, row.b_position, counts[1]), row.b)
    packed_c = np.ascontiguousarray(pack(distribute(c, row.d_position, counts[2]), row.d))
    run(KERNEL.format(name=row.name, **registers), packed_a, packed_b, packed_c, block=32)
    result = torch.from_numpy(packed_c).view(TORCH[row.d]).double()
    expected = distribute(a @ b + c, row.d_position, counts[2])
    if row.d == "s32":
        expected = (expected + 2**31) % 2**32 - 2**31
        assert torch.equal(result, expected)
    else:
        tolerance = {"f16": 2e-3, "f32": 1e-6, "f64": 1e-14}[row.d]
        torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("row", MMA_ROWS, ids=lambda row: row.name)
def test_layouts_cover_each_element_once(row):
    a, b, d = row.elements
    for position, count, shape in (
        (row.a_position, a, (row.m, row.k)),
        (row.b_position, b, (row.k, row.n)),
        (row.d_position, d, (row.m, row.n)),
    ):
        places = {position(lane, i) for lane in range(32) for i in range(count)}
        assert places == {(i, j) for i in range(shape[0]) for j in range(shape[1])}


def test_headers_list_the_same_rows():
    text = (include_dir() / "tl" / "mma_rows.h").read_text()
    rows = re.findall(r"ROW\((\d+), (\d+), (\d+), (\w+), (\w+), (\w+), (\d)_(\d)_(\d)(\w)\)", text)
    listed = {f"m{m}n{n}k{k}_{d}_{a}_{b}_{d}" for m, n, k, d, a, b, *_ in rows}
    assert listed == {row.name for row in MMA_ROWS}
    for m, n, k, d, a, b, *registers, constraint in rows:
        row = mma_row(f"m{m}n{n}k{k}_{d}_{a}_{b}_{d}")
        words = 2 if constraint == "d" else 1  # a register of type double is two words
        assert tuple(int(count) * words for count in registers) == row.registers


def test_rows_are_found_by_type_and_architecture():
    assert [row.k for row in find_mma_rows("f32", "f16", "f16", 90)] == [16, 8]
    assert [row.k for row in find_mma_rows("f32", "f16", "f16", 75)] == [8]
    assert not find_mma_rows("f32", "e4m3", "e4m3", 80)


def test_an_incomplete_warp_cannot_multiply():
    row = mma_row("m16n8k16_f32_f16_f16_f32")
    source = KERNEL.format(name=row.name, **dict(zip("abc", row.registers, strict=True)))
    zeros = [np.zeros(32 * count, np.uint32) for count in row.registers]
    with pytest.raises(EmulatorError, match="a matrix instruction with only 16 lanes"):
        run(source, *zeros, block=16)
