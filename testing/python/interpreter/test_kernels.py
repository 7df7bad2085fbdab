"""Whole kernels as users write them, against torch."""

import pytest
import torch

import tilelang.language as T
from tilelang.interpreter import interpret


def attention(batch, heads, length, dim, causal, block_m=32, block_n=16):
    shape = (batch, length, heads, dim)
    scale = dim**-0.5 * 1.44269504

    @T.prim_func
    def program(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        Output: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(T.ceildiv(length, block_m), heads, batch, threads=128) as (bx, by, bz):
            q = T.alloc_shared((block_m, dim), "float16")
            k = T.alloc_shared((block_n, dim), "float16")
            v = T.alloc_shared((block_n, dim), "float16")
            scores = T.alloc_fragment((block_m, block_n), "float32")
            weights = T.alloc_fragment((block_m, block_n), "float16")
            out = T.alloc_fragment((block_m, dim), "float32")
            high = T.alloc_fragment((block_m,), "float32")
            high_before = T.alloc_fragment((block_m,), "float32")
            factor = T.alloc_fragment((block_m,), "float32")
            row_sum = T.alloc_fragment((block_m,), "float32")
            total = T.alloc_fragment((block_m,), "float32")
            T.copy(Q[bz, bx * block_m : (bx + 1) * block_m, by, :], q)
            T.fill(out, 0)
            T.fill(total, 0)
            T.fill(high, -T.infinity("float32"))
            steps = T.ceildiv((bx + 1) * block_m, block_n) if causal else T.ceildiv(length, block_n)
            for step in T.Pipelined(steps, num_stages=2):
                T.copy(K[bz, step * block_n : (step + 1) * block_n, by, :], k)
                for i, j in T.Parallel(block_m, block_n):
                    inside = step * block_n + j < length
                    if causal:
                        scores[i, j] = T.if_then_else(
                            bx * block_m + i >= step * block_n + j and inside,
                            0,
                            -T.infinity("float32"),
                        )
                    else:
                        scores[i, j] = T.if_then_else(inside, 0, -T.infinity("float32"))
                T.gemm(q, k, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(V[bz, step * block_n : (step + 1) * block_n, by, :], v)
                T.copy(high, high_before)
                T.reduce_max(scores, high, dim=1, clear=False)
                for i in T.Parallel(block_m):
                    factor[i] = T.exp2(high_before[i] * scale - high[i] * scale)
                for i, j in T.Parallel(block_m, dim):
                    out[i, j] *= factor[i]
                for i, j in T.Parallel(block_m, block_n):
                    scores[i, j] = T.exp2(scores[i, j] * scale - high[i] * scale)
                T.copy(scores, weights)
                T.gemm(weights, v, out, policy=T.GemmWarpPolicy.FullRow)
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(block_m):
                    total[i] = total[i] * factor[i] + row_sum[i]
            for i, j in T.Parallel(block_m, dim):
                out[i, j] /= total[i]
            T.copy(out, Output[bz, bx * block_m : (bx + 1) * block_m, by, :])

    return program


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [64, 50])
def test_flash_attention(causal, length):
    q, k, v = (torch.randn(2, length, 2, 16).half() for _ in range(3))
    out = interpret(attention(2, 2, length, 16, causal), q, k, v, out_idx=-1)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *(t.transpose(1, 2).float() for t in (q, k, v)), is_causal=causal
    ).transpose(1, 2)
    torch.testing.assert_close(out.float(), expected, rtol=2e-3, atol=2e-3)


def test_softmax_over_long_rows():
    M, N, block = 5, 200, 64

    @T.prim_func
    def program(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=128) as row:
            tile = T.alloc_fragment((block,), "float32")
            high = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            part = T.alloc_fragment((1,), "float32")
            T.annotate_safe_value({X: -T.infinity("float32")})
            T.fill(high, -T.infinity("float32"))
            T.clear(total)
            for k in T.serial(T.ceildiv(N, block)):
                T.copy(X[row, k * block], tile)
                T.reduce_max(tile, high, dim=0, clear=False)
            for k in T.serial(T.ceildiv(N, block)):
                T.copy(X[row, k * block], tile)
                for i in T.Parallel(block):
                    tile[i] = T.exp(tile[i] - high[0])
                T.reduce_sum(tile, part, dim=0)
                total[0] += part[0]
            for k in T.serial(T.ceildiv(N, block)):
                for i in T.Parallel(block):
                    Y[row, k * block + i] = T.exp(X[row, k * block + i] - high[0]) / total[0]

    x = torch.randn(M, N)
    torch.testing.assert_close(interpret(program, x, out_idx=-1), x.softmax(-1))


def test_a_quantised_gemm_unpacks_in_each_thread():
    """int4 weights, two a byte, unpacked through local memory by explicit threads."""
    M, N, K, block = 16, 16, 32, 16

    @T.prim_func
    def program(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((N, K // 2), "uint8"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding()
            a = T.alloc_shared((M, block), "float16")
            b = T.alloc_shared((N, block), "float16")
            packed = T.alloc_local((block // 2,), "uint8")
            plain = T.alloc_local((block,), "float16")
            c = T.alloc_fragment((M, N), "float32")
            T.clear(c)
            for k in T.Pipelined(K // block, num_stages=2):
                T.copy(A[0, k * block], a)
                for i in T.vectorized(block // 2):
                    packed[i] = B[tx, k * (block // 2) + i]
                for i in T.serial(block):
                    nibble = (packed[i // 2] >> T.cast(4 * (i % 2), "uint8")) & T.uint8(15)
                    plain[i] = T.cast(T.cast(nibble, "int32") - 8, "float16")
                for i in T.vectorized(block):
                    b[tx, i] = plain[i]
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)

    a = torch.randn(M, K).half()
    weights = torch.randint(0, 16, (N, K), dtype=torch.uint8)
    packed = weights[:, 0::2] | (weights[:, 1::2] << 4)
    expected = a.float() @ (weights.float() - 8).T
    torch.testing.assert_close(interpret(program, a, packed, out_idx=-1), expected)


def test_split_k_with_atomics():
    M, N, K, split = 32, 32, 64, 4

    @T.prim_func
    def program(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(split) as bz:
            a, b = T.alloc_shared((M, 16), "float16"), T.alloc_shared((16, N), "float16")
            c = T.alloc_fragment((M, N), "float32")
            T.clear(c)
            T.copy(A[0, bz * 16], a)
            T.copy(B[bz * 16, 0], b)
            T.gemm(a, b, c)
            for i, j in T.Parallel(M, N):
                T.atomic_add(C[i, j], c[i, j])

    a, b, c = torch.randn(M, K).half(), torch.randn(K, N).half(), torch.zeros(M, N)
    interpret(program, a, b, c, block_order="reverse")
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-5, atol=1e-5)


def test_a_block_sum_in_shared_memory():
    """The classical tree: half of the threads leave in each round."""

    @T.prim_func
    def program(A: T.Tensor((3, 128), "float32"), B: T.Tensor((3,), "float32")):
        with T.Kernel(3, threads=128) as bx:
            tx = T.get_thread_binding()
            tile = T.alloc_shared((128,), "float32")
            tile[tx] = A[bx, tx]
            T.sync_threads()
            for k in T.serial(7):
                if tx < (64 >> k):
                    tile[tx] += tile[tx + (64 >> k)]
                T.sync_threads()
            if tx == 0:
                B[bx] = tile[0]

    a = torch.randint(-9, 9, (3, 128)).float()
    assert torch.equal(interpret(program, a, out_idx=-1), a.sum(1))


def test_a_histogram():
    @T.prim_func
    def program(A: T.Tensor((1000,), "uint8"), B: T.Tensor((16,), "int32")):
        with T.Kernel(4, threads=64) as bx:
            local = T.alloc_shared((16,), "int32")
            T.clear(local)
            for i in T.Parallel(250):
                T.atomic_add(local[T.cast(A[bx * 250 + i], "int32") % 16], 1)
            for i in T.Parallel(16):
                T.atomic_add(B[i], local[i])

    a, b = torch.randint(0, 256, (1000,)).to(torch.uint8), torch.zeros(16, dtype=torch.int32)
    interpret(program, a, b)
    assert torch.equal(b, torch.bincount(a.long() % 16, minlength=16).int())


def test_a_block_sparse_gemm_skips_blocks():
    M, block = 32, 8

    @T.prim_func
    def program(
        A: T.Tensor((M, M), "float16"),
        B: T.Tensor((M, M), "float16"),
        mask: T.Tensor((M // block, M // block), "bool"),
        C: T.Tensor((M, M), "float32"),
    ):
        with T.Kernel(M // block, M // block) as (bx, by):
            a, b = (
                T.alloc_shared((block, block), "float16"),
                T.alloc_shared((block, block), "float16"),
            )
            c = T.alloc_fragment((block, block), "float32")
            keep = T.alloc_local((1,), "bool")
            T.clear(c)
            for k in T.Pipelined(M // block, num_stages=2):
                keep[0] = mask[by, k]
                if keep[0]:
                    T.copy(A[by * block, k * block], a)
                    T.copy(B[k * block, bx * block], b)
                    T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])

    a, b = torch.randn(M, M).half(), torch.randn(M, M).half()
    mask = torch.rand(M // block, M // block) > 0.5
    dense = mask.repeat_interleave(block, 0).repeat_interleave(block, 1)
    expected = (a.float() * dense) @ b.float()
    c = interpret(program, a, b, mask, out_idx=-1)
    torch.testing.assert_close(c, expected, rtol=1e-5, atol=1e-5)


def test_a_convolution():
    N, H, W, C, F = 1, 8, 8, 4, 16

    @T.prim_func
    def program(
        data: T.Tensor((N, H, W, C), "float16"),
        kernel: T.Tensor((3, 3, C, F), "float16"),
        out: T.Tensor((N, H, W, F), "float32"),
    ):
        with T.Kernel(T.ceildiv(N * H * W, 16)) as by:
            tile = T.alloc_shared((16, 12), "float16")
            weights = T.alloc_shared((12, F), "float16")
            total = T.alloc_fragment((16, F), "float32")
            flat_kernel = T.Tensor((9 * C, F), "float16", kernel.data)
            flat_out = T.Tensor((N * H * W, F), "float32", out.data)
            T.clear(total)
            for k in T.Pipelined(3, num_stages=2):
                T.im2col(data, tile, by, k, 3, 1, 1, 1)
                T.copy(flat_kernel[k * 12, 0], weights)
                T.gemm(tile, weights, total)
            T.copy(total, flat_out[by * 16, 0])

    data, kernel = torch.randn(N, H, W, C).half(), torch.randn(3, 3, C, F).half()
    result = interpret(program, data, kernel, out_idx=-1)
    expected = torch.nn.functional.conv2d(
        data.permute(0, 3, 1, 2).float(), kernel.permute(3, 2, 0, 1).float(), padding=1
    ).permute(0, 2, 3, 1)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
