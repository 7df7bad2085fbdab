"""``T.cumsum`` and ``T.cummax``: inclusive scans along one dimension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm_ffi.dataclasses import py_class

from tilelang.errors import TraceError
from tilelang.ir import builder
from tilelang.ir.expr import const_int
from tilelang.ir.extremes import running_largest
from tilelang.ir.op.base import Operand, TileAttrs, TileCall, TileOp
from tilelang.ir.op.reduce import normalize_dim, wide_dtype
from tilelang.ir.region import region_extents, to_region

__all__ = ["SCAN", "ScanAttrs", "cummax", "cumsum"]


@py_class("tl.op.ScanAttrs")
class ScanAttrs(TileAttrs):
    """``dim`` is non-negative; ``reverse`` scans from the end."""

    kind: str = "sum"
    dim: int = 0
    reverse: bool = False


def _reference(ctx: Any, call: TileCall) -> None:
    attrs, dst = call.attrs, call.operand("dst")
    values = ctx.read(call.operand("src")).astype(wide_dtype(ctx.dtype(call.operand("src"))))
    fold = np.add.accumulate if attrs.kind == "sum" else running_largest
    if attrs.reverse:
        values = np.flip(values, attrs.dim)
    result = fold(values, axis=attrs.dim)
    if attrs.reverse:
        result = np.flip(result, attrs.dim)
    shape = [ctx.scalar(extent) for extent in region_extents(dst)]
    ctx.write(dst, ctx.cast(result, ctx.dtype(dst)).reshape(shape))


SCAN = TileOp("scan", ScanAttrs, (Operand("src", "r"), Operand("dst", "w")), _reference)


def _scan(kind: str, src: Any, dst: Any, dim: int, reverse: bool) -> None:
    what, span = f"T.cum{kind}", builder.user_span()
    source = to_region(src, what=f"{what}: src")
    target = source if dst is None else to_region(dst, what=f"{what}: dst")
    axis = normalize_dim(what, dim, len(source.region), span)
    extents = [[const_int(e) for e in region_extents(r)] for r in (source, target)]
    if extents[0] != extents[1]:
        raise TraceError(
            f"{what}: src {tuple(extents[0])} and dst {tuple(extents[1])} differ in shape", span
        )
    SCAN.emit({"kind": kind, "dim": axis, "reverse": bool(reverse)}, src=source, dst=target)


def cumsum(
    src: Any,
    dst: Any = None,
    dim: int = 0,
    reverse: bool = False,
    annotations: Mapping[str, Any] | None = None,
) -> None:
    """Inclusive running sum along ``dim``, in place unless ``dst`` is given.

    Parameters
    ----------
    src, dst : buffer or slice of equal shape, of any scope
    dim : int
        Negative counts from the end.
    reverse : bool
        Sum from the last element to the first.
    """
    del annotations
    _scan("sum", src, dst, dim, reverse)


def cummax(
    src: Any,
    dst: Any = None,
    dim: int = 0,
    reverse: bool = False,
    annotations: Mapping[str, Any] | None = None,
) -> None:
    """Inclusive running maximum along ``dim``; NaN are ignored. See :func:`cumsum`."""
    del annotations
    _scan("max", src, dst, dim, reverse)
