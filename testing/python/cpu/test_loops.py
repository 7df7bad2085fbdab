"""Loops of every kind on the CPU: trip counts, jumps, nesting, pipelines, run-time extents."""

import itertools

import pytest
import torch
from ways import TARGETS, check, execute

import tilelang
import tilelang.language as T


def integers(*shape, low=-1000, high=1000):
    return torch.randint(low, high, shape, dtype=torch.int32)


def test_loops_of_zero_one_and_many_trips():
    @T.prim_func
    def program(B: T.Tensor((6,), "int32"), n: T.int32):
        with T.Kernel(1):
            T.clear(B)
            for i in T.serial(n):
                B[0] += i + 1
            for i in T.serial(2, n):
                B[1] += i
            for i in range(n, 10, 3):
                B[2] += i
            for i in range(n, -5, -2):
                B[3] += i
            for i in T.unroll(4):
                B[4] += i * n
            for i in T.serial(0, n, 2):
                B[5] += i * i

    for n in (-3, 0, 1, 2, 9):
        check(program, torch.zeros(6, dtype=torch.int32), n)


def test_break_and_continue_in_nested_loops():
    @T.prim_func
    def program(A: T.Tensor((64,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            T.clear(B)
            for i in T.serial(8):
                if A[i] < -800:
                    continue
                for j in T.serial(8):
                    if A[i * 8 + j] > 500:
                        break
                    if j % 3 == 1:
                        continue
                    B[0] += A[i * 8 + j]
                    B[1] += 1
                else_count = T.alloc_var("int32", init=0)
                while else_count < 5:
                    else_count += 1
                    if else_count == A[i] % 4:
                        break
                B[2] += else_count
                if B[1] > 40:
                    break
                B[3] = i

    check(program, integers(64), torch.zeros(4, dtype=torch.int32))


def test_while_loops():
    @T.prim_func
    def program(A: T.Tensor((16,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(16) as bx:
            n = T.alloc_var("int32", init=0)
            steps = T.alloc_var("int32", init=0)
            n = A[bx]
            while n != 1 and steps < 200:
                if n % 2 == 0:
                    n = n // 2
                else:
                    n = 3 * n + 1
                steps += 1
            B[bx] = steps

    check(program, torch.arange(1, 17, dtype=torch.int32), torch.zeros(16, dtype=torch.int32))


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_with_an_early_break_stops_in_the_middle_of_a_tile(target):
    @T.prim_func
    def program(A: T.Tensor((64, 16), "float32"), B: T.Tensor((16,), "float32"), n: T.int32):
        with T.Kernel(1):
            total = T.alloc_fragment((16,), "float32")
            tile = T.alloc_shared((8, 16), "float32")
            T.clear(total)
            for k in T.Pipelined(8, num_stages=2):
                if k >= n:
                    break
                T.copy(A[k * 8, 0], tile)
                for i in T.serial(8):
                    for j in T.Parallel(16):
                        total[j] += tile[i, j]
            T.copy(total, B)

    a = torch.randint(-8, 9, (64, 16)).float()
    for n in (0, 1, 3, 20):
        got = execute(program, [a, torch.zeros(16), n], target)[1]
        assert torch.equal(got, a[: n * 8].sum(0))


@pytest.mark.parametrize("extent", [0, 1, 13, 64, 100])
def test_parallel_loops_over_run_time_extents(extent):
    @T.prim_func
    def program(
        A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32"),
        n: T.int32,
    ):  # fmt: skip
        with T.Kernel(1):
            T.fill(B, -1.0)
            for i in T.Parallel(T.min(n, 64)):
                B[i] = A[i] + 1
            for i, j in T.Parallel(n, 2):
                C[i * 2 + j] = A[i] * (j + 1)

    check(program, torch.randn(64), torch.zeros(64), torch.zeros(64), extent)


@pytest.mark.parametrize("rows, cols", [(0, 5), (1, 1), (3, 16), (8, 7), (9, 20)])
def test_copies_of_run_time_extents(rows, cols):
    m, n = T.dynamic("m, n")

    @T.prim_func
    def program(A: T.Tensor((m, n), "float32"), B: T.Tensor((8, 16), "float32"), k: T.int32):
        with T.Kernel(1):
            tile = T.alloc_shared((8, 16), "float32")
            T.fill(tile, 5.0)
            T.copy(A[0:m, 0 : T.min(n, k)], tile[0:m, 0 : T.min(n, k)])
            T.copy(tile, B)

    if rows <= 8:  # a tile has no more rows
        check(program, torch.randn(rows, cols), torch.zeros(8, 16), 11)


def pipelined(num_stages, trips, dtype="float32"):
    @T.prim_func
    def program(
        A: T.Tensor((16, 8 * max(trips, 1)), dtype),
        B: T.Tensor((8 * max(trips, 1), 16), dtype),
        C: T.Tensor((16, 16), "float32"),
        n: T.int32,
    ):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((16, 8), dtype)
            b = T.alloc_shared((8, 16), dtype)
            c = T.alloc_fragment((16, 16), "float32")
            T.clear(c)
            for k in T.Pipelined(n, num_stages=num_stages):
                T.copy(A[0, k * 8], a)
                T.copy(B[k * 8, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return program


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_pipelines_of_every_depth_equal_the_serial_loop(trips):
    a = torch.randint(-4, 5, (16, 8 * max(trips, 1))).float()
    b = torch.randint(-4, 5, (8 * max(trips, 1), 16)).float()
    expected = a[:, : trips * 8] @ b[: trips * 8]
    for num_stages in range(5):
        kernel = tilelang.compile(pipelined(num_stages, trips), target="llvm")
        c = torch.full((16, 16), 9.0)
        kernel(a, b, c, trips)
        assert torch.equal(c, expected)


@pytest.mark.parametrize(
    "order, stage", [([0, 1, 2], [0, 0, 1]), ([2, 0, 1], [1, 0, 0]), ([1, 0, 2], [0, 0, 2])]
)
def test_explicit_schedules_are_hints(order, stage):
    @T.prim_func
    def program(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1):
            x = T.alloc_shared((8,), "int32")
            y = T.alloc_shared((8,), "int32")
            for k in T.Pipelined(4, order=order, stage=stage):
                T.copy(A[k * 8], x)
                for i in T.Parallel(8):
                    y[i] = x[i] * 2 + k
                T.copy(y, B[k * 8])

    check(program, integers(32), torch.zeros(32, dtype=torch.int32), targets=("llvm",))


def test_loops_carry_values_in_tiles_and_variables():
    @T.prim_func
    def program(A: T.Tensor((12, 8), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            previous = T.alloc_fragment((8,), "int32")
            tile = T.alloc_shared((8,), "int32")
            scale = T.alloc_var("int32", init=1)
            T.clear(previous)
            for k in T.Pipelined(12, num_stages=3):
                T.copy(A[k, 0:8], tile)
                for i in T.Parallel(8):
                    previous[i] = previous[i] * 3 + tile[7 - i] * scale
                scale = scale * 5 + k
            T.copy(previous, B)

    check(program, integers(12, 8), torch.zeros(8, dtype=torch.int32))


@pytest.mark.parametrize(
    "lanes, dtype", list(itertools.product([2, 4, 8], ["float32", "float16", "int8"]))
)
def test_vector_loops(lanes, dtype):
    @T.prim_func
    def program(A: T.Tensor((64,), dtype), B: T.Tensor((64,), dtype)):
        with T.Kernel(64 // lanes) as bx:
            for i in T.vectorized(lanes):
                B[bx * lanes + i] = A[63 - bx * lanes - i] + A[bx * lanes + i] * 2

    a = torch.randint(-50, 50, (64,)).to(getattr(torch, dtype))
    check(program, a, torch.zeros_like(a), targets=TARGETS if lanes == 4 else ("llvm",))


def test_vector_loops_with_conditions_and_calls():
    @T.prim_func
    def program(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32"), n: T.int32):
        with T.Kernel(1):
            for i in T.vectorized(8):
                if i < n:
                    B[i] = T.if_then_else(A[i] > 0, A[i], -A[i])
                else:
                    B[i] = T.floor(A[7 - i])

    check(program, torch.randn(8), torch.zeros(8), 5)


def test_large_unrolled_and_deeply_nested_loops():
    @T.prim_func
    def program(B: T.Tensor((3, 2, 3, 2, 3), "int32")):
        with T.Kernel(1):
            for a in T.unroll(3):
                for b in T.serial(2):
                    for c in T.unroll(3):
                        for d in T.serial(2):
                            for e in T.vectorized(3):
                                B[a, b, c, d, e] = a + 10 * b + 100 * c + 1000 * d + 10000 * e

    check(program, torch.zeros(3, 2, 3, 2, 3, dtype=torch.int32))


def test_grid_loops_and_persistent_loops():
    @T.prim_func
    def program(A: T.Tensor((6, 5), "int32"), B: T.Tensor((6, 5), "int32")):
        with T.Kernel(4) as bx:
            for i, j in T.Persistent([6, 5], 4, bx):
                B[i, j] = A[5 - i, 4 - j]
            if bx == 0:
                for i, j in T.grid(6, 5):
                    A[i, j] += i

    @T.prim_func
    def plain(A: T.Tensor((6, 5), "int32"), B: T.Tensor((6, 5), "int32")):
        with T.Kernel(1):
            for i, j in T.grid(6, 5):
                B[i, j] = A[i, 4 - j] * j

    check(plain, integers(6, 5), torch.zeros(6, 5, dtype=torch.int32))
    a = integers(6, 5)
    got = execute(program, [a, torch.zeros(6, 5, dtype=torch.int32)], "llvm")
    assert torch.equal(got[0], a + torch.arange(6, dtype=torch.int32)[:, None])
