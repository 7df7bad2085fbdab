"""Kernels whose threads depend on each other: barriers, copies under way, swizzled tiles."""

from __future__ import annotations

from typing import Any

import tilelang.language as T
from testing.mutation.registry import kernel


@kernel()
def swizzled_product() -> Any:
    """Matrix instructions on swizzled tiles, three stages, a result staged in shared memory."""
    M, N, K, BM, BN, BK = 64, 64, 160, 32, 32, 32

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
             C: T.Tensor((M, N), "float16")):  # fmt: skip
        with T.Kernel(N // BN, M // BM, threads=128) as (bx, by):
            X = T.alloc_shared((BM, BK), "float16")
            Y = T.alloc_shared((BK, BN), "float16")
            Z = T.alloc_fragment((BM, BN), "float32")
            S = T.alloc_shared((BM, BN), "float16")
            T.clear(Z)
            for k in T.Pipelined(K // BK, num_stages=3):
                T.copy(A[by * BM, k * BK], X)
                T.copy(B[k * BK, bx * BN], Y)
                T.gemm(X, Y, Z)
            T.copy(Z, S)
            T.copy(S, C[by * BM, bx * BN])

    return main


@kernel()
def reversed_tile() -> Any:
    """Every thread reads what another one wrote, time and again."""

    @T.prim_func
    def main(A: T.Tensor((4, 96), "int32"), C: T.Tensor((4, 96), "int32")):
        with T.Kernel(1, threads=96):
            S = T.alloc_shared((96,), "int32")
            X = T.alloc_fragment((96,), "int32")
            for r in T.serial(4):
                T.copy(A[r, 0:96], S)
                for i in T.Parallel(96):
                    X[i] = S[95 - i] + i
                T.copy(X, C[r, 0:96])

    return main


@kernel()
def branch_behind_an_exchange() -> Any:
    """Some threads read what others wrote, so that the barrier has to stand before the branch."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), C: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "int32")
            T.copy(A, S)
            C[tx] = 0
            if tx < 24:
                C[tx] = S[63 - tx]
            T.sync_threads()
            C[tx] = C[tx] + S[tx]

    return main


@kernel()
def reused_memory() -> Any:
    """Two tiles that never live together, and what one left is read by other threads."""

    @T.prim_func
    def main(A: T.Tensor((2, 64), "float32"), C: T.Tensor((2, 64), "float32")):
        with T.Kernel(1, threads=64):
            P = T.alloc_shared((64,), "float32")
            Q = T.alloc_shared((64,), "float32")
            T.copy(A[0, 0:64], P)
            for i in T.Parallel(64):
                C[0, i] = P[63 - i]
            T.copy(A[1, 0:64], Q)
            for i in T.Parallel(64):
                C[1, i] = Q[(i + 32) % 64]

    return main


@kernel()
def live_together() -> Any:
    """Two tiles that are needed at once."""

    @T.prim_func
    def main(A: T.Tensor((2, 64), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            P = T.alloc_shared((64,), "float32")
            Q = T.alloc_shared((64,), "float32")
            T.copy(A[0, 0:64], P)
            T.copy(A[1, 0:64], Q)
            for i in T.Parallel(64):
                C[i] = P[63 - i] - Q[(i + 32) % 64]

    return main


@kernel()
def odd_tiles() -> Any:
    """Extents that no number of threads divides, moved through registers and shared memory."""

    @T.prim_func
    def main(A: T.Tensor((7, 37), "int16"), C: T.Tensor((37, 7), "int16")):
        with T.Kernel(1, threads=96):
            X = T.alloc_fragment((7, 37), "int16")
            S = T.alloc_shared((37, 7), "int16")
            T.copy(A, X)
            for i, j in T.Parallel(7, 37):
                S[j, i] = X[i, j] + i
            T.copy(S, C)

    return main


@kernel()
def row_results() -> Any:
    """Reductions along and across warps, whose results several threads hold and one writes."""

    @T.prim_func
    def main(A: T.Tensor((4, 200), "int32"), C: T.Tensor((4,), "int32"),
             C2: T.Tensor((200,), "int32"), C3: T.Tensor((1,), "int32")):  # fmt: skip
        with T.Kernel(1, threads=128):
            X = T.alloc_fragment((4, 200), "int32")
            R = T.alloc_fragment((4,), "int32")
            Q = T.alloc_fragment((200,), "int32")
            T.copy(A, X)
            T.reduce_sum(X, R, dim=1)
            T.reduce_max(X, Q, dim=0)
            for i in T.Parallel(4):
                C[i] = R[i]
                T.atomic_add(C3[0], R[i])
            T.copy(Q, C2)

    return main


@kernel()
def block_scalars() -> Any:
    """Scalar code of a block, which happens once, and a local array that all threads fill."""

    @T.prim_func
    def main(A: T.Tensor((40,), "int32"), C: T.Tensor((40,), "int32"),
             C2: T.Tensor((2,), "int32")):  # fmt: skip
        with T.Kernel(3, threads=64) as b:
            own = T.alloc_local((40,), "int32")
            T.copy(A, own)
            T.atomic_add(C2[0], own[b])
            if b == 1:
                T.copy(own, C)
                C2[1] = C[3] + own[11]

    return main


@kernel()
def swizzled_by_elements() -> Any:
    """An operand of a matrix product that is written one element at a time."""

    @T.prim_func
    def main(A: T.Tensor((32, 64), "float16"), B: T.Tensor((32, 64), "float16"),
             C: T.Tensor((32, 32), "float32")):  # fmt: skip
        with T.Kernel(1, threads=64):
            X = T.alloc_shared((32, 64), "float16")
            Y = T.alloc_shared((64, 32), "float16")
            Z = T.alloc_fragment((32, 32), "float32")
            T.copy(A, X)
            for i, j in T.Parallel(32, 64):
                Y[j, i] = B[i, j] + T.cast(1, "float16")
            T.clear(Z)
            T.gemm(X, Y, Z)
            T.copy(Z, C)

    return main


@kernel()
def few_iterations() -> Any:
    """Fewer iterations than threads, unaligned neighbours, a condition inside of a vector."""

    @T.prim_func
    def main(A: T.Tensor((260,), "float32"), C: T.Tensor((8,), "float32"),
             C2: T.Tensor((256,), "float32"), C3: T.Tensor((256,), "float32")):  # fmt: skip
        with T.Kernel(1, threads=64):
            for i in T.Parallel(8):
                C[i] = A[i] + T.cast(i, "float32")
            for i in T.Parallel(256):
                C2[i] = A[i + 1]
            for i in T.Parallel(256):
                if i < 149:
                    C3[i] = A[i]

    return main


@kernel()
def tile_and_its_mirror() -> Any:
    """Threads need elements of a tile that others hold."""

    @T.prim_func
    def main(A: T.Tensor((16, 16), "int32"), C: T.Tensor((16, 16), "int32")):
        with T.Kernel(1, threads=64):
            X = T.alloc_fragment((16, 16), "int32")
            Y = T.alloc_fragment((16, 16), "int32")
            T.copy(A, X)
            for i, j in T.Parallel(16, 16):
                Y[j, i] = X[i, j]
            for i, j in T.Parallel(16, 16):
                C[i, j] = X[i, j] - Y[i, j]

    return main
