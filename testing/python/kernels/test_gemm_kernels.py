"""GEMM kernels as they are published: layouts, epilogues, split-K, stream-K, persistent."""

from __future__ import annotations

import math

import pytest
import torch
from devices import ON_CPU

import tilelang
import tilelang.language as T


def randn(*shape, dtype=torch.float16):
    return torch.randn(*shape).to(dtype)


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, trans_A, trans_B, dtype="float16", accum_dtype="float", num_stages=2):
    block_M, block_N, block_K = 32, 32, 16
    A_shape = (K, M) if trans_A else (M, K)
    B_shape = (N, K) if trans_B else (K, N)
    A_shared_shape = (block_K, block_M) if trans_A else (block_M, block_K)
    B_shared_shape = (block_N, block_K) if trans_B else (block_K, block_N)

    @T.prim_func
    def main(
        A: T.Tensor(A_shape, dtype),
        B: T.Tensor(B_shape, dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared(A_shared_shape, dtype)
            B_shared = T.alloc_shared(B_shared_shape, dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.use_swizzle(panel_size=10, enable=True)
            T.annotate_layout({A_shared: tilelang.layout.make_swizzled_layout(A_shared)})
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if trans_A:
                    T.copy(A[k * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, k * block_K], A_shared)
                if trans_B:
                    T.copy(B[bx * block_N, k * block_K], B_shared)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, trans_A, trans_B)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@pytest.mark.devices
@pytest.mark.parametrize("trans_A", [False, True])
@pytest.mark.parametrize("trans_B", [False, True])
def test_layouts_of_operands(trans_A, trans_B):
    M, N, K = 70, 50, 40
    kernel = matmul(M, N, K, trans_A, trans_B)

    def ref_program(A, B):
        A, B = A.float(), B.float()
        return ((A.T if trans_A else A) @ (B.T if trans_B else B)).half()

    kernel.get_profiler().assert_allclose(ref_program, rtol=1e-2, atol=1e-2)
    assert "matmul" in kernel.get_kernel_source() or "main" in kernel.get_kernel_source()


@tilelang.jit(out_idx=[3])
def linear_gelu(M, N, K, block_M, block_N, block_K, dtype=T.float16, accum_dtype=T.float32):
    @T.prim_func
    def main(
        X: T.Tensor[(M, K), dtype],
        W: T.Tensor[(N, K), dtype],
        bias: T.Tensor[(N,), dtype],
        Y: T.Tensor[(M, N), dtype],
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            X_s = T.alloc_shared([block_M, block_K], dtype)
            W_s = T.alloc_shared([block_N, block_K], dtype)
            bias_s = T.alloc_shared([block_N], dtype)
            acc = T.alloc_fragment([block_M, block_N], accum_dtype)
            out_s = T.alloc_shared([block_M, block_N], dtype)
            T.clear(acc)
            T.copy(bias[bx * block_N], bias_s)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(X[by * block_M, ko * block_K], X_s)
                T.copy(W[bx * block_N, ko * block_K], W_s)
                T.gemm(X_s, W_s, acc, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, block_N):
                acc[i, j] = acc[i, j] + T.cast(bias_s[j], accum_dtype)
                acc[i, j] = 0.5 * acc[i, j] * (1.0 + T.erf(acc[i, j] * 0.7071067811865476))
            T.copy(acc, out_s)
            T.copy(out_s, Y[by * block_M, bx * block_N])

    return main


@pytest.mark.everywhere
def test_bias_and_gelu_epilogue():
    M, N, K = 40, 24, 48
    x, w, b = randn(M, K), randn(N, K), randn(N)
    y = linear_gelu(M, N, K, 32, 16, 16)(x, w, b)
    ref = torch.nn.functional.gelu(x.float() @ w.float().T + b.float())
    torch.testing.assert_close(y.float(), ref, rtol=1e-2, atol=1e-2)


@tilelang.jit
def matmul_splitk(M, N, K, block_M, block_N, block_K, split_k, dtype, accum_dtype, out_dtype):
    splitK = K // split_k

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), split_k, threads=128) as (
            bx,
            by,
            bz,
        ):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_shared = T.alloc_shared((block_M, block_N), out_dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(splitK, block_K), num_stages=0):
                T.copy(A[by * block_M, bz * splitK + ko * block_K], A_shared)
                T.copy(B[bx * block_N, bz * splitK + ko * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C_shared)
            T.atomic_add(C[by * block_M, bx * block_N], C_shared)

    return main


@pytest.mark.everywhere
def test_split_k_adds_atomically():
    M, N, K = 32, 48, 64
    a, b = randn(M, K), randn(N, K)
    c = torch.zeros(M, N)
    matmul_splitk(M, N, K, 32, 16, 16, 4, "float16", "float32", "float32")(a, b, c)
    torch.testing.assert_close(c, a.float() @ b.float().T, rtol=1e-2, atol=1e-2)


@tilelang.jit(out_idx=[-1])
def matmul_splitk_elementwise(M, N, K, block_M, block_N, block_K, split_k):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        partial: T.Tensor((split_k, M, N), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), split_k) as (bx, by, bz):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K // split_k, block_K), num_stages=2):
                k = bz * (K // split_k) + ko * block_K
                T.copy(A[by * block_M, k], A_shared)
                T.copy(B[k, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, partial[bz, by * block_M, bx * block_N])
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            acc = T.alloc_fragment((block_M, block_N), "float32")
            tile = T.alloc_shared((block_M, block_N), "float32")
            T.clear(acc)
            for s in T.serial(split_k):
                T.copy(partial[s, by * block_M, bx * block_N], tile)
                for i, j in T.Parallel(block_M, block_N):
                    acc[i, j] += tile[i, j]
            T.copy(acc, C[by * block_M, bx * block_N])

    return main


@pytest.mark.devices
def test_split_k_in_two_launches():
    a, b = randn(32, 64), randn(64, 32)
    kernel = matmul_splitk_elementwise(32, 32, 64, 16, 16, 16, 2)
    c = kernel(a, b, torch.empty(2, 32, 32))
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-2, atol=1e-2)


def stream_k_partition(M, N, K, block_M, block_N, block_K, programs):
    tiles_m, tiles_n = math.ceil(M / block_M), math.ceil(N / block_N)
    iters_per_tile = math.ceil(K / block_K)
    total_tiles = tiles_m * tiles_n
    streamk_tiles = total_tiles % programs
    if total_tiles - streamk_tiles >= programs:
        streamk_tiles += programs
    streamk_iters = streamk_tiles * iters_per_tile
    return streamk_tiles, streamk_iters // programs, streamk_iters % programs, iters_per_tile


@tilelang.jit
def matmul_streamk(M, N, K, block_M, block_N, block_K, programs, dtype="float16"):
    accum_dtype = "float32"
    num_block_n = T.ceildiv(N, block_N)
    total_tiles = math.ceil(M / block_M) * math.ceil(N / block_N)
    streamk_tiles, full_tiles, partial_tiles, iters_per_tile = stream_k_partition(
        M, N, K, block_M, block_N, block_K, programs
    )
    dataparallel_tiles = total_tiles - streamk_tiles
    tiles_per_program = math.ceil(dataparallel_tiles / programs)

    @T.macro
    def compute_first_wave(pid, A_buf, A_s, B_buf, B_s, C, C_local):
        start_iter = T.alloc_var("int32")
        end_iter = T.alloc_var("int32")
        start_iter = pid * full_tiles + T.min(pid, partial_tiles)
        last_iter = (pid + 1) * full_tiles + T.min(pid + 1, partial_tiles)
        while start_iter < last_iter:
            end_iter = T.min(
                start_iter + (iters_per_tile - (start_iter % iters_per_tile)), last_iter
            )
            tile_id = start_iter // iters_per_tile
            remain_iters = start_iter % iters_per_tile
            pid_m = tile_id // num_block_n
            pid_n = tile_id % num_block_n
            T.clear(C_local)
            for k in T.Pipelined(end_iter - start_iter, num_stages=2):
                T.copy(A_buf[pid_m * block_M, (k + remain_iters) * block_K], A_s)
                T.copy(B_buf[pid_n * block_N, (k + remain_iters) * block_K], B_s)
                T.gemm(A_s, B_s, C_local, transpose_B=True)
            if remain_iters == 0 and (end_iter % iters_per_tile) == 0:
                T.copy(C_local, C[pid_m * block_M, pid_n * block_N])
            else:
                for i, j in T.Parallel(block_M, block_N):
                    T.atomic_add(C[pid_m * block_M + i, pid_n * block_N + j], C_local[i, j])
            start_iter = end_iter

    @T.macro
    def compute_full_tiles(pid, A_buf, A_s, B_buf, B_s, C, C_local):
        for p in T.serial(tiles_per_program):
            tile_id = pid + streamk_tiles + p * programs
            if tile_id < total_tiles:
                pid_m = tile_id // num_block_n
                pid_n = tile_id % num_block_n
                T.clear(C_local)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=1):
                    T.copy(A_buf[pid_m * block_M, k * block_K], A_s)
                    T.copy(B_buf[pid_n * block_N, k * block_K], B_s)
                    T.gemm(A_s, B_s, C_local, transpose_B=True)
                T.copy(C_local, C[pid_m * block_M, pid_n * block_N])

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(programs, threads=256) as pid:
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            compute_first_wave(pid, A, A_shared, B, B_shared, C, C_local)
            if tiles_per_program > 0:
                compute_full_tiles(pid, A, A_shared, B, B_shared, C, C_local)

    return main


@pytest.mark.everywhere
@pytest.mark.parametrize("programs", [3, 5])
def test_stream_k(programs):
    M, N, K = 64, 48, 80
    a, b, c = randn(M, K), randn(N, K), torch.zeros(M, N)
    matmul_streamk(M, N, K, 16, 16, 16, programs)(a, b, c)
    torch.testing.assert_close(c, a.float() @ b.float().T, rtol=1e-2, atol=1e-2)


@tilelang.jit(out_idx=[-1])
def matmul_persistent(M, N, K, block_M, block_N, block_K, sm_num, use_persistent_primitive):
    dtype, accum_dtype = "bfloat16", "float32"
    m_blocks, n_blocks = T.ceildiv(M, block_M), T.ceildiv(N, block_N)
    waves = T.ceildiv(m_blocks * n_blocks, sm_num)
    group_size = 8

    @T.prim_func
    def by_hand(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(sm_num, threads=128) as (block_id):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            C_shared = T.alloc_shared((block_M, block_N), dtype)
            for w in T.serial(waves):
                tile_id = sm_num * w + block_id
                bx = (tile_id // group_size) % m_blocks
                by = (tile_id % group_size) + (tile_id // group_size) // m_blocks * group_size
                if bx * block_M < M and by * block_N < N:
                    T.clear(C_local)
                    for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                        T.copy(A[bx * block_M, k * block_K], A_shared)
                        T.copy(B[k * block_K, by * block_N], B_shared)
                        T.gemm(A_shared, B_shared, C_local)
                    T.copy(C_local, C_shared)
                    T.copy(C_shared, C[bx * block_M, by * block_N])

    @T.prim_func
    def by_primitive(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)
    ):
        with T.Kernel(sm_num, threads=128) as (block_id):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            for bx, by in T.Persistent([m_blocks, n_blocks], sm_num, block_id):
                T.clear(C_local)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                    T.copy(A[bx * block_M, k * block_K], A_shared)
                    T.copy(B[k * block_K, by * block_N], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                T.copy(C_local, C[bx * block_M, by * block_N])

    return by_primitive if use_persistent_primitive else by_hand


@pytest.mark.everywhere
@pytest.mark.parametrize("use_persistent_primitive", [False, True])
def test_persistent(use_persistent_primitive):
    # the groups of by_hand are 8 column tiles wide, and all of them must be full
    M, N, K = 40, 120, 24
    a, b = randn(M, K, dtype=torch.bfloat16), randn(K, N, dtype=torch.bfloat16)
    c = matmul_persistent(M, N, K, 16, 16, 8, 5, use_persistent_primitive)(a, b)
    torch.testing.assert_close(c.float(), a.float() @ b.float(), rtol=2e-2, atol=2e-2)


@tilelang.jit
def bmm(A, B, block_M: int = 16, block_N: int = 16, block_K: int = 16):
    Bt, M, N, K = T.const("Bt M N K")
    A: T.Tensor[[Bt, M, K], T.float32]
    B: T.Tensor[[Bt, K, N], T.float32]
    C = T.empty((Bt, M, N), T.float32)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), Bt, threads=64) as (bx, by, bz):
        A_s = T.alloc_shared((block_M, block_K), T.float32)
        B_s = T.alloc_shared((block_K, block_N), T.float32)
        acc = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[bz, by * block_M, k * block_K], A_s)
            T.copy(B[bz, k * block_K, bx * block_N], B_s)
            T.gemm(A_s, B_s, acc)
        T.copy(acc, C[bz, by * block_M, bx * block_N])
    return C


@pytest.mark.everywhere
def test_batched_eager(way):
    # Matrix instructions of GPUs take float32 as tfloat32.
    error = 1e-4 if way in ON_CPU else 2e-2
    a, b = torch.randn(3, 20, 18), torch.randn(3, 18, 33)
    torch.testing.assert_close(bmm(a, b), a @ b, rtol=error, atol=error)
    a, b = torch.randn(2, 5, 7), torch.randn(2, 7, 9)
    torch.testing.assert_close(bmm(a, b, block_M=8), a @ b, rtol=error, atol=error)


@tilelang.jit(out_idx=[2])
def int8_gemm(M, N, K, block=32):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "int8"), B: T.Tensor((N, K), "int8"), C: T.Tensor((M, N), "int32")
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_s = T.alloc_shared((block, block), "int8")
            B_s = T.alloc_shared((block, block), "int8")
            C_l = T.alloc_fragment((block, block), "int32")
            T.clear(C_l)
            for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                T.copy(A[by * block, k * block], A_s)
                T.copy(B[bx * block, k * block], B_s)
                T.gemm(A_s, B_s, C_l, transpose_B=True)
            T.copy(C_l, C[by * block, bx * block])

    return main


@pytest.mark.everywhere
def test_int8():
    a = torch.randint(-128, 128, (50, 70), dtype=torch.int8)
    b = torch.randint(-128, 128, (40, 70), dtype=torch.int8)
    c = int8_gemm(50, 40, 70)(a, b)
    # By way of floats, which hold these sums: torch has no integer products on a GPU.
    assert torch.equal(c, (a.double() @ b.double().T).int())


@tilelang.jit(out_idx=[-1])
def fp8_scaled_gemm(M, N, K, in_dtype, out_dtype, accum_dtype):
    """DeepSeek's per-128 scales, with a second accumulator, on blocks of ``group``."""
    group, block_M, block_N, block_K = 32, 32, 32, 32
    A_shape, B_shape = (M, K), (N, K)
    Scales_A_shape = (M, T.ceildiv(K, group))
    Scales_B_shape = (T.ceildiv(N, group), T.ceildiv(K, group))

    @T.prim_func
    def main(
        A: T.Tensor(A_shape, in_dtype),
        B: T.Tensor(B_shape, in_dtype),
        scales_a: T.Tensor(Scales_A_shape, "float32"),
        scales_b: T.Tensor(Scales_B_shape, "float32"),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), in_dtype)
            B_shared = T.alloc_shared((block_N, block_K), in_dtype)
            C_shared = T.alloc_shared((block_M, block_N), out_dtype)
            Scale_C_shared = T.alloc_shared((block_M), "float32")
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            C_local_accum = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.use_swizzle(panel_size=10)
            T.clear(C_local)
            T.clear(C_local_accum)
            K_iters = T.ceildiv(K, block_K)
            for k in T.Pipelined(K_iters, num_stages=4):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                Scale_B = scales_b[bx * block_N // group, k]
                for i in T.Parallel(block_M):
                    Scale_C_shared[i] = scales_a[by * block_M + i, k] * Scale_B
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
                for i, j in T.Parallel(block_M, block_N):
                    C_local_accum[i, j] += C_local[i, j] * Scale_C_shared[i]
                T.clear(C_local)
            T.copy(C_local_accum, C_shared)
            T.copy(C_shared, C[by * block_M, bx * block_N])

    return main


@pytest.mark.everywhere
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_fp8_with_scales(name):
    M, N, K = 48, 64, 96
    dtype = getattr(torch, name)
    a, b = randn(M, K).to(dtype), randn(N, K).to(dtype)
    sa, sb = torch.rand(M, K // 32) + 0.5, torch.rand(N // 32, K // 32) + 0.5
    c = fp8_scaled_gemm(M, N, K, name, "bfloat16", "float32")(a, b, sa, sb)
    wide_a = a.float() * sa.repeat_interleave(32, 1)
    wide_b = b.float() * sb.repeat_interleave(32, 0).repeat_interleave(32, 1)
    torch.testing.assert_close(c.float(), wide_a @ wide_b.T, rtol=2e-2, atol=5e-2)


@tilelang.jit(out_idx=[-1])
def blocksparse_matmul(M, N, K, block_M, block_N, block_K, num_stages, thread_num, enable_raster):
    block_mask_shape = (M // block_M, N // block_N, K // block_K)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        BlockMask: T.Tensor(block_mask_shape, "bool"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=thread_num) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float")
            C_shared = T.alloc_shared((block_M, block_N), "float16")
            T.use_swizzle(panel_size=10, enable=enable_raster)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if BlockMask[by, bx, k]:
                    T.copy(A[by * block_M, k * block_K], A_shared)
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C_shared)
            T.copy(C_shared, C[by * block_M, bx * block_N])

    return main


@pytest.mark.everywhere
def test_block_sparse():
    M, N, K, block = 64, 48, 64, 16
    a, b = randn(M, K), randn(K, N)
    mask = torch.rand(M // block, N // block, K // block) > 0.5
    c = blocksparse_matmul(M, N, K, block, block, block, 2, 128, True)(a, b, mask)
    ref = torch.zeros(M, N)
    for i in range(M // block):
        for j in range(N // block):
            for k in range(K // block):
                if mask[i, j, k]:
                    rows, cols = (
                        slice(i * block, (i + 1) * block),
                        slice(j * block, (j + 1) * block),
                    )
                    mid = slice(k * block, (k + 1) * block)
                    ref[rows, cols] += a[rows, mid].float() @ b[mid, cols].float()
    torch.testing.assert_close(c.float(), ref, rtol=1e-2, atol=1e-2)


@tilelang.jit(out_idx=[2])
def grouped_gemm(batch_sizes_list, K, N, block_M, block_N, block_K, dtype="float16"):
    batch_sum, batch_count = sum(batch_sizes_list), len(batch_sizes_list)
    total_m_blocks = sum(math.ceil(size / block_M) for size in batch_sizes_list)

    @T.prim_func
    def kernel(
        A: T.Tensor([batch_sum, K], dtype),
        B: T.Tensor([batch_count, K, N], dtype),
        C: T.Tensor([batch_sum, N], dtype),
        batch_sizes: T.Tensor([batch_count], "int32"),
        batch_offsets: T.Tensor([batch_count], "int32"),
        batch_padded_offsets: T.Tensor([batch_count], "int32"),
    ):
        with T.Kernel(total_m_blocks, T.ceildiv(N, block_N), threads=128) as (bx, by):
            A_shared = T.alloc_shared([block_M, block_K], dtype)
            B_shared = T.alloc_shared([block_K, block_N], dtype)
            C_local = T.alloc_fragment([block_M, block_N], "float32")
            cur_batch_idx = T.alloc_local([1], "int32")
            cur_batch_size = T.alloc_local([1], "int32")

            m_start_padded = bx * block_M
            for i in range(batch_count):
                in_cur_batch_idx = m_start_padded >= batch_padded_offsets[i]
                cur_batch_idx[0] = T.if_then_else(in_cur_batch_idx, i, cur_batch_idx[0])

            cur_batch_size[0] = batch_sizes[cur_batch_idx[0]]
            m_start = (
                m_start_padded
                - batch_padded_offsets[cur_batch_idx[0]]
                + batch_offsets[cur_batch_idx[0]]
            )
            actual_rows = T.max(
                0,
                T.min(
                    block_M,
                    cur_batch_size[0] + batch_padded_offsets[cur_batch_idx[0]] - m_start_padded,
                ),
            )

            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=1):
                T.copy(A[m_start : m_start + block_M, k * block_K : (k + 1) * block_K], A_shared)
                T.copy(
                    B[
                        cur_batch_idx[0],
                        k * block_K : (k + 1) * block_K,
                        by * block_N : (by + 1) * block_N,
                    ],
                    B_shared,
                )
                T.gemm(A_shared, B_shared, C_local)

            for i, j in T.Parallel(block_M, block_N):
                if i < actual_rows:
                    C[m_start + i, by * block_N + j] = C_local[i, j]

    return kernel


@pytest.mark.everywhere
def test_grouped_by_expert_offsets():
    sizes, K, N, block_M = [5, 0, 17, 16, 33], 24, 40, 16
    offsets, padded, at, at_padded = [], [], 0, 0
    for size in sizes:
        offsets.append(at)
        padded.append(at_padded)
        at += size
        at_padded += math.ceil(size / block_M) * block_M
    a, b = randn(sum(sizes), K), randn(len(sizes), K, N)
    as_int = lambda values: torch.tensor(values, dtype=torch.int32)  # noqa: E731
    kernel = grouped_gemm(tuple(sizes), K, N, block_M, 32, 16)
    c = kernel(a, b, as_int(sizes), as_int(offsets), as_int(padded))
    ref = torch.cat(
        [
            a[o : o + s].float() @ b[e].float()
            for e, (o, s) in enumerate(zip(offsets, sizes, strict=True))
        ]
    )
    torch.testing.assert_close(c.float(), ref, rtol=1e-2, atol=1e-2)


@tilelang.jit(out_idx=[-1])
def gemv(N, K, BLOCK_N, reduce_threads, dtype="float16", accum_dtype="float"):
    MAX_TRANSACTION_SIZE_IN_BITS = 128
    TILE_K = MAX_TRANSACTION_SIZE_IN_BITS // T.dtype(dtype).bits
    BLOCK_K = reduce_threads * TILE_K

    @T.prim_func
    def main(A: T.Tensor((K,), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, BLOCK_N), threads=(BLOCK_N, reduce_threads)) as bn:
            tn = T.get_thread_binding(0)
            tk = T.get_thread_binding(1)
            A_local = T.alloc_local((TILE_K,), dtype)
            B_local = T.alloc_local((TILE_K,), dtype)
            C_accum = T.alloc_local((1,), accum_dtype)
            C_reduced = T.alloc_local((1,), accum_dtype)
            T.clear(C_accum)
            for bk in T.serial(T.ceildiv(K, BLOCK_K)):
                for k in T.vectorized(TILE_K):
                    A_local[k] = A[bk * BLOCK_K + tk * TILE_K + k]
                    B_local[k] = B[bn * BLOCK_N + tn, bk * BLOCK_K + tk * TILE_K + k]
                for k in T.serial(TILE_K):
                    C_accum[0] += A_local[k].astype(accum_dtype) * B_local[k].astype(accum_dtype)
            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.cast(0, accum_dtype)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(
                    T.tvm_thread_allreduce(
                        T.uint32(1), C_accum[0], True, C_reduced[0], tk, dtype="handle"
                    )
                )
            C[bn * BLOCK_N + tn] = C_reduced[0]

    return main


@pytest.mark.everywhere
def test_gemv_with_thread_allreduce(monkeypatch):
    monkeypatch.setenv("TILELANG_EMULATOR_CHECKS", "bounds")  # threads of a row write the same sum
    N, K = 24, 64
    a, b = randn(K), randn(N, K)
    c = gemv(N, K, 4, 8)(a, b)
    torch.testing.assert_close(c.float(), b.float() @ a.float(), rtol=1e-2, atol=1e-2)


@tilelang.jit(out_idx=[-1])
def gemv_tiles(N, K, block_N, block_K):
    @T.prim_func
    def main(
        A: T.Tensor((K,), "float32"), B: T.Tensor((N, K), "float32"), C: T.Tensor((N,), "float32")
    ):
        with T.Kernel(T.ceildiv(N, block_N), threads=block_N) as bn:
            A_shared = T.alloc_shared((block_K,), "float32")
            B_shared = T.alloc_shared((block_N, block_K), "float32")
            prod = T.alloc_fragment((block_N, block_K), "float32")
            acc = T.alloc_fragment((block_N,), "float32")
            T.clear(acc)
            for bk in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[bk * block_K], A_shared)
                T.copy(B[bn * block_N, bk * block_K], B_shared)
                for i, j in T.Parallel(block_N, block_K):
                    prod[i, j] = A_shared[j] * B_shared[i, j]
                T.reduce_sum(prod, acc, dim=1, clear=False)
            T.copy(acc, C[bn * block_N])

    return main


@pytest.mark.devices
def test_gemv_on_tiles():
    a, b = torch.randn(100), torch.randn(37, 100)
    torch.testing.assert_close(gemv_tiles(37, 100, 16, 32)(a, b), b @ a, rtol=1e-4, atol=1e-4)
