"""``T.reduce*``: reduce one dimension of a tile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tvm import ir
from tvm_ffi.dataclasses import py_class

from tilelang.errors import TraceError
from tilelang.ir import builder
from tilelang.ir.expr import const_int, dtype_of, is_int_dtype
from tilelang.ir.extremes import largest, smallest
from tilelang.ir.op.base import Operand, TileAttrs, TileCall, TileOp
from tilelang.ir.region import region_extents, to_region

__all__ = [
    "REDUCE",
    "REDUCE_KINDS",
    "ReduceAttrs",
    "reduce",
    "reduce_absmax",
    "reduce_abssum",
    "reduce_bitand",
    "reduce_bitor",
    "reduce_bitxor",
    "reduce_max",
    "reduce_min",
    "reduce_sum",
]

REDUCE_KINDS = ("sum", "abssum", "max", "absmax", "min", "bitand", "bitor", "bitxor")
_NAN_KINDS = ("max", "min", "absmax")


@py_class("tl.op.ReduceAttrs")
class ReduceAttrs(TileAttrs):
    """``dim`` is non-negative. ``batch`` is a hint."""

    kind: str = "sum"
    dim: int = 0
    clear: bool = True
    batch: int = 1
    nan_propagate: bool = False


def _sum(values: np.ndarray, axis: int) -> np.ndarray:
    return values.sum(axis=axis, dtype=values.dtype)


_FOLDS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "sum": _sum,
    "max": largest,
    "min": smallest,
    "bitand": lambda values, axis: np.bitwise_and.reduce(values, axis=axis),
    "bitor": lambda values, axis: np.bitwise_or.reduce(values, axis=axis),
    "bitxor": lambda values, axis: np.bitwise_xor.reduce(values, axis=axis),
}


def _reference(ctx: Any, call: TileCall) -> None:
    attrs, dst = call.attrs, call.operand("dst")
    dtype = ctx.dtype(dst)
    wide = wide_dtype(ctx.dtype(call.operand("src")))
    exact = wide is not np.float64
    values = ctx.read(call.operand("src")).astype(wide)
    if attrs.kind.startswith("abs"):
        values = np.abs(values)
    if not attrs.clear:
        old = ctx.read(dst).astype(values.dtype)
        shape = [s for d, s in enumerate(values.shape) if d != attrs.dim]
        values = np.concatenate([np.expand_dims(old.reshape(shape), attrs.dim), values], attrs.dim)
    fold = attrs.kind.removeprefix("abs")
    result = _FOLDS[fold](values, attrs.dim)
    if attrs.nan_propagate and not exact:
        result = np.where(np.isnan(values).any(axis=attrs.dim), np.nan, result)
    shape = [ctx.scalar(extent) for extent in region_extents(dst)]
    ctx.write(dst, ctx.cast(result, dtype).reshape(shape))


REDUCE = TileOp("reduce", ReduceAttrs, (Operand("src", "r"), Operand("dst", "rw")), _reference)


def reduce(
    buffer: Any,
    out: Any,
    reduce_type: str,
    dim: int,
    clear: bool,
    batch: int = 1,
    nan_propagate: bool = False,
    annotations: Mapping[str, Any] | None = None,
) -> None:
    """Reduce dimension ``dim`` of a tile into ``out``.

    Parameters
    ----------
    buffer : buffer or slice
        The tile, of any scope; any extent.
    out : buffer, element or slice
        Shape of ``buffer`` with ``dim`` dropped or kept as 1.
    reduce_type : {"sum", "abssum", "max", "absmax", "min", "bitand", "bitor", "bitxor"}
    dim : int
        Negative counts from the end.
    clear : bool
        False combines with what ``out`` already holds.
    batch : int
        How many outputs share one barrier on GPUs, a hint.
    nan_propagate : bool
        For max, min and absmax: a NaN gives NaN. Otherwise NaN are ignored.

    Raises
    ------
    TraceError
        If the reduction is unknown, ``dim`` is out of range or the shapes do not fit.
    """
    del annotations
    if reduce_type not in REDUCE_KINDS:
        raise TraceError(
            f"T.reduce: unknown reduction {reduce_type!r}; known: {', '.join(REDUCE_KINDS)}",
            builder.user_span(),
        )
    _emit("T.reduce", buffer, out, reduce_type, dim, clear, batch, nan_propagate)


def _emit(
    what: str,
    buffer: Any,
    out: Any,
    reduce_type: str,
    dim: int,
    clear: bool,
    batch: int,
    nan_propagate: bool = False,
) -> None:
    """Emit a reduction; messages name ``what``, the function the user called."""
    span = builder.user_span()
    src = to_region(buffer, what=f"{what}: buffer")
    dst = to_region(out, what=f"{what}: out")
    axis = normalize_dim(what, dim, len(src.region), span)
    _check_output(what, src, dst, axis, span)
    if (
        reduce_type.startswith("bit")
        and not is_int_dtype(dtype_of(src))
        and dtype_of(src) != "bool"
    ):
        raise TraceError(
            f"T.reduce_{reduce_type} needs an integer tile, found {dtype_of(src)}", span
        )
    if nan_propagate and reduce_type not in _NAN_KINDS:
        raise TraceError(f"{what}: nan_propagate is only for {', '.join(_NAN_KINDS)}", span)
    if batch < 1:
        raise TraceError(f"{what}: batch must be >= 1, found {batch}", span)
    attrs = {
        "kind": reduce_type,
        "dim": axis,
        "clear": bool(clear),
        "batch": int(batch),
        "nan_propagate": bool(nan_propagate),
    }
    REDUCE.emit(attrs, src=src, dst=dst)


def wide_dtype(dtype: str) -> type:
    """The numpy type in which values of ``dtype`` are combined exactly (or in double)."""
    if dtype == "uint64":
        return np.uint64
    return np.int64 if is_int_dtype(dtype) or dtype == "bool" else np.float64


def normalize_dim(what: str, dim: int, rank: int, span: ir.Span | None) -> int:
    """Turn a possibly negative dimension into one in ``[0, rank)``; TraceError when outside."""
    if not -rank <= dim < rank:
        raise TraceError(f"{what}: dim {dim} is out of range for a tile of rank {rank}", span)
    return dim % rank


def _check_output(
    what: str, src: ir.TensorRegion, dst: ir.TensorRegion, axis: int, span: ir.Span | None
) -> None:
    extents = [const_int(extent) for extent in region_extents(src)]
    dropped = extents[:axis] + extents[axis + 1 :]
    kept = [*extents[:axis], 1, *extents[axis + 1 :]]
    found = [const_int(extent) for extent in region_extents(dst)]
    if found not in (dropped, kept) and not (not dropped and found == [1]):
        raise TraceError(
            f"{what}: reducing dim {axis} of {src.source.name}{tuple(extents)} gives "
            f"{tuple(dropped)} "
            f"or {tuple(kept)}, but {dst.source.name} has {tuple(found)}",
            span,
        )


def reduce_sum(
    buffer: Any,
    out: Any,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    annotations: Mapping[str, Any] | None = None,
) -> None:
    """Sum along ``dim``. See :func:`reduce`."""
    del annotations
    _emit("T.reduce_sum", buffer, out, "sum", dim, clear, batch)


def reduce_abssum(
    buffer: Any,
    out: Any,
    dim: int = -1,
    batch: int = 1,
    annotations: Mapping[str, Any] | None = None,
) -> None:
    """Sum of absolute values along ``dim``; always overwrites. See :func:`reduce`."""
    del annotations
    _emit("T.reduce_abssum", buffer, out, "abssum", dim, True, batch)


def reduce_max(
    buffer: Any,
    out: Any,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool = False,
    annotations: Mapping[str, Any] | None = None,
) -> None:
    """Maximum along ``dim``. See :func:`reduce`."""
    del annotations
    _emit("T.reduce_max", buffer, out, "max", dim, clear, batch, nan_propagate)


def reduce_min(
    buffer: Any,
    out: Any,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool = False,
    annotations: Mapping[str, Any] | None = None,
) -> None:
    """Minimum along ``dim``. See :func:`reduce`."""
    del annotations
    _emit("T.reduce_min", buffer, out, "min", dim, clear, batch, nan_propagate)


def reduce_absmax(
    buffer: Any,
    out: Any,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool = False,
    annotations: Mapping[str, Any] | None = None,
) -> None:
    """Maximum of absolute values along ``dim``. See :func:`reduce`."""
    del annotations
    _emit("T.reduce_absmax", buffer, out, "absmax", dim, clear, batch, nan_propagate)


def reduce_bitand(
    buffer: Any,
    out: Any,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    annotations: Mapping[str, Any] | None = None,
) -> None:
    """Bitwise and along ``dim``. See :func:`reduce`."""
    del annotations
    _emit("T.reduce_bitand", buffer, out, "bitand", dim, clear, batch)


def reduce_bitor(
    buffer: Any,
    out: Any,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    annotations: Mapping[str, Any] | None = None,
) -> None:
    """Bitwise or along ``dim``. See :func:`reduce`."""
    del annotations
    _emit("T.reduce_bitor", buffer, out, "bitor", dim, clear, batch)


def reduce_bitxor(
    buffer: Any,
    out: Any,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    annotations: Mapping[str, Any] | None = None,
) -> None:
    """Bitwise exclusive or along ``dim``. See :func:`reduce`."""
    del annotations
    _emit("T.reduce_bitxor", buffer, out, "bitxor", dim, clear, batch)
