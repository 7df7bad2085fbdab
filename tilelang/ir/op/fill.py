"""``T.fill`` and ``T.clear``: set every element of a tile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm_ffi.dataclasses import py_class

from tilelang.ir.expr import convert, dtype_of
from tilelang.ir.op.base import Operand, TileAttrs, TileCall, TileOp
from tilelang.ir.region import region_extents, to_region

__all__ = ["FILL", "FillAttrs", "clear", "fill"]


@py_class("tl.op.FillAttrs")
class FillAttrs(TileAttrs):
    """A fill has no options."""


def _reference(ctx: Any, call: TileCall) -> None:
    dst = call.operand("dst")
    shape = [ctx.scalar(extent) for extent in region_extents(dst)]
    value = ctx.cast(np.asarray(ctx.scalar(call.operand("value"))), ctx.dtype(dst))
    ctx.write(dst, np.broadcast_to(value, shape))


FILL = TileOp(
    "fill", FillAttrs, (Operand("dst", "w"), Operand("value", "r", kind="expr")), _reference
)


def fill(buffer: Any, value: Any, annotations: Mapping[str, Any] | None = None) -> None:
    """Set every element of a tile to ``value``, cast to the tile's dtype.

    Parameters
    ----------
    buffer : buffer, element or slice
        Of any scope.
    value : number or scalar expression
        Evaluated once.
    annotations : mapping, optional
        Accepted for compatibility; a fill has no options.

    Examples
    --------
    >>> T.fill(scores_max, -T.infinity("float32"))  # doctest: +SKIP
    """
    del annotations
    region = to_region(buffer, what="T.fill: buffer")
    FILL.emit(dst=region, value=convert(value, dtype_of(region)))


def clear(buffer: Any, annotations: Mapping[str, Any] | None = None) -> None:
    """Set every element of a tile to zero. Same as ``T.fill(buffer, 0)``."""
    fill(buffer, 0, annotations)
