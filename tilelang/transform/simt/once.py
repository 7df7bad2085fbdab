"""Statements of a block program outside of nests and tile ops: their effects happen once.

A program that names no thread describes a block. All of its threads run the scalar code, which
gives each of them the same registers; what reaches memory is done by the first thread alone.
"""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_walk

from tilelang.ir.expr import dtype_of
from tilelang.ir.intrin import find
from tilelang.ir.op import ELEMENT_ATOMIC
from tilelang.transform.simt.barriers import unit
from tilelang.transform.simt.context import SimtContext

__all__ = ["once", "once_for_all", "runs_once"]


def runs_once(stmt: Any) -> bool:
    """Whether a statement has an effect outside of the registers of its thread."""
    if isinstance(stmt, T.BufferStore):
        scope = str(stmt.buffer.scope())
        return scope == "global" or scope.startswith("shared")
    return isinstance(stmt, T.Evaluate) and _has_effect(stmt.value)


def _has_effect(value: Any) -> bool:
    found: list[ir.Call] = []

    def on_call(call: ir.Call) -> None:
        name = call.op.name if isinstance(call.op, ir.Op) else ""
        record = find(call)
        shown = record is not None and record.name in ("print", "device_assert")
        if shown or call.op.same_as(ELEMENT_ATOMIC) or name == "tirx.call_extern":
            found.append(call)

    structural_walk(value, (ir.Call, on_call))
    return bool(found)


def once(stmt: T.Stmt, ctx: SimtContext) -> T.Stmt:
    """``stmt`` in the first thread of the block."""
    first = T.EQ(ctx.thread, T.const(0, "int32"))
    return unit(T.IfThenElse(first, stmt, None, stmt.span), stmt.span)


def once_for_all(bind: T.Bind, ctx: SimtContext) -> T.Stmt:
    """A binding to the result of an effect: one thread has it, all of them get the value."""
    space = ctx.shared(str(bind.var.name), [1], dtype_of(bind.var))
    zero = [T.const(0, "int32")]
    put = once(T.BufferStore(space, bind.value, zero, bind.span), ctx)
    return T.SeqStmt([put, T.Bind(bind.var, T.BufferLoad(space, zero), bind.span)])
