"""A tile GEMM with a fused ReLU: compile, run, check against torch, measure.

Runs on the GPU when there is one, on the CPU otherwise.
"""

import torch

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul_relu(
    A,
    B,
    block_M: int = 64,
    block_N: int = 64,
    block_K: int = 64,
    dtype: T.dtype = T.float16,
    accum_dtype: T.dtype = T.float32,
):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], dtype]
    B: T.Tensor[[K, N], dtype]
    C = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
            T.copy(A[by * block_M, ko * block_K], A_shared)
            T.copy(B[ko * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        for i, j in T.Parallel(block_M, block_N):
            C_local[i, j] = T.max(C_local[i, j], 0)
        T.copy(C_local, C[by * block_M, bx * block_N])

    return C


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    a = torch.randn(1024, 1024, device=device, dtype=torch.float16)
    b = torch.randn(1024, 1024, device=device, dtype=torch.float16)

    c = matmul_relu(a, b)

    reference = torch.relu(a.float() @ b.float()).to(torch.float16)
    torch.testing.assert_close(c, reference, rtol=1e-2, atol=1e-2)
    print(f"matmul_relu on {device}: the result matches torch")

    kernel = matmul_relu.compile(M=1024, N=1024, K=1024)
    latency = kernel.get_profiler().do_bench()
    print(f"latency: {latency:.3f} ms, {2 * 1024**3 / latency * 1e-9:.2f} TFLOP/s")


if __name__ == "__main__":
    main()
