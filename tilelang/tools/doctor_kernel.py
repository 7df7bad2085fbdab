"""The kernel that ``python -m tilelang doctor`` compiles and runs."""

from __future__ import annotations

from typing import Any

import tilelang.language as T

__all__ = ["N", "scaled_sum"]

N = 1024
_BLOCK = 128


def scaled_sum() -> Any:
    """The program ``c = 2 * a + b`` on vectors of :data:`N` floats, through a shared tile."""

    @T.prim_func
    def main(  # noqa: ANN202  (a traced function returns what it builds)
        a: T.Tensor((N,), "float32"),
        b: T.Tensor((N,), "float32"),
        c: T.Tensor((N,), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, _BLOCK), threads=_BLOCK) as block:
            tile = T.alloc_shared((_BLOCK,), "float32")
            T.copy(a[block * _BLOCK], tile)
            for i in T.Parallel(_BLOCK):
                c[block * _BLOCK + i] = tile[i] * 2.0 + b[block * _BLOCK + i]

    return main
