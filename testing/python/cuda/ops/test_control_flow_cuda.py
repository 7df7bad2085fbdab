"""Block order, persistent loops, several kernels, early exits and loops on the emulator."""

from __future__ import annotations

import pytest
import torch
from emulated_ops import compiles, emulate, interpreted

import tilelang.language as T


def product(swizzle, order="row"):
    @T.prim_func
    def program(
        A: T.Tensor((160, 64), "float16"), W: T.Tensor((64, 96), "float16"),
        C: T.Tensor((160, 96), "float32"),
    ):  # fmt: skip
        with T.Kernel(3, 5, threads=128) as (bx, by):
            a, w = T.alloc_shared((32, 32), "float16"), T.alloc_shared((32, 32), "float16")
            total = T.alloc_fragment((32, 32), "float32")
            if swizzle:
                T.use_swizzle(swizzle, order=order)
            T.clear(total)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[by * 32, k * 32], a)
                T.copy(W[k * 32, bx * 32], w)
                T.gemm(a, w, total)
            T.copy(total, C[by * 32, bx * 32])

    return program


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("size", [1, 2, 4, 10])
def test_the_order_of_blocks_changes_nothing(size, order):
    a, w = torch.randint(-4, 5, (160, 64)).half(), torch.randint(-4, 5, (64, 96)).half()
    assert torch.equal(emulate(product(size, order), a, w), a.float() @ w.float())


def test_persistent_blocks_take_all_tiles():
    @T.prim_func
    def program(A: T.Tensor((256, 320), "float32"), B: T.Tensor((256, 320), "float32")):
        with T.Kernel(7, threads=64) as block:
            tile = T.alloc_shared((32, 32), "float32")
            for by, bx in T.Persistent([8, 10], 7, block):
                T.copy(A[by * 32, bx * 32], tile)
                for i, j in T.Parallel(32, 32):
                    B[by * 32 + i, bx * 32 + j] = tile[i, 31 - j] + 1

    a = torch.randn(256, 320)
    expected = a.reshape(256, 10, 32).flip(2).reshape(256, 320) + 1
    assert torch.equal(emulate(program, a), expected)
    compiles(program)


def test_two_kernels_and_a_workspace():
    @T.prim_func
    def program(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        between = T.alloc_global((256,), "float32")
        with T.Kernel(2, threads=64) as bx:
            for i in T.Parallel(128):
                between[bx * 128 + i] = A[bx * 128 + i] * 2
        with T.Kernel(4, threads=32) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = between[255 - bx * 64 - i]

    a = torch.randn(256)
    assert torch.equal(emulate(program, a), a.flip(0) * 2)
    compiles(program)


def test_a_block_that_leaves_early():
    size = T.dynamic("size")

    @T.prim_func
    def program(A: T.Tensor((size,), "int32"), B: T.Tensor((size,), "int32")):
        with T.Kernel(T.ceildiv(size, 64), threads=32) as bx:
            tile = T.alloc_shared((64,), "int32")
            if A[bx * 64] < 0:
                T.ret(0)
            T.copy(A[bx * 64], tile)
            for i in T.Parallel(64):
                B[bx * 64 + i] = tile[63 - i]

    a, b = torch.arange(256, dtype=torch.int32), torch.zeros(256, dtype=torch.int32)
    a[64] = -1
    emulate(program, a, b, out_idx=None)
    expected = a.reshape(4, 64).flip(1).clone()
    expected[1] = 0
    assert torch.equal(b, expected.reshape(-1))
    compiles(program)


ENDS = {"ret": lambda: T.ret(0), "thread_return": lambda: T.thread_return()}


@pytest.mark.parametrize("end", ENDS)
def test_threads_that_leave_early(end):
    @T.prim_func
    def program(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            if A[tx] < 10:
                ENDS[end]()
            B[tx] = A[tx]

    a, b = torch.arange(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    emulate(program, a, b, out_idx=None)
    assert torch.equal(b, torch.where(a < 10, 0, a))
    c = torch.zeros(64, dtype=torch.int32)
    interpreted(program, a, c, out_idx=None)
    assert torch.equal(b, c)


def test_break_and_continue_in_a_loop_of_the_block():
    @T.prim_func
    def program(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=32):
            tile = T.alloc_shared((64,), "int32")
            T.copy(A, tile)
            step = T.alloc_var("int32")
            step = 0
            while step < 10:
                step = step + 1
                if step == 3:
                    continue
                if step == 7:
                    break
                T.cumsum(tile)
            T.copy(tile, B)

    a = torch.arange(64, dtype=torch.int32)
    expected = a
    for _ in range(5):
        expected = expected.cumsum(0, dtype=torch.int32)
    assert torch.equal(emulate(program, a), expected)
    compiles(program)


def test_threads_that_loop_differently():
    @T.prim_func
    def program(A: T.Tensor((64, 16), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            total = T.alloc_var("int32")
            total = 0
            for j in T.serial(16):
                if A[tx, j] < 0:
                    break
                if A[tx, j] % 2 == 0:
                    continue
                total = total + A[tx, j]
            B[tx] = total

    a = torch.randint(-1, 20, (64, 16), dtype=torch.int32)
    before = (a < 0).cumsum(1) == 0
    expected = torch.where(before & (a % 2 == 1), a, 0).sum(1, dtype=torch.int32)
    assert torch.equal(emulate(program, a), expected)
    compiles(program)
