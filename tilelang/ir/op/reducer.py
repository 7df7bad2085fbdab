"""Reducers: an accumulation epoch over parallel iterations, closed into a fragment.

A reducer handle (scope ``local.reducer.<kind>``) has no readable storage. ``T.reducer_init`` opens
an epoch, every ``T.reducer_update`` inside ``T.Parallel`` contributes once per logical iteration,
and ``T.finalize_reducer`` writes the result. In the IR an update is the call
``tl.reducer_update(r[idx], value)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tvm import DataType, ir
from tvm import tirx as T
from tvm_ffi.dataclasses import py_class

from tilelang.errors import TraceError
from tilelang.ir import builder
from tilelang.ir.expr import convert, dtype_of, is_buffer, is_int_dtype
from tilelang.ir.extremes import larger, smaller
from tilelang.ir.op.base import Operand, TileAttrs, TileCall, TileOp
from tilelang.ir.region import region_extents, to_region

__all__ = [
    "FINALIZE_REDUCER",
    "REDUCER_INIT",
    "REDUCER_KINDS",
    "REDUCER_UPDATE",
    "SCOPE_PREFIX",
    "ReducerAttrs",
    "accumulate",
    "alloc_reducer",
    "finalize_reducer",
    "identity",
    "reducer_init",
    "reducer_kind",
    "reducer_update",
]

REDUCER_KINDS = ("sum", "max", "min", "bitand", "bitor", "bitxor")
SCOPE_PREFIX = "local.reducer."

if "tl.reducer_update" not in set(ir.Op.list_op_names()):
    ir.register_op_attr("tl.reducer_update", "TCallEffectKind", 3)
    ir.register_op_attr("tl.reducer_update", "TScriptPrinterName", "reducer_update")
REDUCER_UPDATE = ir.Op.get("tl.reducer_update")


@py_class("tl.op.ReducerAttrs")
class ReducerAttrs(TileAttrs):
    """``kind`` is one of :data:`REDUCER_KINDS`; ``batch`` is a hint."""

    kind: str = "sum"
    batch: int = 1


def identity(kind: str, dtype: str) -> ir.Expr:
    """The neutral element of ``kind``: 0, lowest, highest, all ones, 0, 0."""
    if kind in ("max", "min") and is_int_dtype(dtype):
        return T.min_value(dtype) if kind == "max" else T.max_value(dtype)
    if kind in ("max", "min"):
        most = _most(dtype)
        return T.const(-most if kind == "max" else most, dtype)
    if kind == "bitand":
        return T.const(
            -1 if dtype.startswith("int") else 2 ** int(dtype.removeprefix("uint")) - 1, dtype
        )
    return T.const(0, dtype)


def _most(dtype: str) -> float:
    """Infinity, or the largest value of a float that has none ("fn" in its name)."""
    if "fn" not in dtype:
        return math.inf
    import ml_dtypes  # TVM's numbers are wrong for some formats; only these need it

    return float(ml_dtypes.finfo(dtype).max)


_FOLDS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "sum": np.add,
    "max": larger,
    "min": smaller,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
}


def accumulate(kind: str, old: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Combine two arrays elementwise with the reduction ``kind``."""
    return _FOLDS[kind](old, value)


def _init_reference(ctx: Any, call: TileCall) -> None:
    dst = call.operand("reducer")
    dtype, kind = ctx.dtype(dst), call.attrs.kind
    start = call.get("start")
    value = ctx.scalar(identity(kind, dtype) if start is None else start)
    shape = [ctx.scalar(extent) for extent in region_extents(dst)]
    ctx.write(dst, np.broadcast_to(ctx.cast(np.asarray(value), dtype), shape))


def _finalize_reference(ctx: Any, call: TileCall) -> None:
    dst = call.get("dst")
    if dst is not None:
        values = ctx.read(call.operand("reducer"))
        shape = [ctx.scalar(extent) for extent in region_extents(dst)]
        ctx.write(dst, ctx.cast(values.reshape(shape), ctx.dtype(dst)))


REDUCER_INIT = TileOp(
    "reducer_init",
    ReducerAttrs,
    (Operand("reducer", "w"), Operand("start", "r", kind="expr", optional=True)),
    _init_reference,
)
FINALIZE_REDUCER = TileOp(
    "finalize_reducer",
    ReducerAttrs,
    (Operand("reducer", "rw"), Operand("dst", "w", optional=True)),
    _finalize_reference,
)


def reducer_kind(what: str, reducer: Any) -> str:
    """The reduction a handle was allocated for; TraceError if it is no reducer."""
    buffer = reducer.source if isinstance(reducer, (ir.TensorLoad, ir.TensorRegion)) else reducer
    if not is_buffer(buffer) or not buffer.scope().startswith(SCOPE_PREFIX):
        raise TraceError(f"{what} needs a handle made by T.alloc_reducer", builder.user_span())
    return buffer.scope().removeprefix(SCOPE_PREFIX)


class ReducerDtypeError(TraceError, AssertionError):
    """A bitwise reducer was asked for a floating dtype."""


def alloc_reducer(
    shape: Any, dtype: Any = "float32", op: str = "sum", replication: str | None = None
) -> ir.Var:
    """Allocate a reducer handle.

    Parameters
    ----------
    shape : int or sequence of int
        One accumulator per element.
    dtype : dtype
        Integer for the bitwise reductions.
    op : {"sum", "max", "min", "bitand", "bitor", "bitxor"}
    replication : {"all", "none"}, optional
        The older style: opened with ``T.clear`` or ``T.fill``, updated with ``r[i] += v``,
        ``r[i] = T.max(r[i], v)`` or ``T.min``, finalised in place. Only sum, max and min.

    Raises
    ------
    TraceError
        For an unknown reduction or a dtype it cannot have.
    """
    span = builder.user_span()
    kinds = REDUCER_KINDS if replication is None else ("sum", "max", "min")
    if op not in kinds:
        raise TraceError(
            f"T.alloc_reducer: unknown op {op!r}; expected one of {', '.join(kinds)}", span
        )
    if replication not in (None, "all", "none"):
        raise TraceError(
            f"T.alloc_reducer: replication must be 'all' or 'none', found {replication!r}", span
        )
    name = str(dtype)
    if op.startswith("bit") and not is_int_dtype(name):
        raise ReducerDtypeError(f"T.alloc_reducer: {op} needs an integer dtype, found {name}", span)
    extents = [shape] if isinstance(shape, int) else list(shape)
    tracer = builder.current("T.alloc_reducer")
    reducer = T.decl_buffer(
        extents,
        name,
        tracer.take_name("reducer"),
        scope=SCOPE_PREFIX + op,
        layout=None,
        data_alignment=max(1, DataType(name).bits // 8),
        span=span,
    )
    tracer.emit(T.AllocBuffer(reducer, span=span))
    return reducer


def reducer_init(reducer: Any, init: Any = None) -> None:
    """Open an accumulation epoch.

    Parameters
    ----------
    reducer : handle made by ``T.alloc_reducer``
    init : scalar of the reducer's dtype, optional
        Combined exactly once per output element, evaluated here.

    Raises
    ------
    TraceError
        If ``reducer`` is no handle or the dtype of ``init`` differs.
    """
    kind = reducer_kind("T.reducer_init", reducer)
    region = to_region(reducer)
    dtype = dtype_of(region)
    if isinstance(init, ir.Expr) and dtype_of(init) != dtype:
        raise TraceError(
            f"T.reducer_init: start value of dtype {dtype_of(init)} does not match reducer "
            f"dtype {dtype}",
            builder.user_span(),
        )
    start = None if init is None else convert(init, dtype)
    REDUCER_INIT.emit({"kind": kind}, reducer=region, start=start)


def reducer_update(element: Any, value: Any) -> None:
    """Contribute ``value`` to ``acc[indices]``, once per logical iteration of ``T.Parallel``.

    Raises
    ------
    TraceError
        If ``element`` is not an element of a reducer.
    """
    kind = reducer_kind("T.reducer_update", element)
    if not isinstance(element, ir.TensorLoad):
        raise TraceError("T.reducer_update needs one element acc[indices]", builder.user_span())
    span = builder.user_span()
    args = [element, convert(value, dtype_of(element))]
    call = ir.Call(REDUCER_UPDATE, args, attrs=ReducerAttrs(kind=kind), ret_ty="void", span=span)
    builder.emit(T.Evaluate(call, span))


def finalize_reducer(
    reducer: Any, dst: Any = None, batch: int = 1, annotations: Mapping[str, Any] | None = None
) -> None:
    """Close an epoch and write the result to ``dst``.

    Parameters
    ----------
    reducer : handle made by ``T.alloc_reducer``
    dst : buffer or slice of the reducer's shape, optional
        Without it (the older style, ``replication=`` given) the handle itself becomes readable.
    batch : int
        Outputs that share one barrier on GPUs, a hint; must divide the number of outputs.

    Raises
    ------
    TraceError
        For a bad ``batch`` or a handle that is no reducer.
    """
    del annotations
    kind, span = reducer_kind("T.finalize_reducer", reducer), builder.user_span()
    if batch < 1:
        raise TraceError(f"T.finalize_reducer: batch must be >= 1, found {batch}", span)
    region = to_region(reducer)
    total = int(np.prod([int(extent) for extent in region_extents(region)]))
    if batch > total:
        raise TraceError(
            f"T.finalize_reducer: batch {batch} exceeds total output elements {total}", span
        )
    if total % batch:
        raise TraceError(
            f"T.finalize_reducer: batch {batch} must evenly divide the {total} outputs", span
        )
    target = None if dst is None else to_region(dst, what="T.finalize_reducer: dst")
    FINALIZE_REDUCER.emit({"kind": kind, "batch": int(batch)}, reducer=region, dst=target)
