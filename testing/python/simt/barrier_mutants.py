"""Kernels with one of their barriers taken out."""

from __future__ import annotations

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_walk

__all__ = ["barriers_of", "without_barrier"]


def _is_barrier(stmt):
    value = stmt.value
    named = isinstance(value, ir.Call) and isinstance(value.op, ir.Op)
    return named and value.op.name == "tl.sync_threads"


def barriers_of(func):
    """How many barriers stand in a kernel."""
    found = []
    structural_walk(func.body, (T.Evaluate, lambda s: found.append(s) if _is_barrier(s) else None))
    return len(found)


def without_barrier(func, number):
    """``func`` without its barrier ``number``, counted in the order of a walk."""
    seen = iter(range(barriers_of(func)))

    def drop(stmt):
        return T.Evaluate(0) if _is_barrier(stmt) and next(seen) == number else stmt

    return func.with_body(structural_map(func.body, (T.Evaluate, drop)))
