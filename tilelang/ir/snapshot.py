"""Keeping the value an expression has now, although memory changes before it is used.

Expressions are symbolic: ``A[0]`` held by Python is read where it is finally used. Where Python
would have read it earlier, the value is bound to a variable first, but only if that can make a
difference: if the expression reads memory at all (:func:`snapshot`), or if what was emitted in the
meantime may write what it reads (:func:`settle`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm_ffi import VisitInterrupt, structural_walk

from tilelang.ir.builder import Block, current_or_none, user_span

__all__ = ["Position", "position", "reads_memory", "settle", "snapshot"]

_PURE = 1  # TCallEffectKind: 0 is an annotation, 1 pure, higher ones read or change state
_FIXED = (ir.Var, prim.IntImm, prim.FloatImm, ir.StringImm)


def _is_effect(call: ir.Call) -> bool:
    kind = call.op.get_attr("TCallEffectKind") if isinstance(call.op, ir.Op) else None
    return kind is None or int(kind) > _PURE


def reads_memory(value: ir.Expr) -> bool:
    """Whether evaluating ``value`` depends on when it happens."""
    if isinstance(value, _FIXED):
        return False
    callbacks: Any = [
        (ir.TensorLoad, VisitInterrupt),
        (ir.Call, lambda call: VisitInterrupt(call) if _is_effect(call) else None),
    ]
    return structural_walk(value, callbacks) is not None


def snapshot(value: Any, name: str = "value") -> Any:
    """``value`` as it is now: what it reads from memory is bound to a variable.

    The bounds of a slice are taken now, its elements are not. Anything else than a scalar
    expression or a slice, and everything outside a trace, is returned unchanged.
    """
    builder = current_or_none()
    if builder is None or not isinstance(value, ir.Expr) or isinstance(value, ir.Var):
        return value
    if isinstance(value, ir.TensorRegion):
        bounds = [bound for rng in value.region for bound in (rng.min, rng.extent)]
        if not any(reads_memory(bound) for bound in bounds):
            return value
        kept = [snapshot(bound, f"{name}_bound") for bound in bounds]
        pairs = zip(kept[::2], kept[1::2], strict=True)
        return T.BufferRegion(value.source, [ir.Range.from_min_extent(a, b) for a, b in pairs])
    if isinstance(value.ty, ir.PrimType) and value.ty != "void" and reads_memory(value):
        return builder.bind(name, value)
    return value


@dataclass(frozen=True)
class Position:
    """A place between two statements of a trace."""

    block: Block
    index: int


def position() -> Position | None:
    """The place where the next statement goes, or None outside a trace."""
    builder = current_or_none()
    if builder is None:
        return None
    return Position(builder.block_now, len(builder.stmts))


def settle(value: Any, since: Position | None) -> Any:
    """``value`` as it was at ``since``.

    If a statement emitted since then may write what ``value`` reads, the value is bound at that
    place, and the variable is returned.
    """
    builder = current_or_none()
    if builder is None or since is None or not isinstance(value, ir.Expr):
        return value
    later = since.block.stmts[since.index :]
    if not later or isinstance(value, ir.TensorRegion) or not reads_memory(value):
        return value
    if not _may_change(value, later):
        return value
    span = user_span()
    var = T.Var("before", value.ty, span)
    since.block.insert(since.index, T.Bind(var, value, span))
    return var


def _may_change(value: ir.Expr, stmts: Sequence[T.Stmt]) -> bool:
    read: list[ir.Var] = []
    callbacks: Any = [(ir.TensorLoad, lambda load: read.append(load.source))]
    structural_walk(value, callbacks)

    def touched(buffer: ir.Expr) -> VisitInterrupt | None:
        return VisitInterrupt(buffer) if any(buffer.same_as(b) for b in read) else None

    def called(call: ir.Call) -> VisitInterrupt | None:
        if not _is_effect(call):
            return None
        found = structural_walk(call, [(ir.Var, touched)])
        return None if found is None else VisitInterrupt(call)

    if not read:  # an effect of its own: its order counts
        return True
    effects: Any = [(T.BufferStore, lambda store: touched(store.buffer)), (ir.Call, called)]
    return any(structural_walk(stmt, effects) is not None for stmt in stmts)
