"""Replace N-dimensional buffers by flat ones with explicit offsets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map

from tilelang.ir.expr import const_int, dtype_of, is_buffer
from tilelang.layout.digits import flatten

__all__ = ["TILE_ALIGNMENT", "flat_buffer", "flatten_buffers"]

_INDEX_LIMIT = 2**31
TILE_ALIGNMENT = 64
"""Bytes. A tile starts on a cache line, so that no vector access crosses one."""
_ARITHMETIC = (T.Add, T.Sub, T.Mul)


def flat_buffer(buffer: ir.Var, layout: Any = None, alignment: int = TILE_ALIGNMENT) -> ir.Var:
    """A one-dimensional buffer of the same name, dtype, scope and span.

    A tensor has extent 1: its real size is not needed once accesses are flat. With a ``layout``
    the size is that of its storage.
    """
    shape = list(buffer.shape) if layout is None else layout.get_output_shape()
    sizes = [const_int(extent) for extent in shape]
    known = all(size is not None for size in sizes) and buffer.scope() != "global"
    extent = max(1, math.prod(size for size in sizes if size is not None)) if known else 1
    return T.decl_buffer(
        (extent,),
        dtype_of(buffer),
        buffer.name,
        scope=buffer.scope(),
        layout=None,
        data_alignment=buffer.ty.data_alignment if buffer.scope() == "global" else alignment,
        span=buffer.span,
    )


def flatten_buffers(
    func: T.PrimFunc,
    layouts: Mapping[ir.Var, Any] | None = None,
    alignment: int | None = TILE_ALIGNMENT,
) -> tuple[T.PrimFunc, dict[ir.Var, ir.Var]]:
    """Flatten every buffer of ``func``; also return parameter buffer -> flat buffer.

    Parameters
    ----------
    layouts : mapping of buffer to Layout, optional
        Storage other than row-major.
    alignment : int, optional
        Bytes that tiles are aligned to; None keeps what each buffer says.

    Before: ``A[i, j]`` with shape (n, 16). After: ``A[i * 16 + j]``, in 64-bit arithmetic where the
    offset may pass 2^31.
    """
    flat: dict[ir.Var, ir.Var] = {}
    storage = layouts or {}

    def renamed(buffer: ir.Var) -> ir.Var:
        if buffer not in flat:
            aligned = buffer.ty.data_alignment if alignment is None else alignment
            flat[buffer] = flat_buffer(buffer, storage.get(buffer), aligned)
        return flat[buffer]

    def offset_of(buffer: ir.Var, indices: Any) -> ir.Expr:
        layout = storage.get(buffer)
        if layout is None:
            return _offset(buffer, indices)
        return flatten(
            zip(layout.map_forward_index(list(indices)), layout.get_output_shape(), strict=True)
        )

    def on_load(load: ir.TensorLoad) -> ir.Expr:
        return T.BufferLoad(renamed(load.source), [offset_of(load.source, load.indices)], load.span)

    def on_store(stmt: T.BufferStore) -> T.Stmt:
        offset = offset_of(stmt.buffer, stmt.indices)
        return T.BufferStore(renamed(stmt.buffer), stmt.value, [offset], stmt.span)

    def on_alloc(stmt: T.AllocBuffer) -> T.Stmt:
        return T.AllocBuffer(renamed(stmt.buffer), span=stmt.span)

    def on_decl(stmt: T.DeclBuffer) -> T.Stmt:
        return T.DeclBuffer(renamed(stmt.buffer), data=stmt.data, span=stmt.span)

    def on_call(call: ir.Call) -> ir.Expr:
        if isinstance(call.op, ir.Op) and call.op.name == "tirx.buffer_data":
            return renamed(call.args[0]).data
        return call

    body = structural_map(
        func.body,
        [
            (ir.TensorLoad, on_load),
            (T.BufferStore, on_store),
            (T.AllocBuffer, on_alloc),
            (T.DeclBuffer, on_decl),
            (ir.Call, on_call),
        ],
    )
    params = {p: renamed(p) for p in func.params if is_buffer(p)}
    return func.with_body(body), params


def _offset(buffer: ir.Var, indices: Any) -> ir.Expr:
    wide = _may_be_large(buffer)
    strides = list(buffer.ty.strides) or _compact_strides(buffer)
    total: ir.Expr | None = None
    for index, stride in zip(indices, strides, strict=True):
        if wide:
            index, stride = _widen(index), _widen(stride)
        term = index if const_int(stride) == 1 else index * stride
        total = term if total is None else total + term
    return total if total is not None else T.const(0, "int32")


def _compact_strides(buffer: ir.Var) -> list[Any]:
    strides: list[Any] = [1]
    for extent in reversed(list(buffer.shape)[1:]):
        size = const_int(extent)
        last = strides[0]
        if _may_be_large(buffer) and size is None:
            extent = _widen(extent)
        strides.insert(0, last * (extent if size is None else size))
    return strides[len(strides) - len(buffer.shape) :]


def _may_be_large(buffer: ir.Var) -> bool:
    if len(buffer.ty.strides):
        return True
    sizes = [const_int(extent) for extent in buffer.shape]
    return any(size is None for size in sizes) or math.prod(s or 0 for s in sizes) >= _INDEX_LIMIT


def _widen(expr: Any) -> Any:
    """Recompute an index expression in 64 bits, from its leaves."""
    value = const_int(expr)
    if value is not None:
        return T.const(value, "int64")
    if dtype_of(expr) == "int64":
        return expr
    if isinstance(expr, _ARITHMETIC):
        return type(expr)(_widen(expr.a), _widen(expr.b), expr.span)
    return expr.astype("int64")
