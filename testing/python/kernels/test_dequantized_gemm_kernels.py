"""GEMM with weights of 4 bits: signed integers, fp4 by bits, NF4 by table; quantisation a token."""

from __future__ import annotations

import pytest
import torch

import tilelang
import tilelang.language as T

NF4 = [
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
]


def unpack(packed):
    """The 4-bit values of bytes, low nibble first."""
    return torch.stack([packed & 15, packed >> 4], dim=-1).flatten(-2)


@tilelang.jit(out_idx=[-1])
def matmul_int4(M, N, K, block_M=32, block_N=32, block_K=32, num_bits=4, threads=128):
    in_dtype, accum_dtype, storage_dtype = "float16", "float32", "int8"
    num_elems_per_byte = 8 // num_bits

    def _tir_u8_to_i4_to_f16(nbit: int, val: tilelang.tvm.ir.Expr, pos, dtype: str):
        assert nbit == 4
        assert dtype == "float16"
        mask = T.Cast("int8", (1 << nbit) - 1) if hasattr(T, "Cast") else T.int8((1 << nbit) - 1)
        i4 = (val >> (pos.astype("int8") * T.int8(nbit))) & mask
        i4_shifted = (i4 << T.int8(4)) >> T.int8(4)
        return i4_shifted.astype(dtype)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), in_dtype),
        B: T.Tensor((N, K // num_elems_per_byte), storage_dtype),
        C: T.Tensor((M, N), in_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), in_dtype)
            B_shared = T.alloc_shared((block_N, block_K // num_elems_per_byte), storage_dtype)
            B_local = T.alloc_fragment((block_N, block_K // num_elems_per_byte), storage_dtype)
            B_dequantize_local = T.alloc_fragment((block_N, block_K), in_dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K // num_elems_per_byte], B_shared)
                T.copy(B_shared, B_local)
                for i, j in T.Parallel(block_N, block_K):
                    B_dequantize_local[i, j] = _tir_u8_to_i4_to_f16(
                        num_bits,
                        B_local[i, j // num_elems_per_byte],
                        j % num_elems_per_byte,
                        dtype=in_dtype,
                    )
                T.gemm(A_shared, B_dequantize_local, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@pytest.mark.everywhere
def test_int4_by_shifts():
    M, N, K = 40, 50, 64
    a = torch.randn(M, K).half()
    packed = torch.randint(0, 256, (N, K // 2), dtype=torch.int32)
    c = matmul_int4(M, N, K)(a, packed.to(torch.uint8).view(torch.int8))
    values = unpack(packed)
    values = torch.where(values > 7, values - 16, values)
    torch.testing.assert_close(c.float(), a.float() @ values.float().T, rtol=1e-2, atol=0.1)


@tilelang.jit(out_idx=[-1])
def matmul_fp4(M, N, K, block_M=16, block_N=32, block_K=32, split=1):
    in_dtype, out_dtype, accum_dtype, storage_dtype = "bfloat16", "bfloat16", "float32", "uint8"
    num_elems_per_byte = 2

    @T.macro
    def _tir_u8_to_f4_to_bf16(val, pos, out: T.Ref):
        u4 = (val >> (pos * 4).astype("uint8")).astype("uint16") & T.uint16(15)
        s = u4 >> T.uint16(3)
        e_m = u4 & T.uint16(7)
        e = e_m >> T.uint16(1)
        m = e_m & T.uint16(1)
        normal = (s << T.uint16(15)) | ((e + T.uint16(126)) << T.uint16(7)) | (m << T.uint16(6))
        half = (s << T.uint16(15)) | (m * T.uint16(0x3F00))
        out = T.reinterpret(T.if_then_else(e == 0, half, normal), "bfloat16")  # noqa: F841

    @T.prim_func
    def main(
        A: T.Tensor((M, K), in_dtype),
        B: T.Tensor((N, K // num_elems_per_byte), storage_dtype),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), in_dtype)
            B_shared = T.alloc_shared((block_N, block_K // num_elems_per_byte), storage_dtype)
            B_local = T.alloc_fragment((block_N, block_K // num_elems_per_byte), storage_dtype)
            B_dequantize_local = T.alloc_fragment((block_N, block_K), in_dtype)
            B_dequantize_prev = T.alloc_fragment((block_N, block_K), in_dtype)
            Ct_local = T.alloc_fragment((block_N, block_M), accum_dtype)
            Ct_shared = T.alloc_shared((block_N, block_M), out_dtype)
            T.clear(Ct_local)
            for k in T.Pipelined(K // block_K, num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K // num_elems_per_byte], B_shared)
                T.copy(B_shared, B_local)
                for i, j in T.Parallel(block_N, block_K):
                    _tir_u8_to_f4_to_bf16(B_local[i, j // 2], j % 2, B_dequantize_local[i, j])
                T.copy(B_dequantize_local, B_dequantize_prev)
                T.gemm(B_dequantize_prev, A_shared, Ct_local, transpose_B=True)
            T.copy(Ct_local, Ct_shared)
            for i, j in T.Parallel(block_M, block_N):
                C[by * block_M + i, bx * block_N + j] = Ct_shared[j, i]

    return main


@pytest.mark.everywhere
def test_fp4_by_bits():
    M, N, K = 20, 64, 96
    a = torch.randn(M, K).bfloat16()
    packed = torch.randint(0, 256, (N, K // 2), dtype=torch.uint8)
    c = matmul_fp4(M, N, K)(a, packed)
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    b = table[unpack(packed).long()]
    torch.testing.assert_close(c.float(), a.float() @ b.T, rtol=2e-2, atol=0.2)


@tilelang.jit
def matmul_nf4(A, B, scales, LUT, group_size: int, block_M: int = 32, block_N: int = 16):
    M, N, K, G, half_K = T.const("M, N, K, G, half_K")
    block_K = group_size
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[N, half_K], T.uint8]
    scales: T.Tensor[[N, G], T.float16]
    LUT: T.Tensor[[16], T.float16]
    C = T.empty((M, N), T.float16)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), T.float16)
        B_shared = T.alloc_shared((block_N, block_K // 2), T.uint8)
        LUT_shared = T.alloc_shared((16,), T.float16)
        B_local = T.alloc_fragment((block_N, block_K), T.float16)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        T.copy(LUT, LUT_shared)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[bx * block_N, k * (block_K // 2)], B_shared)
            for i, j in T.Parallel(block_N, block_K):
                code = (B_shared[i, j // 2] >> T.cast((j % 2) * 4, "uint8")) & 0xF
                B_local[i, j] = LUT_shared[code] * scales[bx * block_N + i, k]
            T.gemm(A_shared, B_local, C_local, transpose_B=True)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


@pytest.mark.everywhere
def test_nf4_by_table():
    M, N, K, group = 33, 40, 64, 16
    a, lut = torch.randn(M, K).half(), torch.tensor(NF4).half()
    packed = torch.randint(0, 256, (N, K // 2), dtype=torch.uint8)
    scales = torch.rand(N, K // group).half() + 0.5
    c = matmul_nf4(a, packed, scales, lut, group_size=group)
    b = lut[unpack(packed).long()].float() * scales.float().repeat_interleave(group, 1)
    torch.testing.assert_close(c.float(), a.float() @ b.T, rtol=1e-2, atol=2e-2)


@tilelang.jit(out_idx=[1, 2])
def per_token_cast_to_fp8(M, N, blk_m, group_size=32):
    dtype = T.float32
    fp8_min, fp8_max = -448.0, 448.0

    @T.prim_func
    def per_token_cast(
        X: T.Tensor((M, N), dtype),
        X_fp8: T.Tensor((M, N), T.float8_e4m3fn),
        X_amax: T.Tensor((M, T.ceildiv(N, group_size)), dtype),
    ):
        with T.Kernel(T.ceildiv(M, blk_m), T.ceildiv(N, group_size), threads=128) as (bx, by):
            row, row_g_id = bx, by
            y_local = T.alloc_fragment((blk_m, group_size), dtype)
            y_amax_local = T.alloc_fragment((blk_m,), dtype)
            y_s_local = T.alloc_fragment((blk_m,), dtype)
            y_q_local = T.alloc_fragment((blk_m, group_size), dtype)
            y_q_local_fp8 = T.alloc_fragment((blk_m, group_size), T.float8_e4m3fn)

            T.annotate_layout(
                {
                    y_local: T.Fragment(
                        y_local.shape,
                        forward_thread_fn=lambda i, j: (i // (blk_m // 4)) * 32 + j % 32,
                    ),
                }
            )
            T.copy(
                X[
                    row * blk_m : (row + 1) * blk_m,
                    row_g_id * group_size : (row_g_id + 1) * group_size,
                ],
                y_local,
            )
            T.reduce_absmax(y_local, y_amax_local, dim=1)
            for i in T.Parallel(blk_m):
                y_amax_local[i] = T.max(y_amax_local[i], 1e-4)
                y_s_local[i] = y_amax_local[i] / fp8_max
            for i, j in T.Parallel(blk_m, group_size):
                y_q_local[i, j] = T.clamp(y_local[i, j] / y_s_local[i], fp8_min, fp8_max)
            T.copy(y_q_local, y_q_local_fp8)
            for i in T.Parallel(blk_m):
                X_amax[row * blk_m + i, row_g_id] = y_s_local[i]
            T.copy(
                y_q_local_fp8,
                X_fp8[
                    row * blk_m : (row + 1) * blk_m,
                    row_g_id * group_size : (row_g_id + 1) * group_size,
                ],
            )

    return per_token_cast


@pytest.mark.everywhere
def test_per_token_cast_to_fp8():
    x = torch.randn(20, 96) * 3
    quantized, scales = per_token_cast_to_fp8(20, 96, 8)(x)
    groups = x.view(20, 3, 32)
    expected = (groups.abs().amax(2).clamp(1e-4)) / 448.0
    torch.testing.assert_close(scales, expected, rtol=1e-6, atol=0)
    back = quantized.float().view(20, 3, 32) * scales[..., None]
    torch.testing.assert_close(back, groups, rtol=0.07, atol=0.01)
    assert quantized.dtype == torch.float8_e4m3fn


@tilelang.jit
def int8_per_token_quant(X, block_M: int = 4):
    M, N = T.const("M N")
    X: T.Tensor((M, N), "bfloat16")
    Q = T.empty((M, N), "int8")
    S = T.empty((M,), "float32")
    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        x = T.alloc_fragment((block_M, N), "float32")
        amax = T.alloc_fragment((block_M,), "float32")
        T.copy(X[bx * block_M, 0], x)
        T.reduce_absmax(x, amax, dim=1)
        for i, j in T.Parallel(block_M, N):
            x[i, j] = T.round(x[i, j] * (127.0 / amax[i]))
        T.copy(x, Q[bx * block_M, 0])
        for i in T.Parallel(block_M):
            S[bx * block_M + i] = amax[i] / 127.0
    return Q, S


@pytest.mark.everywhere
def test_int8_per_token_with_two_results():
    x = torch.randn(10, 48).bfloat16()
    q, s = int8_per_token_quant(x)
    assert q.dtype == torch.int8 and s.shape == (10,)
    torch.testing.assert_close(q.float() * s[:, None], x.float(), rtol=0, atol=0.03)
