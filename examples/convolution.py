"""A convolution (NHWC) as a GEMM over tiles that ``T.im2col`` gathers."""

import torch

import tilelang
import tilelang.language as T


@tilelang.jit
def conv2d(
    X,
    W,
    kernel: int = 3,
    stride: int = 1,
    dilation: int = 1,
    pad: int = 1,
    block_M: int = 64,
    block_N: int = 32,
    block_K: int = 32,
):
    N, H, Wd, C, KKC, F = T.const("N, H, Wd, C, KKC, F")
    X: T.Tensor((N, H, Wd, C), T.float32)
    W: T.Tensor((KKC, F), T.float32)
    reach = dilation * (kernel - 1) + 1
    out_h = (H + 2 * pad - reach) // stride + 1
    out_w = (Wd + 2 * pad - reach) // stride + 1
    Y = T.empty((N * out_h * out_w, F), T.float32)

    with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(N * out_h * out_w, block_M), threads=128) as (
        bx,
        by,
    ):
        pixels = T.alloc_shared((block_M, block_K), T.float32)
        weights = T.alloc_shared((block_K, block_N), T.float32)
        acc = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(KKC, block_K), num_stages=3):
            T.im2col(X, pixels, by, k, kernel, stride, dilation, pad)
            T.copy(W[k * block_K, bx * block_N], weights)
            T.gemm(pixels, weights, acc)
        T.copy(acc, Y[by * block_M, bx * block_N])

    return Y


def main(n: int = 2, size: int = 10, channels: int = 8, filters: int = 24) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    x = torch.randn(n, size, size, channels, device=device)
    w = torch.randn(3, 3, channels, filters, device=device)
    found = conv2d(x, w.reshape(9 * channels, filters)).view(n, size, size, filters)
    expected = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=1)
    torch.testing.assert_close(found, expected.permute(0, 2, 3, 1), rtol=1e-4, atol=1e-4)
    print(f"conv2d on {device}: the result matches torch")


if __name__ == "__main__":
    main()
