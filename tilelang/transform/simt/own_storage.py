"""Tile ops of a thread program on the thread's own storage: every thread does them by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import LoweringError
from tilelang.ir.expr import dtype_of, is_float_dtype
from tilelang.ir.op import TileCall
from tilelang.ir.op.reducer import identity
from tilelang.ir.region import region_extents
from tilelang.transform.folds import combine, working_dtype
from tilelang.transform.loops import alloc, load, serial, store

__all__ = ["lower_own"]


def lower_own(call: TileCall) -> T.Stmt:
    """The op as loops of one thread.

    Raises
    ------
    LoweringError
        If the op has no such form.
    """
    if call.name == "reduce":
        return _reduce(call)
    raise LoweringError(
        f"T.{call.name} works on a tile of the block, and here it is given storage that every "
        "thread has for itself; use T.alloc_shared or T.alloc_fragment",
        call.span,
    )


def _reduce(call: TileCall) -> T.Stmt:
    attrs, src, dst = call.attrs, call.operand("src"), call.operand("dst")
    dtype = working_dtype(dtype_of(src), dtype_of(dst))
    kind = attrs.kind.removeprefix("abs")
    fold = combine(kind, attrs.nan_propagate and is_float_dtype(dtype_of(src)))
    extents = region_extents(src)
    total, zero = alloc("total", [1], dtype), T.const(0, "int32")
    keeps = len(region_extents(dst)) == len(extents)

    def row(outer: Sequence[Any]) -> T.Stmt:
        before, behind = list(outer[: attrs.dim]), list(outer[attrs.dim :])

        def step(k: ir.Var) -> T.Stmt:
            value = load(src, [*before, k, *behind], dtype)
            value = T.abs(value) if attrs.kind.startswith("abs") else value
            return T.BufferStore(total, fold(T.BufferLoad(total, [zero]), value), [zero])

        at = [*before, zero, *behind] if keeps else [*before, *behind]
        at = at or [zero] * len(region_extents(dst))
        result: ir.Expr = T.BufferLoad(total, [zero])
        if not attrs.clear:
            result = fold(load(dst, at, dtype), result)
        return T.SeqStmt(
            [
                T.BufferStore(total, identity(kind, dtype), [zero]),
                serial(extents[attrs.dim], step),
                store(dst, at, result, call.span),
            ]
        )

    outer = [extent for axis, extent in enumerate(extents) if axis != attrs.dim]
    return T.SeqStmt([T.AllocBuffer(total), _loops(outer, row)])


def _loops(extents: Sequence[Any], body: Any, at: tuple[Any, ...] = ()) -> T.Stmt:
    if not extents:
        return body(at)
    return serial(extents[0], lambda i: _loops(extents[1:], body, (*at, i)), "i")
