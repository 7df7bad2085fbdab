"""Attention forward with an online softmax, causal or not, checked against torch."""

import math

import torch

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[3], pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def attention(batch, heads, seq, dim, causal, block_M=64, block_N=64, num_stages=2, threads=128):
    scale = (1.0 / dim) ** 0.5 * math.log2(math.e)
    shape = (batch, seq, heads, dim)
    dtype, accum_dtype = "float16", "float32"

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        Out: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(seq, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            scores = T.alloc_fragment((block_M, block_N), accum_dtype)
            weights = T.alloc_fragment((block_M, block_N), dtype)
            output = T.alloc_fragment((block_M, dim), accum_dtype)
            row_max = T.alloc_fragment((block_M,), accum_dtype)
            row_max_old = T.alloc_fragment((block_M,), accum_dtype)
            rescale = T.alloc_fragment((block_M,), accum_dtype)
            row_sum = T.alloc_fragment((block_M,), accum_dtype)
            total = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.clear(output)
            T.clear(total)
            T.fill(row_max, -T.infinity(accum_dtype))
            last = T.min(T.ceildiv(seq, block_N), T.ceildiv((bx + 1) * block_M, block_N))
            for k in T.Pipelined(
                last if causal else T.ceildiv(seq, block_N), num_stages=num_stages
            ):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, by, :], K_shared)
                for i, j in T.Parallel(block_M, block_N):
                    visible = k * block_N + j < seq
                    if causal:
                        visible = visible and bx * block_M + i >= k * block_N + j
                    scores[i, j] = T.if_then_else(visible, 0, -T.infinity(accum_dtype))
                T.gemm(
                    Q_shared, K_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow
                )
                T.copy(row_max, row_max_old)
                T.reduce_max(scores, row_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    rescale[i] = T.exp2(row_max_old[i] * scale - row_max[i] * scale)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2(scores[i, j] * scale - row_max[i] * scale)
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * rescale[i] + row_sum[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_M, dim):
                    output[i, j] *= rescale[i]
                T.copy(V[bz, k * block_N : (k + 1) * block_N, by, :], V_shared)
                T.gemm(weights, V_shared, output, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, dim):
                output[i, j] /= total[i]
            T.copy(output, Out[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return main


def main(batch: int = 1, heads: int = 2, seq: int = 200, dim: int = 64) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(batch, seq, heads, dim, device=device, dtype=torch.float16) for _ in range(3)
    )
    for causal in (False, True):
        kernel = attention(batch, heads, seq, dim, causal)
        found = kernel(q, k, v)
        expected = torch.nn.functional.scaled_dot_product_attention(
            *(x.transpose(1, 2).float() for x in (q, k, v)), is_causal=causal
        ).transpose(1, 2)
        torch.testing.assert_close(found.float(), expected, rtol=1e-2, atol=1e-2)
        print(f"attention on {device}, causal={causal}: the result matches torch")


if __name__ == "__main__":
    main()
