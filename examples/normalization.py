"""RMSNorm and softmax of rows: reductions and elementwise tiles."""

import torch

import tilelang
import tilelang.language as T


@tilelang.jit
def rms_norm(X, W, block_M: int = 2, eps: float = 1e-6):
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    W: T.Tensor((N,), T.float32)
    Y = T.empty((M, N), T.float32)

    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        x = T.alloc_fragment((block_M, N), T.float32)
        square = T.alloc_fragment((block_M, N), T.float32)
        scale = T.alloc_fragment((block_M,), T.float32)
        T.copy(X[bx * block_M, 0], x)
        for i, j in T.Parallel(block_M, N):
            square[i, j] = x[i, j] * x[i, j]
        T.reduce_sum(square, scale, dim=1)
        for i in T.Parallel(block_M):
            scale[i] = T.rsqrt(scale[i] / N + eps)
        for i, j in T.Parallel(block_M, N):
            x[i, j] = x[i, j] * scale[i] * W[j]
        T.copy(x, Y[bx * block_M, 0])

    return Y


@tilelang.jit
def softmax(X):
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    Y = T.empty((M, N), T.float32)

    with T.Kernel(M, threads=128) as row:
        x = T.alloc_fragment((N,), T.float32)
        peak = T.alloc_fragment((1,), T.float32)
        total = T.alloc_fragment((1,), T.float32)
        T.copy(X[row, 0], x)
        T.reduce_max(x, peak, dim=0)
        for j in T.Parallel(N):
            x[j] = T.exp(x[j] - peak[0])
        T.reduce_sum(x, total, dim=0)
        for j in T.Parallel(N):
            x[j] = x[j] / total[0]
        T.copy(x, Y[row, 0])

    return Y


def main(M: int = 33, N: int = 500) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    x, w = torch.randn(M, N, device=device), torch.randn(N, device=device)
    expected = torch.nn.functional.rms_norm(x, (N,), w, 1e-6)
    torch.testing.assert_close(rms_norm(x, w), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(softmax(x), torch.softmax(x, dim=1), rtol=1e-5, atol=1e-6)
    print(f"rms_norm and softmax on {device}: the results match torch")


if __name__ == "__main__":
    main()
