"""Atomics: on one element (an expression) and on a tile (a tile op).

``T.atomic_add(C[i], v)`` on an element is the call ``tl.atomic(C[i], v)`` with an
:class:`AtomicAttrs` record; its value is the element before the update. With a buffer or slice
it is the tile op ``atomic``, one independent update an element.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm_ffi.dataclasses import py_class

from tilelang.errors import TraceError
from tilelang.ir import builder
from tilelang.ir.expr import convert, dtype_of, is_int_dtype
from tilelang.ir.extremes import larger, smaller
from tilelang.ir.op.base import Operand, TileAttrs, TileCall, TileOp
from tilelang.ir.op.copy import match_extents
from tilelang.ir.region import region_extents, region_mins, to_region

__all__ = [
    "ATOMIC",
    "ELEMENT_ATOMIC",
    "MEMORY_ORDERS",
    "AtomicAttrs",
    "atomic_add",
    "atomic_addx2",
    "atomic_addx4",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_store",
    "combine",
]

MEMORY_ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
_LOAD_ORDERS = ("relaxed", "consume", "acquire", "seq_cst")
_STORE_ORDERS = ("relaxed", "release", "seq_cst")

if "tl.atomic" not in set(ir.Op.list_op_names()):
    ir.register_op_attr("tl.atomic", "TCallEffectKind", 3)
    ir.register_op_attr("tl.atomic", "TScriptPrinterName", "atomic")
ELEMENT_ATOMIC = ir.Op.get("tl.atomic")


@py_class("tl.op.AtomicAttrs")
class AtomicAttrs(TileAttrs):
    """``kind`` is add, max, min, and, or, xor, load or store.

    ``order`` is one of :data:`MEMORY_ORDERS`.
    """

    kind: str = "add"
    order: str = "relaxed"
    use_tma: bool = False


def combine(kind: str, old: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The new value of an element, elementwise over arrays of one dtype.

    Sums of floats narrower than float32 come back as float32, for the caller to round.
    """
    if kind == "add":
        narrow = old.dtype.itemsize < 4 and old.dtype.kind not in "iub"
        return old.astype(np.float32) + value.astype(np.float32) if narrow else old + value
    if kind == "or":
        return old | value
    if kind == "store":
        return value
    return larger(old, value) if kind == "max" else smaller(old, value)


def _reference(ctx: Any, call: TileCall) -> None:
    dst = call.operand("dst")
    shape = [ctx.scalar(extent) for extent in region_extents(dst)]
    value = call.operand("value")
    if isinstance(value, ir.TensorRegion):
        update = ctx.read(value).reshape(shape)
    else:
        update = np.broadcast_to(np.asarray(ctx.scalar(value)), shape)
    update = ctx.cast(update, ctx.dtype(dst))
    ctx.write(dst, ctx.cast(combine(call.attrs.kind, ctx.read(dst), update), ctx.dtype(dst)))


# The value is a region of the same extents, or one scalar for the whole tile.
ATOMIC = TileOp("atomic", AtomicAttrs, (Operand("dst", "rw"), Operand("value", "r")), _reference)


def _element(kind: str, dst: ir.TensorLoad, value: Any, order: str) -> ir.Expr:
    dtype = dtype_of(dst)
    args = [dst] if value is None else [dst, convert(value, dtype)]
    attrs = AtomicAttrs(kind=kind, order=order)
    return ir.Call(ELEMENT_ATOMIC, args, attrs=attrs, ret_ty=dtype, span=builder.user_span())


def _update(
    kind: str,
    dst: Any,
    value: Any,
    memory_order: str | None,
    return_prev: bool,
    use_tma: bool = False,
) -> ir.Expr | None:
    what, span = f"T.atomic_{kind}", builder.user_span()
    order = _check_order(what, memory_order, MEMORY_ORDERS, "relaxed")
    if (
        isinstance(dst, ir.TensorLoad)
        and not isinstance(value, ir.TensorRegion)
        and not _is_buffer(value)
    ):
        if use_tma:
            raise TraceError(f"{what}: use_tma needs a tile, found the element {dst}", span)
        call = _element(kind, dst, value, order)
        if return_prev:
            return builder.current().bind("prev", call)
        builder.emit(T.Evaluate(call, span))
        return None
    if return_prev:
        raise TraceError(f"{what}: return_prev works on one element, not on a tile", span)
    attrs = {"kind": kind, "order": order, "use_tma": bool(use_tma)}
    if isinstance(value, (ir.TensorRegion, ir.TensorLoad)) or _is_buffer(value):
        source, target = match_extents(what, value, dst)
        ATOMIC.emit(attrs, dst=target, value=source)
    else:
        target = to_region(dst, what=f"{what}: dst")
        ATOMIC.emit(attrs, dst=target, value=convert(value, dtype_of(target)))
    return None


def _is_buffer(value: Any) -> bool:
    return isinstance(value, ir.Var) and isinstance(value.ty, T.BufferType)


def _check_order(what: str, order: str | None, allowed: tuple[str, ...], default: str) -> str:
    if order is None:
        return default
    if order not in allowed:
        raise TraceError(
            f"{what}: unknown memory order {order!r}; expected one of {', '.join(allowed)}",
            builder.user_span(),
        )
    return order


def atomic_add(
    dst: Any,
    value: Any,
    memory_order: str | None = None,
    return_prev: bool = False,
    use_tma: bool = False,
    annotations: Mapping[str, Any] | None = None,
) -> ir.Expr | None:
    """Add atomically to an element, or elementwise to a tile.

    Parameters
    ----------
    dst : element ``A[i]``, buffer or slice
    value : scalar, buffer or slice
        Cast to the dtype of ``dst``. A scalar is added to every element of a tile.
    memory_order : {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"}, optional
    return_prev : bool
        Return the element before the update; only for one element.
    use_tma : bool
        Use the bulk reduction of GPUs that have one.
    annotations : mapping, optional
        ``memory_order`` and ``use_tma`` by name; they win.

    Raises
    ------
    TraceError
        For an unknown order, extents that do not fit, or ``return_prev`` on a tile.
    """
    options = dict(annotations or {})
    return _update(
        "add",
        dst,
        value,
        options.get("memory_order", memory_order),
        return_prev,
        options.get("use_tma", use_tma),
    )


def atomic_max(
    dst: Any,
    value: Any,
    memory_order: str | None = None,
    return_prev: bool = False,
    annotations: Mapping[str, Any] | None = None,
) -> ir.Expr | None:
    """Replace by the maximum, atomically. See :func:`atomic_add`."""
    return _update(
        "max", dst, value, dict(annotations or {}).get("memory_order", memory_order), return_prev
    )


def atomic_min(
    dst: Any,
    value: Any,
    memory_order: str | None = None,
    return_prev: bool = False,
    annotations: Mapping[str, Any] | None = None,
) -> ir.Expr | None:
    """Replace by the minimum, atomically. See :func:`atomic_add`."""
    return _update(
        "min", dst, value, dict(annotations or {}).get("memory_order", memory_order), return_prev
    )


def atomic_or(dst: Any, value: Any, memory_order: str | None = None) -> None:
    """Bitwise or into one integer element, atomically."""
    if not isinstance(dst, ir.TensorLoad) or not is_int_dtype(dtype_of(dst)):
        raise TraceError("T.atomic_or needs one integer element A[i]", builder.user_span())
    _update("or", dst, value, memory_order, False)


def _vector(lanes: int, dst: Any, value: Any, return_prev: bool) -> None:
    what, span = f"T.atomic_addx{lanes}", builder.user_span()
    if return_prev:
        raise TraceError(f"{what}: return_prev is not available for vector atomics", span)
    regions = [
        to_region(side, [lanes], f"{what}: {name}")
        for name, side in (("dst", dst), ("value", value))
    ]
    for region in regions:
        last = region_extents(region)[-1]
        if int(getattr(last, "value", lanes)) != lanes:
            raise TraceError(
                f"{what} works on {lanes} consecutive elements, found extent {last}", span
            )
    # Element by element: the caller may be a thread, or an iteration of T.Parallel.
    for lane in range(lanes):
        target, source = (_lane(region, lane) for region in regions)
        builder.emit(T.Evaluate(_element("add", target, source, "relaxed"), span))


def _lane(region: ir.TensorRegion, lane: int) -> ir.TensorLoad:
    *lead, first = region_mins(region)
    return T.BufferLoad(region.source, [*lead, first + lane if lane else first])


def atomic_addx2(dst: Any, value: Any, return_prev: bool = False) -> None:
    """Add two consecutive elements, each atomically. ``dst`` and ``value`` are head addresses."""
    _vector(2, dst, value, return_prev)


def atomic_addx4(dst: Any, value: Any, return_prev: bool = False) -> None:
    """Add four consecutive elements, each atomically. ``dst`` and ``value`` are head addresses."""
    _vector(4, dst, value, return_prev)


def atomic_load(src: Any, memory_order: str = "seq_cst") -> ir.Expr:
    """Read one element atomically.

    Raises
    ------
    TraceError
        If ``src`` is no element or the order is not relaxed, consume, acquire or seq_cst.
    """
    order = _check_order("T.atomic_load", memory_order, _LOAD_ORDERS, "seq_cst")
    if not isinstance(src, ir.TensorLoad):
        raise TraceError("T.atomic_load needs one element A[i]", builder.user_span())
    return builder.current().bind("loaded", _element("load", src, None, order))


def atomic_store(dst: Any, src: Any, memory_order: str = "seq_cst") -> None:
    """Write one element atomically, cast to its dtype.

    Raises
    ------
    TraceError
        If ``dst`` is no element or the order is not relaxed, release or seq_cst.
    """
    order = _check_order("T.atomic_store", memory_order, _STORE_ORDERS, "seq_cst")
    if not isinstance(dst, ir.TensorLoad):
        raise TraceError("T.atomic_store needs one element A[i]", builder.user_span())
    builder.emit(T.Evaluate(_element("store", dst, src, order), builder.user_span()))
