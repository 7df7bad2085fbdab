"""Programs around matrix products."""

from __future__ import annotations

import tilelang.language as T

INT = {"int8": "int32", "uint8": "int32"}


def product(
    m, n, k, threads, dtype="float16", out="float32", turn_a=False, turn_b=False,
    a_tile=False, policy=None, stages=0, steps=2,
):  # fmt: skip
    """``steps`` tiles along k, accumulated; A may be staged in registers."""
    a_shape, b_shape = (k, m) if turn_a else (m, k), (n, k) if turn_b else (k, n)
    policy = T.GemmWarpPolicy.Square if policy is None else policy
    scope = T.alloc_fragment if a_tile else T.alloc_shared

    @T.prim_func
    def program(
        A: T.Tensor((steps, *a_shape), dtype), B: T.Tensor((steps, *b_shape), dtype),
        C: T.Tensor((m, n), out),
    ):  # fmt: skip
        with T.Kernel(1, threads=threads):
            a = scope(a_shape, dtype)
            b = T.alloc_shared(b_shape, dtype)
            c = T.alloc_fragment((m, n), out)
            T.clear(c)
            for ko in T.Pipelined(steps, num_stages=stages):
                T.copy(A[ko, 0 : a_shape[0], 0 : a_shape[1]], a)
                T.copy(B[ko, 0 : b_shape[0], 0 : b_shape[1]], b)
                T.gemm(a, b, c, transpose_A=turn_a, transpose_B=turn_b, policy=policy)
            T.copy(c, C)

    return program


def attention(m, n, d, threads, policy=None):
    """Two products; the first's result, after row statistics, is an operand of the second."""
    policy = T.GemmWarpPolicy.FullRow if policy is None else policy

    @T.prim_func
    def program(
        Q: T.Tensor((m, d), "float16"), K: T.Tensor((3 * n, d), "float16"),
        V: T.Tensor((3 * n, d), "float16"), Out: T.Tensor((m, d), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=threads):
            q = T.alloc_shared((m, d), "float16")
            k = T.alloc_shared((n, d), "float16")
            v = T.alloc_shared((n, d), "float16")
            s = T.alloc_fragment((m, n), "float32")
            p = T.alloc_fragment((m, n), "float16")
            top = T.alloc_fragment((m,), "float32")
            last = T.alloc_fragment((m,), "float32")
            out = T.alloc_fragment((m, d), "float32")
            T.copy(Q, q)
            T.clear(out)
            T.fill(top, -1000)
            for j in T.Pipelined(3, num_stages=2):
                T.copy(K[j * n, 0], k)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True, policy=policy)
                T.copy(top, last)
                T.reduce_max(s, top, dim=1, clear=False)
                for a, b in T.Parallel(m, n):
                    p[a, b] = T.if_then_else(s[a, b] > top[a] - 3, 1.0, 0.0)
                for a, b in T.Parallel(m, d):
                    out[a, b] = out[a, b] + top[a] - T.max(last[a], -20.0)
                T.copy(V[j * n, 0], v)
                T.gemm(p, v, out, policy=policy)
            T.copy(out, Out)

    return program


def chained(m, threads):
    """The result of a product is the other operand of the next one, in shared memory."""

    @T.prim_func
    def program(
        A: T.Tensor((m, m), "float16"), B: T.Tensor((m, m), "float16"),
        bias: T.Tensor((m,), "float32"), C: T.Tensor((m, m), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=threads):
            a = T.alloc_shared((m, m), "float16")
            b = T.alloc_shared((m, m), "float16")
            c = T.alloc_fragment((m, m), "float32")
            d = T.alloc_fragment((m, m), "float32")
            row = T.alloc_fragment((m,), "float32")
            sums = T.alloc_fragment((m,), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(bias, row)
            T.gemm(a, b, c, clear_accum=True)
            for i, j in T.Parallel(m, m):
                c[i, j] = T.max(T.min(c[i, j] + row[j], 4.0), -4.0)
            T.reduce_sum(c, sums, dim=0)
            T.copy(c, b)
            T.gemm(a, b, d, clear_accum=True)
            for i, j in T.Parallel(m, m):
                C[i, j] = d[i, j] + sums[i] - sums[j]

    return program
