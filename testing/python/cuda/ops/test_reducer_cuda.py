"""Reducers on the emulator."""

from __future__ import annotations

import pytest
import torch
from emulated_ops import compiles, emulate, source_of

import tilelang.language as T

FOLDS = {
    "sum": lambda a: a.sum(1),
    "max": lambda a: a.amax(1),
    "min": lambda a: a.amin(1),
    "bitand": lambda a: bits(a, lambda x, y: x & y),
    "bitor": lambda a: bits(a, lambda x, y: x | y),
    "bitxor": lambda a: bits(a, lambda x, y: x ^ y),
}


def bits(a, fold):
    total = a[:, 0]
    for column in range(1, a.shape[1]):
        total = fold(total, a[:, column])
    return total


def rows(op, dtype, threads, shape=(12, 80)):
    @T.prim_func
    def program(A: T.Tensor(shape, dtype), B: T.Tensor(shape[:1], dtype)):
        with T.Kernel(1, threads=threads):
            total = T.alloc_reducer(shape[:1], dtype, op=op)
            result = T.alloc_fragment(shape[:1], dtype)
            T.reducer_init(total)
            for i, j in T.Parallel(*shape):
                T.reducer_update(total[i], A[i, j])
            T.finalize_reducer(total, result)
            T.copy(result, B)

    return program


@pytest.mark.parametrize("op", FOLDS)
@pytest.mark.parametrize("threads", [48, 128])
def test_integers_are_exact(op, threads):
    a = torch.randint(-1000, 1000, (12, 80), dtype=torch.int32)
    program = rows(op, "int32", threads)
    assert torch.equal(emulate(program, a), FOLDS[op](a).int())
    compiles(program)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_floats(dtype):
    a = torch.randint(-8, 8, (12, 80)).to(getattr(torch, dtype))
    for op in ("sum", "max", "min"):
        b = emulate(rows(op, dtype, 64), a)
        assert torch.equal(b, FOLDS[op](a))


def test_a_scalar_over_several_tiles_with_a_start_value():
    @T.prim_func
    def program(A: T.Tensor((4, 256), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=64):
            total = T.alloc_reducer((1,), "float32", op="sum")
            tile = T.alloc_shared((256,), "float32")
            result = T.alloc_fragment((1,), "float32")
            T.reducer_init(total, 100.0)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k, :], tile)
                for i in T.Parallel(256):
                    T.reducer_update(total[0], tile[i])
            T.finalize_reducer(total, result)
            T.copy(result, B)

    a = torch.randint(-8, 8, (4, 256)).float()
    assert emulate(program, a).item() == a.sum() + 100
    compiles(program)


def test_replicated_values_contribute_once():
    @T.prim_func
    def program(A: T.Tensor((8, 64), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=128):
            tile, sums = T.alloc_fragment((8, 64), "int32"), T.alloc_fragment((8,), "int32")
            total = T.alloc_reducer((1,), "int32", op="sum")
            result = T.alloc_fragment((1,), "int32")
            T.copy(A, tile)
            T.reduce_sum(tile, sums, dim=1)
            T.reducer_init(total)
            for i in T.Parallel(8):
                T.reducer_update(total[0], sums[i])
            T.finalize_reducer(total, result)
            T.copy(result, B)

    a = torch.randint(-100, 100, (8, 64), dtype=torch.int32)
    assert emulate(program, a).item() == a.sum()


def test_the_older_style():
    @T.prim_func
    def program(A: T.Tensor((32, 16), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=64):
            total = T.alloc_reducer((16,), "float32", op="max", replication="all")
            T.fill(total, -T.infinity("float32"))
            for i, j in T.Parallel(32, 16):
                total[j] = T.max(total[j], A[i, j])
            T.finalize_reducer(total)
            for j in T.Parallel(16):
                B[j] = total[j] * 2.0

    a = torch.randn(32, 16)
    assert torch.equal(emulate(program, a), a.amax(0) * 2)


def test_partial_results_stay_in_registers():
    assert "atomic" not in source_of(rows("sum", "float32", 128))


@pytest.mark.parametrize("threads", [32, 80, 128])
def test_loops_that_deal_their_iterations_differently(threads):
    @T.prim_func
    def program(
        A: T.Tensor((16, 64), "int32"),
        C: T.Tensor((16, 6), "int32"),
        B: T.Tensor((16,), "int32"),
    ):
        with T.Kernel(1, threads=threads):
            total = T.alloc_reducer((16,), "int32", op="sum")
            T.reducer_init(total, 5)
            for i, j in T.Parallel(16, 64):
                T.reducer_update(total[i], A[i, j])
            for j, i in T.Parallel(6, 16):
                T.reducer_update(total[i], C[i, j])
            for i in T.Parallel(16):
                T.reducer_update(total[15 - i], i)
            T.finalize_reducer(total, B)

    a = torch.randint(-99, 99, (16, 64), dtype=torch.int32)
    c = torch.randint(-99, 99, (16, 6), dtype=torch.int32)
    expected = a.sum(1) + c.sum(1) + 5 + torch.arange(15, -1, -1)
    assert torch.equal(emulate(program, a, c), expected.int())


@pytest.mark.parametrize("threads", [48, 128])
def test_a_scalar_from_loops_of_different_size(threads):
    @T.prim_func
    def program(
        A: T.Tensor((16,), "int32"),
        C: T.Tensor((1000,), "int32"),
        B: T.Tensor((1,), "int32"),
    ):
        with T.Kernel(1, threads=threads):
            total = T.alloc_reducer((1,), "int32", op="sum")
            T.reducer_init(total, A[3])
            for i in T.Parallel(16):
                T.reducer_update(total[0], A[i])
            for i in T.Parallel(1000):
                T.reducer_update(total[0], C[i])
            T.finalize_reducer(total, B)

    a = torch.randint(-99, 99, (16,), dtype=torch.int32)
    c = torch.randint(-99, 99, (1000,), dtype=torch.int32)
    assert emulate(program, a, c).item() == a.sum() + c.sum() + a[3]
