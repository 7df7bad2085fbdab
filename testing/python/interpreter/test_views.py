"""Views share the bits of their storage."""

import pytest
import torch

import tilelang.language as T
from tilelang.interpreter import interpret


def test_a_global_tensor_reshaped():
    @T.prim_func
    def program(A: T.Tensor((24,), "float32"), B: T.Tensor((4, 6), "float32")):
        with T.Kernel(1):
            grid = T.view(A, (4, 6))
            T.copy(grid, B)

    a = torch.randn(24)
    assert torch.equal(interpret(program, a, out_idx=-1), a.reshape(4, 6))


@pytest.mark.parametrize("narrow", ["float16", "int8", "bfloat16", "uint8"])
def test_a_view_of_another_dtype_is_bit_exact(narrow):
    kind = getattr(torch, narrow)
    ratio = 4 // kind.itemsize

    @T.prim_func
    def program(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8 * ratio), narrow)):
        with T.Kernel(1):
            tile = T.alloc_shared((4, 8), "float32")
            T.copy(A, tile)
            T.copy(T.view(tile, dtype=narrow), B)

    a = torch.randn(4, 8)
    b = interpret(program, a, out_idx=-1)
    assert torch.equal(b.view(torch.uint8), a.view(kind).view(torch.uint8))


def test_writing_through_a_view_is_seen_by_the_buffer():
    @T.prim_func
    def program(A: T.Tensor((16,), "float16"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((8,), "float32")
            halves = T.view(tile, (16,), "float16")
            for i in T.Parallel(16):
                halves[i] = A[i]
            T.copy(tile, B)

    a = torch.randn(16).half()
    assert torch.equal(interpret(program, a, out_idx=-1).view(torch.int32), a.view(torch.int32))


def test_a_view_of_four_bit_elements():
    @T.prim_func
    def program(A: T.Tensor((8,), "float4_e2m1fn"), B: T.Tensor((4,), "uint8")):
        with T.Kernel(1):
            T.copy(T.view(A, dtype="uint8"), B)

    packed = torch.tensor([0x21, 0x43, 0x65, 0x87], dtype=torch.uint8)
    assert torch.equal(interpret(program, packed, out_idx=-1), packed)


def test_a_view_of_local_memory_belongs_to_the_thread():
    @T.prim_func
    def program(A: T.Tensor((16,), "int32"), B: T.Tensor((16, 4), "uint8")):
        with T.Kernel(1, threads=16):
            tx = T.get_thread_binding()
            word = T.alloc_local((1,), "int32")
            raw = T.view(word, (4,), "uint8")
            word[0] = A[tx]
            for i in T.serial(4):
                B[tx, i] = raw[i]

    a = torch.randint(-(2**31), 2**31 - 1, (16,), dtype=torch.int32)
    assert torch.equal(interpret(program, a, out_idx=-1), a.view(torch.uint8).reshape(16, 4))


def test_a_tensor_over_the_pointer_of_another():
    @T.prim_func
    def program(A: T.Tensor((4, 6), "int32"), B: T.Tensor((24,), "int32")):
        with T.Kernel(1):
            flat = T.Tensor((24,), "int32", A.data)
            for i in T.Parallel(24):
                B[i] = flat[23 - i]

    a = torch.arange(24, dtype=torch.int32)
    assert torch.equal(interpret(program, a.reshape(4, 6), out_idx=-1), a.flip(0))


def test_pointer_arguments():
    @T.prim_func
    def program(P: T.ptr("float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            A = T.make_tensor(P, (8,), "float32")
            for i in T.Parallel(8):
                B[i] = A[i] * 2

    a = torch.randn(8)
    assert torch.equal(interpret(program, a, out_idx=-1), a * 2)
    assert torch.equal(interpret(program, a.data_ptr(), out_idx=-1), a * 2)


def test_a_table_of_addresses():
    @T.prim_func
    def program(table: T.Tensor((3,), T.ptr), B: T.Tensor((3, 4), "float32")):
        with T.Kernel(3) as bx:
            A = T.make_tensor(table[bx], (4,), "float32")
            T.copy(A, B[bx, :])

    rows = [torch.randn(4) for _ in range(3)]
    table = torch.tensor([row.data_ptr() for row in rows])
    assert torch.equal(interpret(program, table, out_idx=-1), torch.stack(rows))


def test_a_view_of_the_wrong_size_is_refused():
    with pytest.raises(AssertionError):

        @T.prim_func
        def program(A: T.Tensor((24,), "float32")):
            with T.Kernel(1):
                T.view(A, (5, 5))


def test_a_loaded_vector_keeps_its_value_when_memory_changes():
    @T.prim_func
    def program(A: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            pairs = T.view(A, dtype="int32x2")
            old = pairs[0]
            pairs[0] = pairs[3]
            pairs[3] = old

    a = torch.arange(8, dtype=torch.int32)
    interpret(program, a)
    assert a.tolist() == [6, 7, 2, 3, 4, 5, 0, 1]
