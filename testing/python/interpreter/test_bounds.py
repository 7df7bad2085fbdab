"""Accesses outside of buffers, and reads of what was never written."""

import numpy as np
import pytest
import torch

import tilelang.language as T
from tilelang.interpreter import InterpreterError, interpret


def shifted(offset, safe=None):
    @T.prim_func
    def program(A: T.Tensor((10,), "float32"), B: T.Tensor((10,), "float32")):
        with T.Kernel(1):
            if safe is not None:
                T.annotate_safe_value({A: safe})
            for i in T.Parallel(10):
                B[i] = A[i + offset]

    return program


@pytest.mark.parametrize("offset", [-3, 4, 10, -10, 100])
def test_reading_outside_in_a_parallel_loop_gives_zero(offset):
    a = torch.arange(1.0, 11.0)
    b = interpret(shifted(offset), a, out_idx=-1)
    expected = [float(a[i + offset]) if 0 <= i + offset < 10 else 0.0 for i in range(10)]
    assert b.tolist() == expected


def test_the_safe_value_can_be_set():
    b = interpret(shifted(-4, safe=10), torch.arange(10.0), out_idx=-1)
    assert b.tolist() == [10, 10, 10, 10, 0, 1, 2, 3, 4, 5]


def test_writing_outside_in_a_parallel_loop_is_dropped():
    @T.prim_func
    def program(B: T.Tensor((10,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(16):
                B[i - 3] = i

    b = torch.full((10,), -1, dtype=torch.int32)
    interpret(program, b)
    assert b.tolist() == list(range(3, 13))


def test_every_dimension_is_checked():
    """An index beyond one row does not reach into the next."""

    @T.prim_func
    def program(A: T.Tensor((2, 4), "int32"), B: T.Tensor((2, 4), "int32")):
        with T.Kernel(1):
            for i, j in T.Parallel(2, 4):
                B[i, j] = A[i, j + 1]

    b = interpret(program, torch.arange(8, dtype=torch.int32).reshape(2, 4), out_idx=-1)
    assert b.tolist() == [[1, 2, 3, 0], [5, 6, 7, 0]]


@pytest.mark.parametrize("size", [1, 63, 64, 65, 100])
def test_tile_copies_fill_and_drop_at_the_edges(size):
    @T.prim_func
    def program(A: T.Tensor((size, size), "float16"), B: T.Tensor((size, size), "float16")):
        with T.Kernel(T.ceildiv(size, 64), T.ceildiv(size, 64)) as (bx, by):
            tile = T.alloc_shared((64, 64), "float16")
            T.copy(A[by * 64, bx * 64], tile)
            T.copy(tile, B[by * 64, bx * 64])

    a = torch.randn(size, size).half()
    assert torch.equal(interpret(program, a, out_idx=-1), a)


def test_a_tile_read_outside_holds_the_safe_value():
    @T.prim_func
    def program(A: T.Tensor((3,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            T.annotate_safe_value({A: -1})
            tile = T.alloc_shared((8,), "float32")
            T.copy(A[0:8], tile)
            T.copy(tile, B)

    b = interpret(program, torch.ones(3), out_idx=-1)
    assert b.tolist() == [1, 1, 1, -1, -1, -1, -1, -1]


@pytest.mark.parametrize("write", [False, True])
def test_a_plain_loop_must_stay_inside(write):
    @T.prim_func
    def program(A: T.Tensor((4,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            for i in T.serial(8):
                if write:
                    A[i] = 1.0
                else:
                    B[i] = A[i]

    with pytest.raises(InterpreterError, match=r"of A\[4\] is outside its shape \[4\]"):
        interpret(program, torch.zeros(4), torch.zeros(8))


def test_a_guard_protects_a_plain_loop():
    @T.prim_func
    def program(A: T.Tensor((4,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            for i in T.serial(8):
                if i < 4 and A[i] > 0:
                    B[i] = A[i]
                else:
                    B[i] = T.if_then_else(i < 4, A[i], -1.0)

    b = interpret(program, torch.tensor([1.0, -2.0, 3.0, 0.0]), out_idx=-1)
    assert b.tolist() == [1, -2, 3, 0, -1, -1, -1, -1]


@pytest.mark.parametrize("scope", ["shared", "fragment", "local"])
def test_tiles_have_no_safe_value(scope):
    alloc = {"shared": T.alloc_shared, "fragment": T.alloc_fragment, "local": T.alloc_local}[scope]

    @T.prim_func
    def program(B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            tile = alloc((4,), "float32")
            T.clear(tile)
            for i in T.serial(8):
                B[i] = tile[i]

    with pytest.raises(InterpreterError, match=r"read of tile\[4\] is outside its shape"):
        interpret(program, torch.zeros(8))


def test_a_tile_op_must_stay_inside_a_tile():
    @T.prim_func
    def program(A: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((4,), "float32")
            T.copy(A[0:4], tile[2:6])

    with pytest.raises(InterpreterError, match=r"T.copy writes tile\[2:6\], outside its shape"):
        interpret(program, torch.zeros(8))


def test_errors_show_the_line_and_the_block():
    @T.prim_func
    def program(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(3) as bx:
            if bx == 2:
                B[0] = A[bx * 4]

    with pytest.raises(InterpreterError, match=r"(?s)in block \(2,\).*B\[0\] = A\[bx \* 4\]"):
        interpret(program, torch.zeros(8), torch.zeros(8))


@pytest.mark.parametrize("alloc", [T.alloc_shared, T.alloc_fragment, T.alloc_local])
def test_reading_what_was_never_written_is_an_error(alloc):
    @T.prim_func
    def program(B: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            tile = alloc((4,), "float32")
            for i in T.serial(3):
                tile[i] = 1.0
            T.copy(tile, B)

    with pytest.raises(InterpreterError, match=r"reads tile\[3\] .*before it is written"):
        interpret(program, torch.zeros(4))
    b = torch.zeros(4)
    interpret(program, b, check_initialized=False)
    assert b[:3].tolist() == [1, 1, 1]


def test_a_variable_needs_a_value():
    @T.prim_func
    def program(B: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            x = T.alloc_var("float32")
            B[0] = x

    with pytest.raises(InterpreterError, match=r"x\[0\] is read before it is written"):
        interpret(program, torch.zeros(4))


def test_a_workspace_starts_unwritten():
    @T.prim_func
    def program(B: T.Tensor((4,), "float32")):
        space = T.alloc_global((4,), "float32")
        with T.Kernel(1):
            for i in T.Parallel(4):
                B[i] = space[i]

    with pytest.raises(InterpreterError, match="space.* is read before it is written"):
        interpret(program, torch.zeros(4))


def test_a_new_output_starts_unwritten():
    @T.prim_func
    def program(B: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                B[i] += 1.0

    with pytest.raises(InterpreterError, match="B.* is read before it is written"):
        interpret(program, out_idx=-1)
    b = torch.ones(4)
    interpret(program, b)
    assert b.tolist() == [2] * 4


def test_the_unwritten_part_of_a_tile_may_stay_unread():
    @T.prim_func
    def program(A: T.Tensor((4, 4), "float32"), B: T.Tensor((4, 4), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((4, 4), "float32")
            for i, j in T.Parallel(4, 4):
                if j <= i:
                    tile[i, j] = A[i, j]
            for i, j in T.Parallel(4, 4):
                B[i, j] = T.if_then_else(j <= i, tile[i, j], 0.0)

    a = torch.randn(4, 4)
    assert torch.equal(interpret(program, a, out_idx=-1), a.tril())


def test_a_zero_size_tensor_is_all_outside():
    @T.prim_func
    def program(A: T.Tensor((0,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            T.annotate_safe_value({A: 7})
            for i in T.Parallel(4):
                B[i] = A[i]

    assert interpret(program, torch.zeros(0), out_idx=-1).tolist() == [7] * 4


def test_an_index_beyond_int32_is_not_wrapped():
    """The byte asked for lies past 2^31; wrapped, it would be inside the tensor."""

    @T.prim_func
    def program(A: T.Tensor((16,), "int8"), B: T.Tensor((1,), "int8")):
        with T.Kernel(1):
            for i in T.serial(1):
                row = i + 65536
                B[i] = A[row * 65536]

    with pytest.raises(InterpreterError, match="4294967296"):
        interpret(program, torch.zeros(16, dtype=torch.int8), torch.zeros(1, dtype=torch.int8))


def test_numpy_arrays_are_written_in_place():
    b = np.zeros(10, np.float32)
    interpret(shifted(0), np.arange(10, dtype=np.float32), b)
    assert b.tolist() == list(range(10))
