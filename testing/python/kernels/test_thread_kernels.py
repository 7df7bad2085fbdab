"""Kernels written thread by thread: shuffles, votes, barriers, shared memory, pointers."""

from __future__ import annotations

import pytest
import torch

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def warp_reduce_rows(M, N, warps=4):
    """One warp a row; lanes stride over it and combine by shuffles."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, warps), threads=warps * 32) as bx:
            tx = T.get_thread_binding(0)
            lane = tx % 32
            row = bx * warps + tx // 32
            acc = T.alloc_var("float32", init=0.0)
            for k in T.serial(T.ceildiv(N, 32)):
                if row < M and k * 32 + lane < N:
                    acc += A[row, k * 32 + lane]
            for step in T.unroll(5):
                acc += T.shfl_xor(acc, 16 >> step)
            if lane == 0 and row < M:
                B[row] = acc

    return main


@tilelang.jit(out_idx=[1])
def warp_reduce_by_down(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(M, threads=32) as row:
            lane = T.get_lane_idx()
            value = T.alloc_local((1,), "float32")
            value[0] = 0
            for k in T.serial(0, N, 32):
                if k + lane < N:
                    value[0] = value[0] + A[row, k + lane]
            offset = T.alloc_var("int32", 16)
            while offset > 0:
                value[0] += T.shfl_down(value[0], offset)
                offset = offset // 2
            if lane == 0:
                B[row] = value[0]

    return main


@pytest.mark.everywhere
def test_row_sums_by_shuffles():
    x = torch.randn(7, 75)
    for factory in (warp_reduce_rows, warp_reduce_by_down):
        torch.testing.assert_close(factory(7, 75)(x), x.sum(1), rtol=1e-4, atol=1e-4)


@tilelang.jit(out_idx=[1])
def block_scan(N, threads):
    """Hillis-Steele in shared memory, a barrier between steps."""

    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(T.ceildiv(N, threads), threads=threads) as bx:
            tx = T.get_thread_binding()
            buf = T.alloc_shared((2, threads), "int32")
            turn = T.alloc_var("int32", init=0)
            buf[0, tx] = A[bx * threads + tx] if bx * threads + tx < N else 0
            T.sync_threads()
            step = T.alloc_var("int32", init=1)
            while step < threads:
                buf[1 - turn, tx] = buf[turn, tx] + T.if_then_else(
                    tx >= step, buf[turn, tx - step], 0
                )
                turn = 1 - turn
                step = step * 2
                T.sync_threads()
            if bx * threads + tx < N:
                B[bx * threads + tx] = buf[turn, tx]

    return main


@pytest.mark.everywhere
def test_block_scan_with_barriers():
    x = torch.randint(-9, 9, (100,), dtype=torch.int32)
    ref = torch.cat([part.cumsum(0) for part in x.split(64)]).int()
    assert torch.equal(block_scan(100, 64)(x), ref)


@tilelang.jit(out_idx=[2])
def tiled_matmul_by_threads(M, N, K, TILE=8):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float32"),
        B: T.Tensor((K, N), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, TILE), T.ceildiv(M, TILE), threads=(TILE, TILE)) as (bx, by):
            tx, ty = T.get_thread_bindings()[:2]
            As = T.alloc_shared((TILE, TILE), "float32")
            Bs = T.alloc_shared((TILE, TILE), "float32")
            acc = T.alloc_local((1,), "float32")
            row, col = by * TILE + ty, bx * TILE + tx
            acc[0] = 0.0
            for k in range(T.ceildiv(K, TILE)):
                As[ty, tx] = T.if_then_else(row < M and k * TILE + tx < K, A[row, k * TILE + tx], 0)
                Bs[ty, tx] = T.if_then_else(k * TILE + ty < K and col < N, B[k * TILE + ty, col], 0)
                T.sync_threads()
                for i in T.unroll(TILE):
                    acc[0] += As[ty, i] * Bs[i, tx]
                T.sync_threads()
            if row < M and col < N:
                C[row, col] = acc[0]

    return main


@pytest.mark.everywhere
def test_matmul_by_threads():
    a, b = torch.randn(20, 13), torch.randn(13, 17)
    c = tiled_matmul_by_threads(20, 17, 13)(a, b)
    torch.testing.assert_close(c, a @ b, rtol=1e-4, atol=1e-4)


@tilelang.jit(out_idx=[1, 2])
def stream_compaction(N, threads=64):
    """Keep positive values in order: votes give each thread its place."""

    @T.prim_func
    def main(
        A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), count: T.Tensor((1,), "int32")
    ):
        with T.Kernel(1, threads=threads) as _:
            tx = T.get_thread_binding()
            warp, lane = tx // 32, tx % 32
            sums = T.alloc_shared((threads // 32,), "int32")
            base = T.alloc_var("int32", init=0)
            for i in T.Parallel(N):
                B[i] = 0
            for k in T.serial(T.ceildiv(N, threads)):
                i = k * threads + tx
                value = T.if_then_else(i < N, A[i], T.float32(-1))
                keep = value > 0
                mask = T.ballot(keep)
                below = T.popcount(mask & ((T.uint64(1) << T.cast(lane, "uint64")) - T.uint64(1)))
                if lane == 0:
                    sums[warp] = T.cast(T.popcount(mask), "int32")
                T.sync_threads()
                place = T.alloc_var("int32", init=base)
                for w in T.serial(threads // 32):
                    if w < warp:
                        place += sums[w]
                    base += sums[w]
                if keep:
                    B[place + T.cast(below, "int32")] = value
                T.sync_threads()
            if tx == 0:
                count[0] = base

    return main


@pytest.mark.everywhere
def test_stream_compaction_with_votes():
    x = torch.randn(150)
    out, count = stream_compaction(150)(x)
    kept = x[x > 0]
    assert count.item() == len(kept)
    assert torch.equal(out[: len(kept)], kept)


@tilelang.jit
def saxpy_by_pointer(n):
    @T.prim_func
    def main(x: T.ptr, y: T.ptr, alpha: T.float32, m: T.int32):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            X = T.make_tensor(x, (n,), "float32")
            Y = T.make_tensor(y, (n,), "float32")
            tx = T.get_thread_binding()
            i = bx * 64 + tx
            if i < T.min(n, m):
                Y[i] = alpha * X[i] + Y[i]

    return main


@pytest.mark.everywhere
def test_pointers_and_scalars():
    x, y = torch.randn(100), torch.randn(100)
    ref = torch.cat([0.5 * x[:90] + y[:90], y[90:]])
    saxpy_by_pointer(100)(x.data_ptr(), y.data_ptr(), 0.5, 90)
    torch.testing.assert_close(y, ref)
