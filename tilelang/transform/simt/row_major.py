"""Numbers of elements and the indices they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tirx as T

from tilelang.ir.expr import const_int
from tilelang.transform.simt.context import SimtContext

__all__ = ["digits_of"]


def digits_of(number: Any, extents: Sequence[Any], ctx: SimtContext) -> list[Any]:
    """The indices of element ``number`` of a row-major array; the last dimension moves first."""
    digits: list[Any] = []
    rest = number
    for position in range(len(extents) - 1, -1, -1):
        size = const_int(extents[position])
        extent = extents[position] if size is None else T.const(size, "int32")
        digits.append(ctx.simplify(rest if position == 0 else rest % extent))
        rest = rest // extent
    return digits[::-1]
