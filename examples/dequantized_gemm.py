"""A GEMM with 4-bit weights: two weights a byte, one scale a group, dequantised tile by tile."""

import torch

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul_w4(A, B, S, block_M: int = 32, block_N: int = 64, block_K: int = 64, group: int = 64):
    M, N, K, half_K, groups = T.const("M, N, K, half_K, groups")
    A: T.Tensor((M, K), T.float16)
    B: T.Tensor((N, half_K), T.uint8)
    S: T.Tensor((N, groups), T.float16)
    C = T.empty((M, N), T.float16)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), T.float16)
        packed = T.alloc_shared((block_N, block_K // 2), T.uint8)
        B_shared = T.alloc_shared((block_N, block_K), T.float16)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, ko * block_K], A_shared)
            T.copy(B[bx * block_N, ko * block_K // 2], packed)
            for i, j in T.Parallel(block_N, block_K):
                nibble = (packed[i, j // 2] >> T.cast(j % 2 * 4, "uint8")) & T.uint8(15)
                weight = T.cast(nibble, "float16") - T.float16(8)
                B_shared[i, j] = weight * S[bx * block_N + i, (ko * block_K + j) // group]
            T.gemm(A_shared, B_shared, C_local, transpose_B=True)
        T.copy(C_local, C[by * block_M, bx * block_N])

    return C


def quantize(weight: torch.Tensor, group: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise (N, K) weights to 4 bits, offset 8: bytes (N, K/2), scales (N, K/group)."""
    n, k = weight.shape
    groups = weight.float().view(n, k // group, group)
    scale = (groups.abs().amax(dim=2) / 7).clamp(min=1e-6).half()
    codes = torch.clamp(torch.round(groups / scale.float()[:, :, None]) + 8, 0, 15)
    codes = codes.to(torch.uint8).view(n, k // 2, 2)
    return codes[:, :, 0] | (codes[:, :, 1] << 4), scale


def dequantize(packed: torch.Tensor, scale: torch.Tensor, group: int) -> torch.Tensor:
    """The float16 weights (N, K) that the kernel multiplies with."""
    codes = torch.stack((packed & 15, packed >> 4), dim=2).flatten(1)
    return (codes.half() - 8) * scale.repeat_interleave(group, dim=1)


def main(M: int = 64, N: int = 128, K: int = 256, group: int = 64) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    a = torch.randn(M, K, device=device, dtype=torch.float16)
    packed, scale = quantize(torch.randn(N, K, device=device), group)
    found = matmul_w4(a, packed, scale, group=group)
    expected = a.float() @ dequantize(packed, scale, group).float().T
    torch.testing.assert_close(found.float(), expected, rtol=1e-2, atol=5e-2)
    print(f"matmul_w4 on {device}: the result matches torch")


if __name__ == "__main__":
    main()
