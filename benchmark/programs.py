# ruff: noqa: ANN202  (a traced function returns what it builds)
"""The programs that are measured, in the public language."""

from __future__ import annotations

from typing import Any

import tilelang.language as T

__all__ = ["add", "gemm", "quick_start", "rms_norm", "softmax"]


def gemm(
    m: int, n: int, k: int, block: tuple[int, int, int], dtype: str, accum: str, relu: bool = False
) -> Any:
    """``c = a @ b``, with a fused ReLU if asked for; the result has the accumulator's type."""
    bm, bn, bk = block

    @T.prim_func
    def main(a: T.Tensor((m, k), dtype), b: T.Tensor((k, n), dtype), c: T.Tensor((m, n), accum)):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=128) as (bx, by):
            a_tile = T.alloc_shared((bm, bk), dtype)
            b_tile = T.alloc_shared((bk, bn), dtype)
            acc = T.alloc_fragment((bm, bn), accum)
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(k, bk), num_stages=3):
                T.copy(a[by * bm, ko * bk], a_tile)
                T.copy(b[ko * bk, bx * bn], b_tile)
                T.gemm(a_tile, b_tile, acc)
            if relu:
                for i, j in T.Parallel(bm, bn):
                    acc[i, j] = T.max(acc[i, j], 0)
            T.copy(acc, c[by * bm, bx * bn])

    return main


def quick_start() -> Any:
    """The GEMM with a fused ReLU of the README, 1024 cubed."""
    return gemm(1024, 1024, 1024, (64, 64, 32), "float32", "float32", relu=True)


def add(n: int, block: int) -> Any:
    """``c = a + b`` on vectors."""

    @T.prim_func
    def main(
        a: T.Tensor((n,), "float32"), b: T.Tensor((n,), "float32"), c: T.Tensor((n,), "float32")
    ):
        with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
            for i in T.Parallel(block):
                c[bx * block + i] = a[bx * block + i] + b[bx * block + i]

    return main


def softmax(rows: int, columns: int) -> Any:
    """Softmax along rows."""

    @T.prim_func
    def main(x: T.Tensor((rows, columns), "float32"), y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(rows, threads=128) as bx:
            tile = T.alloc_fragment((1, columns), "float32")
            high = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(x[bx : bx + 1, :], tile)
            T.reduce_max(tile, high, dim=1)
            for i, j in T.Parallel(1, columns):
                tile[i, j] = T.exp(tile[i, j] - high[i])
            T.reduce_sum(tile, total, dim=1)
            for i in T.Parallel(1):
                total[i] = 1.0 / total[i]
            for i, j in T.Parallel(1, columns):
                y[bx + i, j] = tile[i, j] * total[i]

    return main


def rms_norm(rows: int, columns: int, eps: float) -> Any:
    """Root-mean-square normalisation along rows, with a weight."""

    @T.prim_func
    def main(
        x: T.Tensor((rows, columns), "float32"),
        w: T.Tensor((columns,), "float32"),
        y: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(rows, threads=128) as bx:
            tile = T.alloc_fragment((1, columns), "float32")
            square = T.alloc_fragment((1, columns), "float32")
            scale = T.alloc_fragment((1,), "float32")
            T.copy(x[bx : bx + 1, :], tile)
            for i, j in T.Parallel(1, columns):
                square[i, j] = tile[i, j] * tile[i, j]
            T.reduce_sum(square, scale, dim=1)
            for i in T.Parallel(1):
                scale[i] = T.rsqrt(scale[i] / columns + eps)
            for i, j in T.Parallel(1, columns):
                tile[i, j] = tile[i, j] * scale[i] * w[j]
            T.copy(tile, y[bx : bx + 1, :])

    return main
