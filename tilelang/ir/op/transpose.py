"""``T.transpose``: swap the last two dimensions of a tile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm_ffi.dataclasses import py_class

from tilelang.errors import TraceError
from tilelang.ir import builder
from tilelang.ir.expr import const_int
from tilelang.ir.op.base import Operand, TileAttrs, TileCall, TileOp
from tilelang.ir.region import region_extents, to_region

__all__ = ["TRANSPOSE", "TransposeAttrs", "transpose"]


@py_class("tl.op.TransposeAttrs")
class TransposeAttrs(TileAttrs):
    """A transpose has no options."""


def _reference(ctx: Any, call: TileCall) -> None:
    dst = call.operand("dst")
    ctx.write(dst, ctx.cast(np.swapaxes(ctx.read(call.operand("src")), -1, -2), ctx.dtype(dst)))


TRANSPOSE = TileOp(
    "transpose", TransposeAttrs, (Operand("src", "r"), Operand("dst", "w")), _reference
)


def transpose(src: Any, dst: Any, annotations: Mapping[str, Any] | None = None) -> None:
    """Write ``src`` with its last two dimensions swapped to ``dst``, casting to its dtype.

    Parameters
    ----------
    src : buffer or slice, (..., M, N)
    dst : buffer or slice, (..., N, M)
        Must not overlap ``src``.

    Raises
    ------
    TraceError
        If the shapes do not fit or both are the same buffer.
    """
    del annotations
    span = builder.user_span()
    source, target = (
        to_region(src, what="T.transpose: src"),
        to_region(dst, what="T.transpose: dst"),
    )
    left, right = ([const_int(e) for e in region_extents(r)] for r in (source, target))
    if len(left) < 2 or left[:-2] + left[-2:][::-1] != right:
        raise TraceError(f"T.transpose: src {tuple(left)} does not give dst {tuple(right)}", span)
    if source.source.same_as(target.source):
        raise TraceError("T.transpose: src and dst must be different buffers", span)
    TRANSPOSE.emit(src=source, dst=target)
