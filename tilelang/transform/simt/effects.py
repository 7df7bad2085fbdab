"""Iterations that several threads run, because each of them needs the result in its registers.

What such an iteration does to memory, or to the world, is done by one of the threads.
"""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_mutate, structural_walk

from tilelang.transform.simt.nest import accesses_of

__all__ = ["binds_an_effect", "effects_when", "has_effect", "writes_registers"]

_EFFECTS = ("tl.atomic", "tl.reducer_update", "tirx.call_extern")


def _is_effect(call: ir.Call) -> bool:
    name = call.op.name if isinstance(call.op, ir.Op) else ""
    return name in _EFFECTS or "print" in name


def has_effect(root: Any) -> bool:
    """Whether running a statement or expression twice differs from running it once."""
    found: list[Any] = []
    structural_walk(root, (ir.Call, lambda c: found.append(c) if _is_effect(c) else None))
    return bool(found)


def binds_an_effect(root: Any) -> bool:
    """Whether the result of an effect, such as the previous value of an atomic, is used."""
    found: list[Any] = []

    def on_bind(bind: T.Bind) -> None:
        if has_effect(bind.value):
            found.append(bind)

    def on_store(store: T.BufferStore) -> None:
        if has_effect(store.value):
            found.append(store)

    structural_walk(root, [(T.Bind, on_bind), (T.BufferStore, on_store)])
    return bool(found)


def writes_registers(body: Any) -> bool:
    """Whether a statement leaves something in registers."""
    return any(a.is_write and a.scope.startswith("local") for a in accesses_of(body))


def effects_when(body: T.Stmt, condition: ir.Expr) -> T.Stmt:
    """``body`` with its stores to memory and its effects only where ``condition`` holds."""

    def guarded(stmt: T.Stmt) -> T.Stmt:
        return T.IfThenElse(condition, stmt, None, stmt.span)

    def on_store(store: T.BufferStore, mutator: Any) -> Any:
        return store if str(store.buffer.scope()).startswith("local") else guarded(store)

    def on_evaluate(stmt: T.Evaluate, mutator: Any) -> Any:
        return guarded(stmt) if has_effect(stmt) else stmt

    return structural_mutate(body, [(T.BufferStore, on_store), (T.Evaluate, on_evaluate)])
