"""Programs that several behaviour tests build, written the way published kernels are."""

from __future__ import annotations

import torch

import tilelang.language as T


def gemm(
    M,
    N,
    K,
    block=(64, 64, 32),
    dtype="float16",
    out_dtype="float16",
    accum_dtype="float32",
    transpose_A=False,
    transpose_B=False,
    num_stages=0,
    threads=128,
):
    """``C = op(A) @ op(B)`` on tiles ``block = (M, N, K)``."""
    block_M, block_N, block_K = block
    A_shape, A_tile = ((K, M), (block_K, block_M)) if transpose_A else ((M, K), (block_M, block_K))
    B_shape, B_tile = ((N, K), (block_N, block_K)) if transpose_B else ((K, N), (block_K, block_N))

    @T.prim_func
    def main(
        A: T.Tensor(A_shape, dtype), B: T.Tensor(B_shape, dtype), C: T.Tensor((M, N), out_dtype)
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared(A_tile, dtype)
            B_shared = T.alloc_shared(B_tile, dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if transpose_A:
                    T.copy(A[k * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, k * block_K], A_shared)
                if transpose_B:
                    T.copy(B[bx * block_N, k * block_K], B_shared)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A, transpose_B)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def matmul(a, b, dtype=torch.float16, transpose_A=False, transpose_B=False):
    """What :func:`gemm` computes, by torch."""
    # Exact for the integers of these tests too; torch has no integer products on a GPU.
    left = (a.T if transpose_A else a).double()
    right = (b.T if transpose_B else b).double()
    return (left @ right).to(dtype)
