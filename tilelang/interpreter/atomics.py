"""Atomic updates of elements and contributions to reducers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim

from tilelang.interpreter import accesses
from tilelang.interpreter.machine import Machine
from tilelang.interpreter.nodes import Fn
from tilelang.interpreter.numbers import Dtype, round_float, wrap
from tilelang.interpreter.operators import operator
from tilelang.interpreter.rules import call_rule
from tilelang.ir.extremes import quiet
from tilelang.ir.op.reducer import SCOPE_PREFIX

__all__ = ["reducer_store"]

Combine = Callable[[Any, Any], Any]


def _combine(kind: str, dtype: Dtype) -> Combine:
    if kind == "load":
        return lambda old, value: old
    return (lambda old, value: value) if kind == "store" else operator(kind, dtype)


@call_rule("tl.atomic")
def _atomic(c: Any, expr: ir.Call) -> Fn:
    """``tl.atomic(A[i], value)``: the points update one after another; gives the old values."""
    target, kind, span = expr.args[0], expr.attrs.kind, expr.span
    buffer, where = c.var(target.source), c.where(target)
    operand = c.value(expr.args[1]) if len(expr.args) > 1 else (lambda m: np.int8(0))

    def run(m: Machine) -> Any:
        view, index, value = m.view(buffer), where(m), operand(m)
        combine = _combine(kind, view.dtype)
        return accesses.update(m, view, index, value, combine, span or m.span, kind != "store")

    return run


_FOLDS: dict[str, np.ufunc] = {
    "sum": np.add,
    "max": np.fmax,
    "min": np.fmin,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
}


@call_rule("tl.reducer_update")
def _reducer_update(c: Any, expr: ir.Call) -> Fn:
    target = expr.args[0]
    return _contribution(c, target.source, target, expr.args[1], expr.attrs.kind, expr.span)


def reducer_store(c: Any, stmt: T.BufferStore) -> Fn | None:
    """The older style ``r[i] += v`` or ``r[i] = T.max(r[i], v)``; None for other stores."""
    scope = stmt.buffer.scope()
    if not scope.startswith(SCOPE_PREFIX):
        return None
    kind = scope.removeprefix(SCOPE_PREFIX)
    node = {"sum": prim.Add, "max": prim.Max, "min": prim.Min}.get(kind)
    value = stmt.value
    if node is None or type(value) is not node:
        return None
    for own, other in ((value.a, value.b), (value.b, value.a)):
        if isinstance(own, ir.TensorLoad) and own.source.same_as(stmt.buffer):
            return _contribution(c, stmt.buffer, stmt, other, kind, stmt.span)
    return None


def _contribution(
    c: Any, buffer: ir.Var, access: Any, value: ir.Expr, kind: str, span: ir.Span | None
) -> Fn:
    """Each active point contributes once; sums are formed in float64 and rounded once."""
    buffer, where, operand = c.var(buffer), c.where(access), c.value(value)
    fold = _FOLDS[kind]

    def run(m: Machine) -> None:
        view = m.view(buffer)
        index, (part,) = accesses.spread(m, tuple(where(m)), [operand(m)], np.True_)
        for axis, extent in zip(index, view.shape, strict=True):
            if len(axis) and not 0 <= axis.min() <= axis.max() < extent:
                raise m.error(f"update of {buffer.name} outside its shape {list(view.shape)}", span)
        if not np.all(view.is_written(index)):
            raise m.error(f"{buffer.name} is updated before it is opened", span)
        wide = np.float64 if view.dtype.kind == "f" else view.dtype.carrier
        total = view.gather((slice(None),) * len(view.shape)).astype(wide)
        fold.at(total, index, quiet(part.astype(wide)))
        kept = round_float(total, view.dtype) if view.dtype.kind == "f" else wrap(total, view.dtype)
        view.scatter(index, kept[index])

    return run
