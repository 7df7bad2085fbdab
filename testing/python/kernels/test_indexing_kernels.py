"""Gather, scatter, histogram, transpose, convolution: kernels whose point is where data go."""

from __future__ import annotations

import pytest
import torch

import tilelang
import tilelang.language as T


@tilelang.jit
def embedding(ids, table, block_D: int = 32, padding_idx: int = -1):
    B, S, V, D = T.const("B S V D")
    ids: T.Tensor([B, S], "int64")
    table: T.Tensor([V, D], "float16")
    out = T.empty([B, S, D], "float16")
    with T.Kernel(T.ceildiv(D, block_D), S, B, threads=block_D) as (bd, s, b):
        token = ids[b, s]
        for d in T.Parallel(block_D):
            out[b, s, bd * block_D + d] = T.if_then_else(
                token == padding_idx, 0.0, table[token, bd * block_D + d]
            )
    return out


@pytest.mark.everywhere
def test_embedding():
    table, ids = torch.randn(11, 40).half(), torch.randint(0, 11, (3, 5))
    ids[0, 0] = 2
    ref = torch.nn.functional.embedding(ids, table)
    ref[ids == 2] = 0
    assert torch.equal(embedding(ids, table, padding_idx=2), ref)


@tilelang.jit(out_idx=[2])
def gather_1d(count, size, index_dtype):
    @T.prim_func
    def main(
        index: T.Tensor((count,), index_dtype),
        source: T.Tensor((size,), "float32"),
        out: T.Tensor((count,), "float32"),
    ):
        with T.Kernel(T.ceildiv(count, 32), threads=32) as bx:
            for i in T.Parallel(32):
                out[bx * 32 + i] = source[index[bx * 32 + i]]

    return main


@pytest.mark.everywhere
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64", "uint32"])
@pytest.mark.parametrize("size", [300, 20, None])
def test_indices_of_every_dtype(dtype, size):
    """Outside of the source the value is 0, on either side."""
    source = torch.randn(size or 260)
    low = -9 if dtype.startswith("int") else 0
    index = torch.randint(low, 127 if dtype == "int8" else 255, (70,))
    index[:2] = torch.tensor([0, 19])
    out = gather_1d(70, size or T.dynamic("size"), dtype)(index.to(getattr(torch, dtype)), source)
    inside = (index >= 0) & (index < len(source))
    assert torch.equal(out, torch.where(inside, source[index.clamp(0, len(source) - 1)], 0.0))


@tilelang.jit
def scatter_add_rows(rows, width, count, threads=64):
    @T.prim_func
    def main(
        src: T.Tensor((count, width), "float32"),
        index: T.Tensor((count,), "int32"),
        dst: T.Tensor((rows, width), "float32"),
    ):
        with T.Kernel(count, threads=threads) as i:
            row = index[i]
            if row >= 0:
                for j in T.Parallel(width):
                    T.atomic_add(dst[row, j], src[i, j])

    return main


@pytest.mark.everywhere
def test_scatter_add():
    src, index = torch.randn(30, 24), torch.randint(-1, 7, (30,), dtype=torch.int32)
    dst = torch.randn(7, 24)
    ref = dst.clone()
    keep = index >= 0
    ref.index_add_(0, index[keep].long(), src[keep])
    scatter_add_rows(7, 24, 30)(src, index, dst)
    torch.testing.assert_close(dst, ref, rtol=1e-5, atol=1e-5)


@tilelang.jit
def histogram(X, bins: int, block: int = 64):
    N = T.dynamic("N")
    X: T.Tensor([N], T.uint8)
    H = T.empty([bins], T.int32)
    with T.Kernel(1, threads=bins) as _:
        for b in T.Parallel(bins):
            H[b] = 0
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        counts = T.alloc_shared([bins], T.int32)
        T.clear(counts)
        for i in T.Parallel(block):
            if bx * block + i < N:
                T.atomic_add(counts[X[bx * block + i]], 1)
        for b in T.Parallel(bins):
            T.atomic_add(H[b], counts[b])
    return H


@pytest.mark.everywhere
def test_histogram_in_shared_memory():
    for n in (150, 64):
        x = torch.randint(0, 256, (n,), dtype=torch.uint8)
        assert torch.equal(histogram(x, 256).long(), torch.bincount(x.long(), minlength=256))


@tilelang.jit(out_idx=[1])
def transpose(M, N, block, how, dtype="int16"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((N, M), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            tile = T.alloc_shared((block, block), dtype)
            turned = T.alloc_shared((block, block), dtype)
            T.copy(A[by * block, bx * block], tile)
            if how == "op":
                T.transpose(tile, turned)
            elif how == "loop":
                for i, j in T.Parallel(block, block):
                    turned[j, i] = tile[i, j]
            else:
                T.annotate_layout(
                    {turned: T.Layout((block, block), lambda i, j: (i, (j + i) % block))}
                )
                for i, j in T.Parallel(block, block):
                    turned[i, j] = tile[j, i]
            T.copy(turned, B[bx * block, by * block])

    return main


@pytest.mark.everywhere
@pytest.mark.parametrize("how", ["op", "loop", "layout"])
def test_transpose(how):
    x = torch.randint(-999, 999, (50, 37), dtype=torch.int16)
    assert torch.equal(transpose(50, 37, 16, how)(x), x.T)


@tilelang.jit(out_idx=[2])
def convolution(N, C, H, W, F, K, S, D, P, block_M, block_N, block_K, num_stages, threads):
    KH, KW = K, K
    OH = (H + 2 * P - D * (K - 1) - 1) // S + 1
    OW = (W + 2 * P - D * (K - 1) - 1) // S + 1
    dtype = "float16"
    accum_dtype = "float"

    @T.prim_func
    def main(
        data: T.Tensor((N, H, W, C), dtype),
        kernel: T.Tensor((KH, KW, C, F), dtype),
        out: T.Tensor((N, OH, OW, F), dtype),
    ):
        with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(N * OH * OW, block_M), threads=threads) as (
            bx,
            by,
        ):
            data_shared = T.alloc_shared((block_M, block_K), dtype)
            kernel_shared = T.alloc_shared((block_K, block_N), dtype)
            out_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            out_shared = T.alloc_shared((block_M, block_N), dtype)
            kernel_flat = T.Tensor((KH * KW * C, F), dtype, kernel.data)
            out_flat = T.Tensor((N * OH * OW, F), dtype, out.data)
            T.clear(out_local)
            for k_iter in T.Pipelined(T.ceildiv(KH * KW * C, block_K), num_stages=num_stages):
                for i, j in T.Parallel(block_M, block_K):
                    k = k_iter * block_K + j
                    m = by * block_M + i
                    access_h = m % (OH * OW) // OW * S + k // (KW * C) * D - P
                    access_w = m % OW * S + k // C % KW * D - P
                    in_bound = (
                        (access_h >= 0) and (access_w >= 0) and (access_h < H) and (access_w < W)
                    )
                    data_shared[i, j] = T.if_then_else(
                        in_bound, data[m // (OH * OW), access_h, access_w, k % C], 0
                    )
                T.copy(kernel_flat[k_iter * block_K, bx * block_N], kernel_shared)
                T.gemm(data_shared, kernel_shared, out_local)
            T.copy(out_local, out_shared)
            T.copy(out_shared, out_flat[by * block_M, bx * block_N])

    return main


@pytest.mark.everywhere
@pytest.mark.parametrize("S, D, P", [(1, 1, 1), (2, 1, 0), (1, 2, 2)])
def test_convolution_by_hand(S, D, P):
    data, weight = torch.randn(2, 9, 8, 16).half(), torch.randn(3, 3, 16, 20).half() * 0.2
    out = convolution(2, 16, 9, 8, 20, 3, S, D, P, 32, 16, 32, 2, 128)(data, weight)
    ref = torch.nn.functional.conv2d(
        data.float().permute(0, 3, 1, 2), weight.float().permute(3, 2, 0, 1), None, S, P, D
    ).permute(0, 2, 3, 1)
    torch.testing.assert_close(out.float(), ref, rtol=1e-2, atol=2e-2)


@tilelang.jit
def paged_gather(pool, block_table, lengths, page: int):
    """The keys of each request from pages of a pool, packed into one dense tensor."""
    P, D, B, L = T.const("P D B L")
    pool: T.Tensor([P, page, D], T.float32)
    block_table: T.Tensor([B, L], T.int32)
    lengths: T.Tensor([B], T.int32)
    out = T.empty([B, L * page, D], T.float32)
    with T.Kernel(L, B, threads=64) as (p, b):
        tile = T.alloc_shared([page, D], T.float32)
        used = T.min(page, lengths[b] - p * page)
        if used > 0:
            T.copy(pool[block_table[b, p], 0, 0], tile)
            for i, d in T.Parallel(page, D):
                out[b, p * page + i, d] = T.Select(i < used, tile[i, d], T.float32(0))
        else:
            T.clear(tile)
            T.copy(tile, out[b, p * page : (p + 1) * page, :])
    return out


@pytest.mark.everywhere
def test_pages_of_a_cache():
    pool = torch.randn(9, 4, 6)
    table = torch.tensor([[3, 8, 0], [1, 2, 7]], dtype=torch.int32)
    lengths = torch.tensor([6, 12], dtype=torch.int32)
    out = paged_gather(pool, table, lengths, page=4)
    ref = pool[table.long()].view(2, 12, 6).clone()
    ref[0, 6:] = 0
    assert torch.equal(out, ref)
