"""Short index arithmetic: offsets and conditions in the ranges of the variables around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import ir, sym
from tvm import tirx as T
from tvm_ffi import structural_mutate, structural_walk

from tilelang.ir.expr import const_int, dtype_of

__all__ = ["simplify_indices"]

_INTEGERS = ("int32", "int64", "bool")


def simplify_indices(func: T.PrimFunc, ranges: Mapping[ir.Var, int] | None = None) -> T.PrimFunc:
    """Simplify every index and every integer condition; values are left as they are.

    Floats and data are not touched, so nothing that rounds is folded.

    Before: ``S[(tx % 4 * 8 + 0) // 8]``. After: ``S[tx % 4]``.
    """
    return func.with_body(_Simplifier(ranges or {}).run(func.body))


class _Simplifier:
    def __init__(self, ranges: Mapping[ir.Var, int]) -> None:
        self.analyzer = sym.Analyzer()
        for var, extent in ranges.items():
            self.analyzer.bind(var, ir.Range(0, extent))

    def run(self, body: Any) -> Any:
        return structural_mutate(
            body,
            [
                (T.For, self.on_for),
                (ir.TensorLoad, self.on_load),
                (T.BufferStore, self.on_store),
                (T.IfThenElse, self.on_if),
                (ir.Call, self.on_call),
            ],
        )

    def simple(self, expr: Any) -> Any:
        """``expr`` simplified if it is index arithmetic; else as it is."""
        if not isinstance(expr, ir.Expr) or not isinstance(expr.ty, ir.PrimType):
            return expr
        if dtype_of(expr) not in _INTEGERS or not _is_index(expr):
            return expr
        return self.analyzer.simplify(expr)

    def on_for(self, loop: T.For, mutator: Any) -> Any:
        extent = self.simple(loop.extent)
        around = ir.Range.from_min_extent(loop.min, extent)
        self.analyzer.bind(loop.loop_var, around, True)
        return T.For(
            loop.loop_var, loop.min, extent, loop.kind, mutator.mutate(loop.body),
            loop.thread_binding, loop.annotations, loop.step, loop.span,
        )  # fmt: skip

    def on_load(self, load: ir.TensorLoad, mutator: Any) -> Any:
        indices = [self.simple(mutator.mutate(i)) for i in load.indices]
        return T.BufferLoad(load.source, indices, load.span)

    def on_store(self, store: T.BufferStore, mutator: Any) -> Any:
        indices = [self.simple(mutator.mutate(i)) for i in store.indices]
        return T.BufferStore(store.buffer, mutator.mutate(store.value), indices, store.span)

    def on_if(self, stmt: T.IfThenElse, mutator: Any) -> Any:
        condition = self.simple(mutator.mutate(stmt.condition))
        known = const_int(condition)
        if known is not None:
            kept = stmt.then_case if known else stmt.else_case
            return T.Evaluate(0) if kept is None else mutator.mutate(kept)
        if not _is_index(condition):
            return mutator.default_mutate(stmt)
        with self.analyzer.constraint_scope(condition):
            then_case = mutator.mutate(stmt.then_case)
        else_case = stmt.else_case
        if else_case is not None:
            with self.analyzer.constraint_scope(T.Not(condition)):
                else_case = mutator.mutate(else_case)
        return T.IfThenElse(condition, then_case, else_case, stmt.span)

    def on_call(self, call: ir.Call, mutator: Any) -> Any:
        name = call.op.name if isinstance(call.op, ir.Op) else ""
        if name == "prim.if_then_else":
            condition = self.simple(mutator.mutate(call.args[0]))
            branches = [mutator.mutate(a) for a in call.args[1:]]
            known = const_int(condition)
            if known is not None:
                return branches[0] if known else branches[1]
            return T.if_then_else(condition, *branches, span=call.span)
        if name == "tl.cp_async":
            args = [mutator.mutate(a) for a in call.args[:3]]
            predicate = self.simple(mutator.mutate(call.args[3]))
            return ir.Call(
                call.op, [*args, predicate], attrs=call.attrs, ret_ty=call.ty, span=call.span
            )
        return mutator.default_mutate(call)


def _is_index(expr: Any) -> bool:
    """Whether ``expr`` is built from integers, variables and arithmetic alone."""
    foreign: list[Any] = []

    def on_call(call: ir.Call) -> None:
        foreign.append(call)

    def on_cast(cast: T.Cast) -> None:
        if dtype_of(cast) not in _INTEGERS or dtype_of(cast.value) not in _INTEGERS:
            foreign.append(cast)

    structural_walk(
        expr,
        [
            (ir.TensorLoad, foreign.append),
            (ir.Call, on_call),
            (T.FloatImm, foreign.append),
            (T.Cast, on_cast),
        ],
    )
    return not foreign
