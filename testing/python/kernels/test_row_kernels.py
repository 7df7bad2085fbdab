"""Kernels that work on rows: normalisations, softmax, losses, rotary embedding, selection."""

from __future__ import annotations

import pytest
import torch

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1], pass_configs={"tl.disable_tma_lower": True})
def rms_norm(M, N, blk_m):
    dtype = "float"

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, blk_m), threads=128) as bx:
            A_shared = T.alloc_shared((blk_m, N), dtype)
            A_pow_local = T.alloc_fragment((blk_m, N), dtype)
            A_local = T.alloc_fragment((blk_m, N), dtype)
            A_powsum = T.alloc_fragment((blk_m,), dtype)

            T.copy(A[bx * blk_m : (bx + 1) * blk_m, :], A_shared)
            T.copy(A_shared, A_local)
            for i, j in T.Parallel(blk_m, N):
                A_pow_local[i, j] = A_local[i, j] * A_local[i, j]
            T.reduce_sum(A_pow_local, A_powsum, dim=1)
            for i in T.Parallel(blk_m):
                A_powsum[i] = T.rsqrt(A_powsum[i] / N + 1e-12)
            for i, j in T.Parallel(blk_m, N):
                A_local[i, j] *= A_powsum[i]
            T.copy(A_local, B[bx * blk_m : (bx + 1) * blk_m, :])

    return main


@tilelang.jit(out_idx=[-1])
def rms_norm_splitk(M, N, blk_m, blk_k):
    dtype = "float"

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, blk_m), threads=128) as bx:
            A_shared = T.alloc_shared((blk_m, blk_k), dtype)
            A_local = T.alloc_fragment((blk_m, blk_k), dtype)
            A_powsum = T.alloc_fragment((blk_m,), dtype)
            num_k_step = T.ceildiv(N, blk_k)
            T.clear(A_local)
            for k in range(num_k_step):
                T.copy(A[bx * blk_m, k * blk_k], A_shared)
                for i, j in T.Parallel(blk_m, blk_k):
                    A_local[i, j] += A_shared[i, j] * A_shared[i, j]
            T.reduce_sum(A_local, A_powsum, dim=1)
            for i in T.Parallel(blk_m):
                A_powsum[i] = T.rsqrt(A_powsum[i] / N + 1e-12)
            for k in range(num_k_step):
                # reverse, better cache hit rate
                T.copy(A[bx * blk_m, (num_k_step - 1 - k) * blk_k], A_shared)
                for i, j in T.Parallel(blk_m, blk_k):
                    A_shared[i, j] *= A_powsum[i]
                T.copy(A_shared, B[bx * blk_m, (num_k_step - 1 - k) * blk_k])

    return main


@pytest.mark.everywhere
def test_rms_norm():
    x = torch.randn(21, 48)
    ref = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-12)
    torch.testing.assert_close(rms_norm(21, 48, 4)(x), ref, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(rms_norm_splitk(21, 48, 4, 20)(x), ref, rtol=1e-4, atol=1e-4)
    rms_norm(21, 48, 4).get_profiler().assert_allclose(
        lambda a: a * torch.rsqrt(a.pow(2).mean(-1, keepdim=True) + 1e-12), rtol=0.01, atol=0.01
    )


@tilelang.jit
def layer_norm(X, W, B, eps: float = 1e-5, block_M: int = 4, threads: int = 128):
    M, N = T.dynamic("M"), T.const("N")
    X: T.Tensor[[M, N], T.bfloat16]
    W: T.Tensor[[N], T.float32]
    B: T.Tensor[[N], T.float32]
    Y = T.empty([M, N], dtype=T.bfloat16)
    Mean = T.empty([M], dtype=T.float32)
    Rstd = T.empty([M], dtype=T.float32)
    with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
        x = T.alloc_fragment([block_M, N], T.float32)
        square = T.alloc_fragment([block_M, N], T.float32)
        mean = T.alloc_fragment([block_M], T.float32)
        rstd = T.alloc_fragment([block_M], T.float32)
        T.copy(X[bx * block_M, 0], x)
        T.reduce_sum(x, mean, dim=-1)
        for i in T.Parallel(block_M):
            mean[i] /= N
        for i, j in T.Parallel(block_M, N):
            x[i, j] -= mean[i]
            square[i, j] = x[i, j] * x[i, j]
        T.reduce_sum(square, rstd, dim=-1)
        for i in T.Parallel(block_M):
            rstd[i] = T.rsqrt(rstd[i] / N + eps)
        for i, j in T.Parallel(block_M, N):
            x[i, j] = x[i, j] * rstd[i] * W[j] + B[j]
        T.copy(x, Y[bx * block_M, 0])
        T.copy(mean, Mean[bx * block_M])
        T.copy(rstd, Rstd[bx * block_M])
    return Y, Mean, Rstd


@pytest.mark.everywhere
def test_layer_norm_keeps_its_statistics():
    w, b = torch.randn(33), torch.randn(33)
    for rows in (7, 12):
        x = torch.randn(rows, 33).bfloat16()
        y, mean, rstd = layer_norm(x, w, b)
        ref = torch.nn.functional.layer_norm(x.float(), (33,), w, b)
        torch.testing.assert_close(y.float(), ref, rtol=1e-2, atol=2e-2)
        torch.testing.assert_close(mean, x.float().mean(-1), rtol=1e-4, atol=1e-5)
        var = x.float().var(-1, unbiased=False)
        torch.testing.assert_close(rstd, torch.rsqrt(var + 1e-5), rtol=1e-4, atol=1e-4)


@tilelang.jit(out_idx=[1])
def softmax_kernel(M, N, dtype=T.float16):
    BN = min(tilelang.next_power_of_2(N), 32)
    NN = tilelang.cdiv(N, BN)
    accum_dtype = "float"
    scale = 1.44269504

    @T.prim_func
    def main(X: T.Tensor([M, N], dtype), Y: T.Tensor([M, N], dtype)):
        with T.Kernel(M, threads=128) as (i_m):
            x = T.alloc_fragment([BN], dtype)
            y = T.alloc_fragment([BN], dtype)
            lse = T.alloc_fragment([1], accum_dtype)
            max_x = T.alloc_fragment([1], dtype)
            exp_x = T.alloc_fragment([BN], accum_dtype)
            sum_exp_x = T.alloc_fragment([1], accum_dtype)
            T.fill(lse, -T.infinity(accum_dtype))
            T.annotate_safe_value({X: -T.infinity(dtype)})
            for i_n in T.Pipelined(0, NN):
                T.copy(X[i_m, i_n * BN : (i_n + 1) * BN], x)
                T.reduce_max(x, max_x, dim=0, clear=True)
                for j in T.Parallel(BN):
                    exp_x[j] = T.exp2(x[j] * scale - max_x[0] * scale)
                T.reduce_sum(exp_x, sum_exp_x, dim=0, clear=True)
                lse[0] = max_x[0] * scale + T.log2(T.exp2(lse[0] - max_x[0] * scale) + sum_exp_x[0])
            for i_n in T.Pipelined(0, NN):
                T.copy(X[i_m, i_n * BN : (i_n + 1) * BN], x)
                for j in T.Parallel(BN):
                    y[j] = T.exp2(x[j] * scale - lse[0])
                T.copy(y, Y[i_m, i_n * BN : (i_n + 1) * BN])

    return main


@pytest.mark.everywhere
@pytest.mark.parametrize("N", [32, 75])
def test_online_softmax(N):
    x = torch.randn(6, N).half() * 3
    y = softmax_kernel(6, N)(x)
    torch.testing.assert_close(y.float(), torch.softmax(x.float(), 1), rtol=1e-2, atol=1e-3)


@tilelang.jit(out_idx=[2, 3])
def cross_entropy(rows, vocab, block_V, ignore_index=-100):
    @T.prim_func
    def main(
        logits: T.Tensor((rows, vocab), "float32"),
        labels: T.Tensor((rows,), "int64"),
        loss: T.Tensor((rows,), "float32"),
        grad: T.Tensor((rows, vocab), "float32"),
    ):
        with T.Kernel(rows, threads=128) as row:
            tile = T.alloc_fragment((block_V,), "float32")
            top = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            old = T.alloc_var("float32")
            running = T.alloc_var("float32", init=0.0)
            label = labels[row]
            T.fill(top, -T.infinity("float32"))
            for v in T.serial(T.ceildiv(vocab, block_V)):
                for j in T.Parallel(block_V):
                    tile[j] = T.if_then_else(
                        v * block_V + j < vocab,
                        logits[row, v * block_V + j],
                        -T.infinity("float32"),
                    )
                old = top[0]
                T.reduce_max(tile, top, dim=0, clear=False)
                for j in T.Parallel(block_V):
                    tile[j] = T.exp(tile[j] - top[0])
                T.reduce_sum(tile, total, dim=0)
                running = running * T.exp(old - top[0]) + total[0]
            lse = top[0] + T.log(running)
            if label == ignore_index:
                loss[row] = 0
                for j in T.Parallel(vocab):
                    grad[row, j] = 0.0
            else:
                loss[row] = lse - logits[row, label]
                for j in T.Parallel(vocab):
                    grad[row, j] = T.exp(logits[row, j] - lse) - T.Select(j == label, 1.0, 0.0)

    return main


@pytest.mark.everywhere
def test_cross_entropy_with_gradient():
    logits = torch.randn(9, 50, requires_grad=True)
    labels = torch.randint(0, 50, (9,))
    labels[3] = -100
    ref = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    ref.sum().backward()
    loss, grad = cross_entropy(9, 50, 16)(logits.detach(), labels)
    torch.testing.assert_close(loss, ref.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(grad, logits.grad, rtol=1e-4, atol=1e-5)


@tilelang.jit
def rotary(X, Cos, Sin, interleaved: bool = False, threads: int = 128):
    B, S, H, D, half = T.const("B S H D half")
    X: T.Tensor([B, S, H, D], T.float16)
    Cos: T.Tensor([S, half], T.float32)
    Sin: T.Tensor([S, half], T.float32)
    Y = T.empty([B, S, H, D], T.float16)
    with T.Kernel(S, B, threads=threads) as (s, b):
        for h, d in T.Parallel(H, D // 2):
            first, second = (2 * d, 2 * d + 1) if interleaved else (d, d + D // 2)
            x1 = X[b, s, h, first].astype(T.float32)
            x2 = T.cast(X[b, s, h, second], "float32")
            c, si = Cos[s, d], Sin[s, d]
            Y[b, s, h, first] = x1 * c - x2 * si
            Y[b, s, h, second] = x2 * c + x1 * si
    return Y


@pytest.mark.everywhere
@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding(interleaved):
    x = torch.randn(2, 5, 3, 16).half()
    angles = torch.arange(5)[:, None] * 10000 ** (-torch.arange(8) / 8)
    y = rotary(x, angles.cos(), angles.sin(), interleaved=interleaved)
    z = x.float()
    if interleaved:
        pairs = torch.view_as_complex(z.view(2, 5, 3, 8, 2))
    else:
        pairs = torch.complex(z[..., :8], z[..., 8:])
    turned = pairs * torch.polar(torch.ones_like(angles), angles)[None, :, None]
    parts = (turned.real, turned.imag)
    ref = torch.stack(parts, -1).flatten(-2) if interleaved else torch.cat(parts, -1)
    torch.testing.assert_close(y.float(), ref, rtol=1e-2, atol=2e-3)


@tilelang.jit(out_idx=[1, 2])
def top_k_gating(M, N, topk, blk_m, threads=128):
    dtype = T.float32

    @T.prim_func
    def topk_kernel(
        logits: T.Tensor([M, N], dtype),
        topk_gates: T.Tensor([M, topk], dtype),
        topk_indices: T.Tensor([M, topk], T.int32),
    ):
        with T.Kernel(T.ceildiv(M, blk_m), threads=threads) as bx:
            logits_frag = T.alloc_fragment([blk_m, N], dtype=dtype)
            max_val = T.alloc_fragment([blk_m], dtype=dtype)
            expand_max_idx = T.alloc_fragment([blk_m, N], T.int32)
            max_idx = T.alloc_fragment([blk_m], T.int32)
            T.copy(logits[bx * blk_m, 0], logits_frag)
            for k in T.serial(topk):
                T.fill(expand_max_idx, -1)
                T.reduce_max(logits_frag, max_val, dim=1, clear=True)
                for i, j in T.Parallel(blk_m, N):
                    expand_max_idx[i, j] = T.if_then_else(
                        max_val[i] == logits_frag[i, j], j, expand_max_idx[i, j]
                    )
                T.reduce_max(expand_max_idx, max_idx, dim=1, clear=True)
                for i, j in T.Parallel(blk_m, N):
                    logits_frag[i, j] = T.if_then_else(
                        max_val[i] == logits_frag[i, j], -10000.0, logits_frag[i, j]
                    )
                for i in T.Parallel(blk_m):
                    topk_gates[bx * blk_m + i, k] = max_val[i]
                    topk_indices[bx * blk_m + i, k] = max_idx[i]

    return topk_kernel


@pytest.mark.everywhere
def test_top_k():
    logits = torch.rand(30, 20)
    gates, indices = top_k_gating(30, 20, 4, 8)(logits)
    expected = torch.topk(logits, 4, dim=1)
    torch.testing.assert_close(gates, expected.values)
    assert torch.equal(indices.long(), expected.indices)
