"""Vectors: as wide as alignment and guards allow, never past a tensor.

The block machine refuses an access that is not aligned or leaves its buffer.
"""

from __future__ import annotations

import pytest
from lowered import device_function, lowered, run_program
from tvm import ir
from tvm_ffi import structural_walk

import tilelang.language as T
from tilelang.ir.expr import const_int


def widths(program, arch="sm_80"):
    """Bytes of the wide accesses of a kernel."""
    found = set()

    def on_call(call):
        name = getattr(call.op, "name", "")
        if name in ("tl.vec_copy", "tl.cp_async"):
            found.add(const_int(call.args[2]))

    structural_walk(device_function(lowered(program, arch)).body, (ir.Call, on_call))
    return found


def copy_rows(rows, width, dtype, start=0, columns=None, threads=32):
    """Columns from ``start`` of a matrix with rows of ``width``, through shared memory."""
    columns = width if columns is None else columns

    @T.prim_func
    def program(A: T.Tensor((rows, width), dtype), B: T.Tensor((rows, width), dtype)):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_shared((rows, columns), dtype)
            T.copy(A[0:rows, start : start + columns], tile)
            for i, j in T.Parallel(rows, columns):
                if start + j < width:
                    B[i, start + j] = tile[i, j]

    return program


@pytest.mark.parametrize(
    ("width", "dtype", "start", "columns", "widest"),
    [
        (64, "float32", 0, None, 16),
        (64, "float16", 0, None, 16),
        (64, "int8", 0, None, 16),
        (64, "float64", 0, None, 16),
        (66, "float32", 0, 64, 8),
        (65, "float32", 0, 64, 0),
        (66, "float16", 0, 64, 4),
        (65, "float16", 0, 64, 0),
        (72, "float32", 4, 64, 16),
        (72, "float32", 2, 64, 8),
        (72, "float32", 1, 64, 0),
        (72, "float16", 4, 64, 8),
        (64, "float32", 32, 64, 16),
        (64, "float32", 62, 64, 8),
        (60, "float16", 8, 64, 8),
    ],
)
def test_the_widest_access_that_is_aligned_and_inside(width, dtype, start, columns, widest):
    program = copy_rows(16, width, dtype, start, columns)
    assert max(widths(program), default=0) == widest
    run_program(program)


@pytest.mark.parametrize("rows", [1, 3, 16])
@pytest.mark.parametrize("width", [1, 2, 7, 24, 61, 128, 257])
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
def test_rows_of_any_length(rows, width, dtype):
    run_program(copy_rows(rows, width, dtype))


@pytest.mark.parametrize("size", [1, 31, 64, 100, 4095])
def test_a_guard_of_the_last_block(size):
    """Blocks of 64 over ``size`` elements; a wide access never leaves the tensor."""

    @T.prim_func
    def program(A: T.Tensor((size,), "float16"), B: T.Tensor((size,), "float16")):
        with T.Kernel(T.ceildiv(size, 64), threads=32) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i] * 2

    run_program(program)


def test_guards_that_are_no_multiple_of_the_vector():
    """Reading is limited by one bound, writing by another."""

    @T.prim_func
    def program(A: T.Tensor((100,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(128):
                if i >= 3 and i < 126:
                    B[i] = T.if_then_else(i < 98, A[i], 5.0)

    run_program(program)


def test_elements_in_place_and_next_to_each_other():
    """A vector reads all of its elements before it writes one."""

    @T.prim_func
    def program(A: T.Tensor((64,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=16):
            tile = T.alloc_shared((256,), "float32")
            T.clear(tile)
            for i in T.Parallel(64):
                tile[i * 4] = A[i]
            for i in T.Parallel(256):
                tile[i] = tile[i] * 3 + 1
            for i, j in T.Parallel(64, 4):
                B[i * 4 + j] = tile[i * 4 + (3 - j)]

    run_program(program)
