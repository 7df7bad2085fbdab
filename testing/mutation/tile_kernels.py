"""Kernels of tiles, chosen so that a planted bug changes what one of them computes.

Each is small, deterministic and exact: whatever a correct compiler does, the interpreter's result
is the only one allowed.
"""

from __future__ import annotations

from typing import Any

import tilelang.language as T
from testing.mutation.registry import kernel


@kernel()
def tails() -> Any:
    """Blocks that stick out of both dimensions, read shifted by a row and a column."""
    M, N, BM, BN = 13, 21, 4, 8

    @T.prim_func
    def main(A: T.Tensor((M, N), "int32"), C: T.Tensor((M, N), "int32")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=32) as (bx, by):
            X = T.alloc_fragment((BM, BN), "int32")
            T.copy(A[by * BM - 1, bx * BN + 1], X)
            for i, j in T.Parallel(BM, BN):
                C[by * BM + i, bx * BN + j] = X[i, j] + A[by * BM + i + 1, bx * BN + j - 1]

    return main


@kernel()
def tiled_tails() -> Any:
    """The same with tile operations only."""
    M, N, BM, BN = 13, 21, 4, 8

    @T.prim_func
    def main(A: T.Tensor((M, N), "int8"), C: T.Tensor((M, N), "int8")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=32) as (bx, by):
            X = T.alloc_shared((BM, BN), "int8")
            T.copy(A[by * BM, bx * BN], X)
            T.copy(X, C[by * BM, bx * BN])

    return main


@kernel()
def one_past_the_end() -> Any:
    """The last iteration alone is outside."""

    @T.prim_func
    def main(A: T.Tensor((7,), "int32"), C: T.Tensor((7,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                C[i] = A[i] * 2

    return main


@kernel()
def guarded_in_branches() -> Any:
    """What holds in one branch does not in the other, nor in the loop after it."""

    @T.prim_func
    def main(A: T.Tensor((9,), "int32"), C: T.Tensor((3, 16), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(16):
                if i < 9:
                    C[0, i] = A[i]
                else:
                    C[0, i] = A[i - 8] - A[i]
            for i in T.Parallel(8):
                C[1, i] = A[i + 2]
            for i in T.Parallel(16):
                C[2, i] = A[i]

    return main


@kernel()
def safe_value() -> Any:
    """Reads outside give the annotated value."""

    @T.prim_func
    def main(A: T.Tensor((10,), "int32"), C: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=32):
            T.annotate_safe_value({A: 7})
            for i in T.Parallel(16):
                C[i] = A[i - 3]

    return main


@kernel(calls=[{"n": 5}, {"n": 32}, {"n": 0}, {"n": 70}])
def run_time_size() -> Any:
    """One program for sizes below, at and above whole blocks."""
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n, 3), "int16"), C: T.Tensor((3, n), "int16")):
        with T.Kernel(T.ceildiv(n, 16), threads=32) as b:
            for i, j in T.Parallel(16, 3):
                C[j, b * 16 + i] = A[b * 16 + i, j]

    return main


@kernel()
def vector_lengths() -> Any:
    """Parallel loops whose extent is a whole number of vectors, less than one, and neither."""

    @T.prim_func
    def main(A: T.Tensor((3, 37), "float32"), C: T.Tensor((3, 37), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(37):
                C[0, i] = A[0, i] + 1.0
            for i in T.Parallel(3):
                C[1, i] = A[1, i] + 2.0
            for i in T.Parallel(32):
                C[2, i] = A[2, i + 5] + A[1, 4]

    return main


@kernel()
def unlike_loops() -> Any:
    """Loops that are no vector loops: strided, reversed, conditional, of mixed neighbours."""

    @T.prim_func
    def main(A: T.Tensor((32, 32), "float32"), C: T.Tensor((5, 32), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((32, 32), "float32")
            T.copy(A, S)
            for j in T.Parallel(32):
                C[0, j] = S[j, 3]
            for j in T.Parallel(32):
                C[1, j] = S[5, 31 - j]
            for j in T.Parallel(32):
                if S[0, j] > 0.0:
                    C[2, j] = S[1, j]
            for j in T.Parallel(32):
                C[3, 31 - j] = S[2, j]
            for j in T.Parallel(32):
                C[4, j] = T.if_then_else(j < 30, S[4, j // 2], S[j, j])

    return main


@kernel()
def stepped_loops() -> Any:
    """Loops that do not count by one, and loops inside loops that depend on them."""

    @T.prim_func
    def main(A: T.Tensor((16,), "int32"), C: T.Tensor((3, 16), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((16,), "int32")
            T.copy(A, S)
            for k in T.unroll(1, 16, 4):
                S[k] = S[k] * 10 + k
            T.copy(S, C[0, 0:16])
            for k in T.serial(2, 15, 3):
                for q in T.serial(k % 4):
                    S[k] = S[k] + S[q]
            T.copy(S, C[1, 0:16])
            for k in T.serial(15, -1, -4):
                S[k] = S[k] - k
            T.copy(S, C[2, 0:16])

    return main


@kernel()
def serial_dependence() -> Any:
    """Iterations that need the one before them; a parallel loop that does not start at 0."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((2, 64), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((64,), "float32")
            T.copy(A, S)
            for k in T.serial(63):
                S[k + 1] = S[k] + A[k]
            T.copy(S, C[0, 0:64])
            for k in T.parallel(3, 50):
                C[1, k] = A[k] + 1.0

    return main


@kernel()
def transpose() -> Any:
    """A square tile, so that a missing swap still fits; regions that do not start at 0."""

    @T.prim_func
    def main(A: T.Tensor((12, 12), "int32"), C: T.Tensor((12, 12), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((12, 12), "int32")
            X = T.alloc_shared((12, 12), "int32")
            T.copy(A, S)
            T.transpose(S, X)
            T.copy(X[2:5, 1:12], C[4:7, 0:11])
            T.fill(X[0:2, 3], 77)
            T.copy(X[0:2, 0:12], C[10:12, 0:12])

    return main


@kernel()
def reduce_rows() -> Any:
    """Lengths of whole vectors, with a tail, and of one element; into an old value or over it."""

    @T.prim_func
    def main(A: T.Tensor((5, 83), "int32"), C: T.Tensor((7, 5), "int32")):
        with T.Kernel(1, threads=32):
            X = T.alloc_fragment((5, 83), "int32")
            R = T.alloc_fragment((5,), "int32")
            T.copy(A, X)
            for i, j in T.Parallel(5, 83):
                X[i, j] = X[i, j] - 20
            T.reduce_sum(X, R, dim=1)
            T.copy(R, C[0, 0:5])
            T.reduce_max(X, R, dim=1)
            T.copy(R, C[1, 0:5])
            T.fill(R, 5)
            T.reduce_sum(X[0:5, 0:64], R, dim=1, clear=False)
            T.copy(R, C[2, 0:5])
            T.reduce_abssum(X[0:5, 0:1], R, dim=1)
            T.copy(R, C[3, 0:5])
            T.fill(R, -1000)
            T.reduce_min(X, R, dim=1, clear=False)
            T.copy(R, C[4, 0:5])
            T.reduce_bitand(X, R, dim=1)
            T.copy(R, C[5, 0:5])
            T.reduce_bitxor(X, R, dim=1)
            T.copy(R, C[6, 0:5])

    return main


@kernel()
def reduce_columns() -> Any:
    """Over the first and the middle dimension."""

    @T.prim_func
    def main(A: T.Tensor((3, 7, 10), "int16"), C: T.Tensor((4, 7, 10), "int16")):
        with T.Kernel(1, threads=32):
            X = T.alloc_fragment((3, 7, 10), "int16")
            R = T.alloc_fragment((7, 10), "int16")
            Q = T.alloc_fragment((3, 10), "int16")
            T.copy(A, X)
            T.reduce_sum(X, R, dim=0)
            T.copy(R, C[0, 0:7, 0:10])
            T.fill(R, 3)
            T.reduce_max(X, R, dim=0, clear=False)
            T.copy(R, C[1, 0:7, 0:10])
            T.reduce_min(X, Q, dim=1)
            T.copy(Q, C[2, 0:3, 0:10])

    return main


@kernel(values="special")
def reduce_nan() -> Any:
    """Extremes of rows with NaN and infinities, with and without propagation."""

    @T.prim_func
    def main(A: T.Tensor((8, 37), "float32"), C: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, threads=32):
            X = T.alloc_fragment((8, 37), "float32")
            R = T.alloc_fragment((8,), "float32")
            T.copy(A, X)
            T.reduce_max(X, R, dim=1)
            T.copy(R, C[0, 0:8])
            T.reduce_min(X, R, dim=1)
            T.copy(R, C[1, 0:8])
            T.reduce_max(X, R, dim=1, nan_propagate=True)
            T.copy(R, C[2, 0:8])
            T.reduce_absmax(X, R, dim=1)
            T.copy(R, C[3, 0:8])

    return main


@kernel()
def reduce_wide() -> Any:
    """Sums of bytes in 32 bits, and of halves beyond what halves hold on the way."""

    @T.prim_func
    def main(A: T.Tensor((4, 90), "int8"), B: T.Tensor((4, 50), "float16"),
             C: T.Tensor((4,), "int32"), C2: T.Tensor((4,), "float16")):  # fmt: skip
        with T.Kernel(1, threads=32):
            X = T.alloc_fragment((4, 90), "int8")
            R = T.alloc_fragment((4,), "int32")
            Y = T.alloc_fragment((4, 50), "float16")
            Q = T.alloc_fragment((4,), "float16")
            for i, j in T.Parallel(4, 90):
                X[i, j] = A[i, j] * 15
            T.reduce_sum(X, R, dim=1)
            T.copy(R, C)
            for i, j in T.Parallel(4, 50):
                Y[i, j] = T.if_then_else(j < 25, B[i, j] + 4096, B[i, j] - 4096)
            T.reduce_sum(Y, Q, dim=1)
            T.copy(Q, C2)

    return main


@kernel()
def scans() -> Any:
    """Both directions of both dimensions."""

    @T.prim_func
    def main(A: T.Tensor((5, 11), "int32"), C: T.Tensor((4, 5, 11), "int32")):
        with T.Kernel(1, threads=32):
            X = T.alloc_shared((5, 11), "int32")
            Y = T.alloc_shared((5, 11), "int32")
            T.copy(A, X)
            T.cumsum(X, Y, dim=1)
            T.copy(Y, C[0, 0:5, 0:11])
            T.cumsum(X, Y, dim=1, reverse=True)
            T.copy(Y, C[1, 0:5, 0:11])
            T.cumsum(X, Y, dim=0)
            T.copy(Y, C[2, 0:5, 0:11])
            T.cummax(X, Y, dim=0, reverse=True)
            T.copy(Y, C[3, 0:5, 0:11])

    return main


@kernel()
def unfolded_image() -> Any:
    """An image of odd size, with padding, stride and dilation."""

    @T.prim_func
    def main(A: T.Tensor((2, 7, 9, 3), "int32"), C: T.Tensor((40, 27), "int32")):
        with T.Kernel(2, threads=32) as b:
            X = T.alloc_shared((20, 27), "int32")
            T.im2col(A, X, b, 0, 3, 2, 2, 2)
            T.copy(X, C[b * 20, 0])

    return main


@kernel()
def logical() -> Any:
    """Any and all, of rows of zeros, of ones, and where one element decides."""

    @T.prim_func
    def main(C: T.Tensor((2, 24), "int32")):
        with T.Kernel(6, threads=32) as b:
            X = T.alloc_shared((4, 9), "int32")
            for i, j in T.Parallel(4, 9):
                odd = (i + j + b) % 9 == 0
                X[i, j] = T.if_then_else(odd, i % 2, i // 2)
            for r in T.unroll(4):
                C[0, b * 4 + r] = T.cast(T.any_of(X[r, 0:9]), "int32")
                C[1, b * 4 + r] = T.cast(T.all_of(X[r, 0:9]), "int32")

    return main


def _product(dtype: str, acc: str, trans_a: bool, trans_b: bool, clear: bool) -> Any:
    M, N, K, BM, BN, BK = 23, 97, 34, 13, 71, 17
    a_shape, b_shape = (K, M) if trans_a else (M, K), (N, K) if trans_b else (K, N)
    a_tile, b_tile = (BK, BM) if trans_a else (BM, BK), (BN, BK) if trans_b else (BK, BN)

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), acc)):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (bx, by):
            X = T.alloc_shared(a_tile, dtype)
            Y = T.alloc_shared(b_tile, dtype)
            Z = T.alloc_fragment((BM, BN), acc)
            T.fill(Z, 1)
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=2):
                if trans_a:
                    T.copy(A[k * BK, by * BM], X)
                else:
                    T.copy(A[by * BM, k * BK], X)
                if trans_b:
                    T.copy(B[bx * BN, k * BK], Y)
                else:
                    T.copy(B[k * BK, bx * BN], Y)
                T.gemm(X, Y, Z, transpose_A=trans_a, transpose_B=trans_b, clear_accum=clear)
            T.copy(Z, C[by * BM, bx * BN])

    return main


@kernel()
def product() -> Any:
    """Sizes that no block divides; the accumulator starts at one."""
    return _product("float32", "float32", False, False, False)


@kernel()
def product_transposed_a() -> Any:
    return _product("float16", "float32", True, False, False)


@kernel()
def product_transposed_b() -> Any:
    return _product("int8", "int32", False, True, False)


@kernel()
def product_cleared() -> Any:
    return _product("float32", "float32", False, False, True)


def _square_product(trans_a: bool, trans_b: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((48, 48), "float32"), B: T.Tensor((48, 48), "float32"),
             C: T.Tensor((48, 48), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128):
            X = T.alloc_shared((48, 48), "float32")
            Y = T.alloc_shared((48, 48), "float32")
            Z = T.alloc_fragment((48, 48), "float32")
            T.copy(A, X)
            T.copy(B, Y)
            T.clear(Z)
            T.gemm(X, Y, Z, transpose_A=trans_a, transpose_B=trans_b)
            T.copy(Z, C)

    return main


@kernel()
def square_product_transposed_a() -> Any:
    """All extents are equal, so that a missing transposition still fits."""
    return _square_product(True, False)


@kernel()
def square_product_transposed_b() -> Any:
    return _square_product(False, True)
