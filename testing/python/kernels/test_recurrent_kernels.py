"""Chunked recurrences: linear attention, Mamba-2's state, chunk scan and cumulative sums."""

from __future__ import annotations

import pytest
import torch

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[4])
def linear_attention_fwd(B, S, H, DK, DV, chunk_size=16, BK=16, BV=16, dtype="float16"):
    """Out accumulates over the key blocks, so it is added to atomically."""
    accum_dtype = "float32"
    NK, NV, NT = DK // BK, DV // BV, tilelang.cdiv(S, chunk_size)

    @T.prim_func
    def fused_chunk_linear_attn_fwd(
        Q: T.Tensor([B, S, H, DK], dtype),
        K: T.Tensor([B, S, H, DK], dtype),
        V: T.Tensor([B, S, H, DV], dtype),
        Out: T.Tensor([B, S, H, DV], accum_dtype),
        final_state: T.Tensor([B, H, DK, DV], accum_dtype),
    ):
        with T.Kernel(NV, NK, B * H) as (i_v, i_k, i_bh):
            i_b = i_bh // H
            i_h = i_bh % H
            q = T.alloc_shared([chunk_size, BK], dtype)
            k = T.alloc_shared([chunk_size, BK], dtype)
            v = T.alloc_shared([chunk_size, BV], dtype)
            h = T.alloc_fragment([BK, BV], accum_dtype)
            h_shared = T.alloc_shared([BK, BV], dtype)
            s = T.alloc_fragment([chunk_size, chunk_size], accum_dtype)
            s_shared = T.alloc_shared([chunk_size, chunk_size], dtype)
            o = T.alloc_fragment([chunk_size, BV], accum_dtype)
            o_shared = T.alloc_shared([chunk_size, BV], accum_dtype)
            T.annotate_layout({o_shared: tilelang.layout.make_swizzled_layout(o_shared)})
            T.use_swizzle(8)
            T.clear(h)
            for i in T.Pipelined(0, NT):
                for row, col in T.Parallel(chunk_size, BK):
                    q[row, col] = Q[i_b, i * chunk_size + row, i_h, i_k * BK + col] * DK**-0.5
                T.copy(
                    K[i_b, i * chunk_size : (i + 1) * chunk_size, i_h, i_k * BK : (i_k + 1) * BK], k
                )
                T.copy(
                    V[i_b, i * chunk_size : (i + 1) * chunk_size, i_h, i_v * BV : (i_v + 1) * BV], v
                )
                T.gemm(q, k, s, clear_accum=True, transpose_B=True)
                for row, col in T.Parallel(chunk_size, chunk_size):
                    s_shared[row, col] = T.if_then_else(row >= col, s[row, col], 0)
                T.gemm(s_shared, v, o, clear_accum=True)
                T.copy(h, h_shared)
                T.gemm(k, v, h, transpose_A=True)
                T.gemm(q, h_shared, o)
                T.copy(o, o_shared)
                T.atomic_add(
                    Out[i_b, i * chunk_size : (i + 1) * chunk_size, i_h, i_v * BV : (i_v + 1) * BV],
                    o_shared,
                )
            T.copy(h, final_state[i_b, i_h, i_k * BK : (i_k + 1) * BK, i_v * BV : (i_v + 1) * BV])

    return fused_chunk_linear_attn_fwd


@pytest.mark.everywhere
def test_linear_attention():
    B, S, H, D = 1, 48, 2, 32
    q, k, v = (torch.randn(B, S, H, D).half() * 0.3 for _ in range(3))
    o = torch.zeros(B, S, H, D)
    state = linear_attention_fwd(B, S, H, D, D)(q, k, v, o)
    q, k, v = (x.float().transpose(1, 2) for x in (q, k, v))
    scores = (q @ k.transpose(-1, -2) * D**-0.5).tril()
    torch.testing.assert_close(o, (scores @ v).transpose(1, 2), rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(state, k.transpose(-1, -2) @ v, rtol=1e-2, atol=1e-2)


@tilelang.jit(out_idx=[7])
def chunk_scan_fwd(
    batch, seqlen, chunk_size, ngroups, nheads, headdim, dstate, block_M, block_N, block_K
):
    dtype, accum_dtype = "float16", "float32"
    nchunks = T.ceildiv(seqlen, chunk_size)
    p = 1.44269504

    @T.prim_func
    def main(
        cb: T.Tensor((batch, nchunks, ngroups, chunk_size, chunk_size), dtype),
        x: T.Tensor((batch, seqlen, nheads, headdim), dtype),
        dt: T.Tensor((batch, nheads, nchunks, chunk_size), dtype),
        dA_cumsum: T.Tensor((batch, nheads, nchunks, chunk_size), dtype),
        C: T.Tensor((batch, seqlen, ngroups, dstate), dtype),
        prev_states: T.Tensor((batch, nchunks, nheads, headdim, dstate), dtype),
        D: T.Tensor((nheads), dtype),
        Output: T.Tensor((batch, seqlen, nheads, headdim), dtype),
    ):
        with T.Kernel(
            nheads,
            T.ceildiv(chunk_size, block_M) * T.ceildiv(headdim, block_N),
            batch * nchunks,
            threads=128,
        ) as (bz, bx, by):
            acc_o = T.alloc_fragment((block_M, block_N), accum_dtype)
            acc_o_shared = T.alloc_shared((block_M, block_N), dtype)
            cb_shared = T.alloc_shared((block_M, block_K), dtype, scope="shared.dyn")
            cb_local = T.alloc_fragment((block_M, block_K), dtype)
            dA_cs_k_shared = T.alloc_shared((block_K), dtype, scope="shared")
            dA_cs_k_local = T.alloc_fragment((block_K), accum_dtype)
            dA_cs_m_local = T.alloc_fragment((block_M), accum_dtype)
            dt_shared = T.alloc_shared((block_K), dtype, scope="shared")
            dt_local = T.alloc_fragment((block_K), accum_dtype)
            x_shared = T.alloc_shared((block_K, block_N), dtype, scope="shared.dyn")
            dA_cs_m_shared = T.alloc_shared((block_M), dtype, scope="shared")
            scale_m_local = T.alloc_fragment((block_M), accum_dtype)
            C_shared = T.alloc_shared((block_M, dstate), dtype)
            prev_state_shared = T.alloc_shared((block_N, dstate), dtype)
            D_local = T.alloc_fragment((1), accum_dtype)
            x_residual_shared = T.alloc_shared((block_M, block_N), dtype, scope="shared.dyn")
            x_residual_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            batch_idx = by % batch
            chunk_idx = by // batch
            m_idx = bx // T.ceildiv(headdim, block_N)
            n_idx = bx % T.ceildiv(headdim, block_N)

            T.annotate_layout(
                {
                    cb_shared: tilelang.layout.make_swizzled_layout(cb_shared),
                    x_residual_shared: tilelang.layout.make_swizzled_layout(x_residual_shared),
                }
            )
            T.no_set_max_nreg()
            T.copy(
                dA_cumsum[batch_idx, bz, chunk_idx, m_idx * block_M : (m_idx + 1) * block_M],
                dA_cs_m_shared,
            )
            T.copy(dA_cs_m_shared, dA_cs_m_local)
            T.clear(acc_o)
            for i in T.Parallel(block_M):
                scale_m_local[i] = T.exp2(dA_cs_m_local[i] * p)
            T.copy(
                C[
                    batch_idx,
                    chunk_idx * chunk_size + m_idx * block_M : chunk_idx * chunk_size
                    + (m_idx + 1) * block_M,
                    bz // (nheads // ngroups),
                    0:dstate,
                ],
                C_shared,
            )
            T.copy(
                prev_states[
                    batch_idx, chunk_idx, bz, n_idx * block_N : (n_idx + 1) * block_N, 0:dstate
                ],
                prev_state_shared,
            )
            T.gemm(C_shared, prev_state_shared, acc_o, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                acc_o[i, j] *= scale_m_local[i]

            loop_range = T.ceildiv((m_idx + 1) * block_M, block_K)
            for k in T.Pipelined(loop_range, num_stages=2):
                T.copy(
                    cb[
                        batch_idx,
                        chunk_idx,
                        bz // (nheads // ngroups),
                        m_idx * block_M : (m_idx + 1) * block_M,
                        k * block_K : (k + 1) * block_K,
                    ],
                    cb_shared,
                )
                T.copy(cb_shared, cb_local)
                T.copy(
                    dA_cumsum[batch_idx, bz, chunk_idx, k * block_K : (k + 1) * block_K],
                    dA_cs_k_shared,
                )
                T.copy(dA_cs_k_shared, dA_cs_k_local)
                for i, j in T.Parallel(block_M, block_K):
                    cb_local[i, j] = cb_local[i, j] * T.exp2(
                        dA_cs_m_local[i] * p - dA_cs_k_local[j] * p
                    )
                T.copy(dt[batch_idx, bz, chunk_idx, k * block_K : (k + 1) * block_K], dt_shared)
                T.copy(dt_shared, dt_local)
                for i, j in T.Parallel(block_M, block_K):
                    cb_local[i, j] *= dt_local[j]
                for i, j in T.Parallel(block_M, block_K):
                    cb_local[i, j] = T.if_then_else(
                        m_idx * block_M + i >= k * block_K + j, cb_local[i, j], 0
                    )
                T.copy(
                    x[
                        batch_idx,
                        chunk_idx * chunk_size + k * block_K : chunk_idx * chunk_size
                        + (k + 1) * block_K,
                        bz,
                        n_idx * block_N : (n_idx + 1) * block_N,
                    ],
                    x_shared,
                )
                T.gemm(cb_local, x_shared, acc_o)

            D_local[0] = D[bz]
            T.copy(
                x[
                    batch_idx,
                    chunk_idx * chunk_size + m_idx * block_M : chunk_idx * chunk_size
                    + (m_idx + 1) * block_M,
                    bz,
                    n_idx * block_N : (n_idx + 1) * block_N,
                ],
                x_residual_shared,
            )
            T.copy(x_residual_shared, x_residual_local)
            for i, j in T.Parallel(block_M, block_N):
                acc_o[i, j] += x_residual_local[i, j] * D_local[0]
            T.copy(acc_o, acc_o_shared)
            T.copy(
                acc_o_shared,
                Output[
                    batch_idx,
                    chunk_idx * chunk_size + m_idx * block_M : chunk_idx * chunk_size
                    + (m_idx + 1) * block_M,
                    bz,
                    n_idx * block_N : (n_idx + 1) * block_N,
                ],
            )

    return main


def chunk_scan_reference(cb, x, dt, dA_cumsum, C, prev_states, D):
    batch, seqlen, nheads, headdim = x.shape
    chunk = cb.shape[-1]
    nchunks = seqlen // chunk
    repeat = nheads // C.shape[2]
    C = C.repeat_interleave(repeat, 2).view(batch, nchunks, chunk, nheads, -1)
    cb = cb.repeat_interleave(repeat, 2)
    decay = torch.exp(dA_cumsum[..., :, None] - dA_cumsum[..., None, :]).tril()
    scores = cb * decay.permute(0, 2, 1, 3, 4) * dt.permute(0, 2, 1, 3)[..., None, :]
    chunks = x.view(batch, nchunks, chunk, nheads, headdim)
    out = torch.einsum("bchls,bcshp->bclhp", scores.tril(), chunks)
    state = torch.einsum("bclhn,bchpn->bclhp", C, prev_states)
    out = out + state * torch.exp(dA_cumsum).permute(0, 2, 3, 1)[..., None]
    return out.reshape(batch, seqlen, nheads, headdim) + x * D[:, None]


@pytest.mark.everywhere
def test_mamba_chunk_scan():
    batch, seqlen, chunk, groups, heads, dim, state = 1, 64, 32, 1, 2, 16, 8
    chunks = seqlen // chunk
    args = [
        torch.randn(batch, chunks, groups, chunk, chunk),
        torch.randn(batch, seqlen, heads, dim),
        torch.rand(batch, heads, chunks, chunk),
        -torch.rand(batch, heads, chunks, chunk).cumsum(-1) * 0.1,
        torch.randn(batch, seqlen, groups, state),
        torch.randn(batch, chunks, heads, dim, state),
        torch.randn(heads),
    ]
    args = [a.half() for a in args]
    kernel = chunk_scan_fwd(batch, seqlen, chunk, groups, heads, dim, state, 16, 16, 16)
    out = kernel(*args)
    ref = chunk_scan_reference(*(a.float() for a in args))
    torch.testing.assert_close(out.float(), ref, rtol=2e-2, atol=5e-2)


@tilelang.jit(out_idx=[1])
def chunk_local_cumsum(batch, seqlen, heads, chunk, reverse, use_fragment):
    @T.prim_func
    def main(
        G: T.Tensor((batch, seqlen, heads), "float32"),
        Out: T.Tensor((batch, seqlen, heads), "float32"),
    ):
        with T.Kernel(T.ceildiv(seqlen, chunk), batch, threads=256) as (bs, bb):
            G_shared = T.alloc_shared((1, chunk, heads), "float32", scope="shared")
            G_fragment = T.alloc_fragment((1, chunk, heads), "float32")
            T.copy(G[bb, bs * chunk : (bs + 1) * chunk, :], G_shared)
            if use_fragment:
                T.copy(G_shared, G_fragment)
                T.cumsum(G_fragment, dim=1, reverse=reverse)
                T.copy(G_fragment, Out[bb, bs * chunk : (bs + 1) * chunk, :])
            else:
                T.cumsum(G_shared, dim=1, reverse=reverse)
                T.copy(G_shared, Out[bb, bs * chunk : (bs + 1) * chunk, :])

    return main


@pytest.mark.everywhere
@pytest.mark.parametrize("reverse, use_fragment", [(False, True), (True, False)])
def test_cumulative_sums_of_chunks(reverse, use_fragment):
    g = torch.randn(2, 40, 6)
    out = chunk_local_cumsum(2, 40, 6, 16, reverse, use_fragment)(g)
    parts = [p.flip(1).cumsum(1).flip(1) if reverse else p.cumsum(1) for p in g.split(16, 1)]
    torch.testing.assert_close(out, torch.cat(parts, 1), rtol=1e-5, atol=1e-5)


@tilelang.jit(out_idx=[-2, -1])
def gated_recurrence(batch, seqlen, dim, block_D=16):
    """h[t] = f[t] * h[t-1] + (1 - f[t]) * x[t], every step in order (HGRN's core)."""

    @T.prim_func
    def main(
        x: T.Tensor((batch, seqlen, dim), "float32"),
        f: T.Tensor((batch, seqlen, dim), "float32"),
        out: T.Tensor((batch, seqlen, dim), "float32"),
        last: T.Tensor((batch, dim), "float32"),
    ):
        with T.Kernel(T.ceildiv(dim, block_D), batch, threads=block_D) as (bd, bb):
            h = T.alloc_fragment((block_D,), "float32")
            T.clear(h)
            for t in T.serial(seqlen):
                for d in T.Parallel(block_D):
                    gate = T.sigmoid(f[bb, t, bd * block_D + d])
                    h[d] = gate * h[d] + (1.0 - gate) * x[bb, t, bd * block_D + d]
                T.copy(h, out[bb, t, bd * block_D])
            T.copy(h, last[bb, bd * block_D : (bd + 1) * block_D])

    return main


@pytest.mark.everywhere
def test_gated_recurrence():
    x, f = torch.randn(2, 2, 9, 20)
    out, last = gated_recurrence(2, 9, 20)(x, f)
    h, gates = torch.zeros(2, 20), torch.sigmoid(f)
    for t in range(9):
        h = gates[:, t] * h + (1 - gates[:, t]) * x[:, t]
        torch.testing.assert_close(out[:, t], h, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(last, h, rtol=1e-5, atol=1e-5)
