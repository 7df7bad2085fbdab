"""A block that returns early must not end the blocks behind it."""

from __future__ import annotations

import pytest

import tilelang
import tilelang.language as T
from tilelang.errors import UnsupportedError


@T.prim_func
def leaves_early(A: T.Tensor((64,), "int32")):
    with T.Kernel(64, threads=32) as bx:
        if bx == 3:
            T.ret(0)
        A[bx] = 1


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_early_return_is_refused_with_the_way_out(target: str) -> None:
    with pytest.raises(UnsupportedError, match=r"T.ret inside T.Kernel .* guard the rest"):
        tilelang.compile(leaves_early, target=target)
