"""Make every access to a tensor safe: reads outside give the safe value, writes are dropped.

A guard appears only where the bounds are not proved from loop ranges and enclosing conditions.
For a whole loop nest that needs guards, one test before the nest picks between an unguarded copy
(every index inside, known from the extreme values of the loop variables) and the guarded one, so
that full tiles pay one comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from tvm import ir, sym
from tvm import tirx as T
from tvm_ffi import structural_mutate, structural_walk

from tilelang.ir.expr import const_int, dtype_of, is_buffer
from tilelang.ir.op import ELEMENT_ATOMIC

__all__ = ["guard_accesses", "guard_statement"]


@dataclass
class _Guard:
    """State of one traversal."""

    safe_values: dict[ir.Var, Any] = field(default_factory=dict)
    analyzer: sym.Analyzer = field(default_factory=sym.Analyzer)
    known: list[ir.Expr] = field(default_factory=list)
    inside_root: bool = False
    needed: list[ir.Expr] = field(default_factory=list)
    assume_safe: bool = False
    hoist: bool = True


def guard_accesses(func: T.PrimFunc, *, hoist: bool = True) -> T.PrimFunc:
    """Guard the accesses of ``func`` to its tensors; ``T.annotate_safe_value`` is honoured.

    With ``hoist`` a nest is emitted twice, behind one test; without, every access has its own.

    Conditions stated by ``assert`` and ``T.assume`` count as known; assumptions are used up here.

    Before: ``for i in T.parallel(64): S[i] = A[bx * 64 + i]``. After: ``if bx * 64 + 63 < n:`` the
    same loop, ``else: for i in T.parallel(64): S[i] = if_then_else(bx * 64 + i < n,
    A[bx * 64 + i], 0)``.
    """
    state = _Guard(hoist=hoist)
    for param in func.params:
        if is_buffer(param):
            for extent in param.shape:
                if isinstance(extent, ir.Var):
                    state.analyzer.update(extent, sym.ConstIntBound(0, 2**31 - 1), True)
    return func.with_body(_rewrite(state, func.body))


def guard_statement(stmt: T.Stmt, analyzer: sym.Analyzer) -> T.Stmt:
    """Guard the accesses of one statement; ``analyzer`` knows the variables around it.

    For code that lowering makes after :func:`guard_accesses`.
    """
    return _rewrite(_Guard(analyzer=analyzer, hoist=False), stmt)


def _rewrite(state: _Guard, root: Any) -> Any:
    handlers: list[tuple[type, Callable[..., Any]]] = [
        (T.AttrStmt, lambda s, m: _on_attr(state, s, m)),
        (T.SeqStmt, lambda s, m: _on_sequence(state, s, m)),
        (T.Evaluate, lambda s, m: _on_evaluate(s, m)),
        (T.For, lambda s, m: _on_for(state, s, m)),
        (T.IfThenElse, lambda s, m: _on_if(state, s, m)),
        (T.Bind, lambda s, m: _on_bind(state, s, m)),
        (T.BufferStore, lambda s, m: _on_store(state, s, m)),
        (ir.TensorLoad, lambda e, m: _on_load(state, e, m)),
        (ir.Call, lambda e, m: _on_call(state, e, m)),
    ]
    return structural_mutate(root, handlers)


def _on_attr(state: _Guard, stmt: T.AttrStmt, mutator: Any) -> Any:
    if stmt.attr_key != "tl.safe_value":
        return mutator.default_mutate(stmt)
    state.safe_values[stmt.node] = stmt.value
    return mutator.mutate(stmt.body)


def _on_sequence(state: _Guard, stmt: T.SeqStmt, mutator: Any) -> Any:
    """What is asserted or assumed holds for the statements after it."""
    result: list[T.Stmt] = []
    with ExitStack() as scopes:
        for child in stmt.seq:
            result.append(mutator.mutate(child))
            fact = _stated_fact(child)
            if fact is not None:
                scopes.enter_context(state.analyzer.constraint_scope(fact))
    return T.SeqStmt(result, stmt.span)


def _stated_fact(stmt: Any) -> ir.Expr | None:
    """The condition that execution behind ``stmt`` implies, if it is one of indices."""
    fact: Any = None
    if isinstance(stmt, T.AssertStmt):
        fact = stmt.condition
    elif isinstance(stmt, T.Evaluate) and _is_assumption(stmt.value):
        fact = stmt.value.args[0]
    return None if fact is None or _reads(fact) else fact


def _is_assumption(value: Any) -> bool:
    called = isinstance(value, ir.Call) and isinstance(value.op, ir.Op)
    return called and value.op.name == "tirx.assume"


def _on_evaluate(stmt: T.Evaluate, mutator: Any) -> Any:
    if _is_assumption(stmt.value):
        return T.Evaluate(0)
    result = mutator.default_mutate(stmt)
    if not _is_atomic(stmt.value) or _is_atomic(result.value):
        return result
    condition, update, _ = result.value.args
    return T.IfThenElse(condition, T.Evaluate(update, stmt.span), None, stmt.span)


def _is_atomic(value: Any) -> bool:
    return isinstance(value, ir.Call) and value.op.same_as(ELEMENT_ATOMIC)


def _on_for(state: _Guard, loop: T.For, mutator: Any) -> Any:
    if "tl.parallel" in loop.annotations and not state.inside_root:
        return _on_root(state, loop, mutator)
    return _scoped_for(state, loop, mutator)


def _scoped_for(state: _Guard, loop: T.For, mutator: Any) -> Any:
    state.analyzer.bind(loop.loop_var, ir.Range.from_min_extent(loop.min, loop.extent), True)
    return mutator.default_mutate(loop)


def _on_root(state: _Guard, loop: T.For, mutator: Any) -> Any:
    outer_needed, state.needed, state.inside_root = state.needed, [], True
    guarded = _scoped_for(state, loop, mutator)
    needed, state.needed = state.needed, outer_needed
    result: Any = guarded
    if needed and state.hoist:
        hoisted = _hoist(state, loop, needed)
        if hoisted is not None:
            state.assume_safe = True
            plain = _scoped_for(state, loop, mutator)
            state.assume_safe = False
            result = T.IfThenElse(hoisted, plain, guarded, loop.span)
    state.inside_root = False
    return result


def _hoist(state: _Guard, loop: T.For, needed: list[ir.Expr]) -> ir.Expr | None:
    """A condition on outer variables that implies all of ``needed``, or None."""
    domain: dict[ir.Var, Any] = {}
    blocked: list[Any] = []

    def inner_loop(inner: T.For) -> None:
        last = inner.min + inner.extent - 1
        domain[inner.loop_var] = sym.IntervalSet(inner.min, last)

    structural_walk(loop, [(T.For, inner_loop), (T.Bind, lambda b: blocked.append(b.var))])
    result: ir.Expr | None = None
    seen: set[str] = set()
    for condition in needed:
        bound = _extreme(state, condition, domain, blocked)
        if bound is None:
            return None
        key = str(bound)
        if key in seen:
            continue
        seen.add(key)
        result = bound if result is None else T.And(result, bound)
    return result


def _extreme(
    state: _Guard, cond: Any, domain: dict[ir.Var, Any], blocked: list[Any]
) -> ir.Expr | None:
    """``cond`` (``index < size`` or ``index >= 0``) at the worst value of the loop variables."""
    reach = state.analyzer.int_set(cond.a, domain)
    worst = reach.max_value if isinstance(cond, T.LT) else reach.min_value
    if not isinstance(worst, ir.Expr):
        return None
    bad: list[Any] = []
    names = [*domain, *blocked]

    def check(node: Any) -> None:
        if any(node.same_as(name) for name in names):
            bad.append(node)

    structural_walk(worst, [(ir.Var, check), (ir.TensorLoad, bad.append)])
    if bad or "inf" in str(worst):
        return None
    worst = state.analyzer.simplify(worst)
    return T.LT(worst, cond.b) if isinstance(cond, T.LT) else T.GE(worst, cond.b)


def _on_if(state: _Guard, stmt: T.IfThenElse, mutator: Any) -> Any:
    condition = mutator.mutate(stmt.condition)
    then_case = _under(state, condition, lambda: mutator.mutate(stmt.then_case))
    else_case = stmt.else_case
    if else_case is not None:
        else_case = _under(state, T.Not(condition), lambda: mutator.mutate(stmt.else_case))
    return T.IfThenElse(condition, then_case, else_case, stmt.span)


def _under(state: _Guard, condition: ir.Expr, run: Callable[[], Any]) -> Any:
    with ExitStack() as scopes:
        if not _compares_unsigned(condition):  # the analyzer negates what it is told
            scopes.enter_context(state.analyzer.constraint_scope(condition))
        state.known.append(condition)
        result = run()
        state.known.pop()
    return result


def _compares_unsigned(condition: ir.Expr) -> bool:
    found: list[Any] = []

    def check(node: Any) -> None:
        if dtype_of(node.a).startswith("uint"):
            found.append(node)

    kinds = (T.LT, T.LE, T.GT, T.GE, T.EQ, T.NE)
    structural_walk(condition, [(kind, check) for kind in kinds])
    return bool(found)


def _on_bind(state: _Guard, stmt: T.Bind, mutator: Any) -> Any:
    result = mutator.default_mutate(stmt)
    if dtype_of(result.var) in ("int32", "int64") and not _reads(result.value):
        state.analyzer.bind(result.var, result.value, True)
    return result


def _reads(expr: Any) -> bool:
    found: list[Any] = []
    structural_walk(expr, (ir.TensorLoad, found.append))
    return bool(found)


def _on_call(state: _Guard, call: ir.Call, mutator: Any) -> Any:
    name = call.op.name if isinstance(call.op, ir.Op) else ""
    if name == "prim.if_then_else":
        cond = mutator.mutate(call.args[0])
        first = _under(state, cond, lambda: mutator.mutate(call.args[1]))
        second = _under(state, T.Not(cond), lambda: mutator.mutate(call.args[2]))
        return T.if_then_else(cond, first, second, span=call.span)
    if name == "tirx.address_of":
        return call
    return _atomic(state, call, mutator) if _is_atomic(call) else mutator.default_mutate(call)


def _atomic(state: _Guard, call: ir.Call, mutator: Any) -> Any:
    """An update outside of the tensor is dropped; the old value then is the safe one."""
    target = call.args[0]
    indices = [mutator.mutate(index) for index in target.indices]
    condition = _unproved(state, target.source, indices)
    args = [T.BufferLoad(target.source, indices, target.span)]
    args += [mutator.mutate(value) for value in call.args[1:]]
    result = ir.Call(call.op, args, attrs=call.attrs, ret_ty=call.ty, span=call.span)
    if condition is None:
        return result
    return T.if_then_else(condition, result, _safe_value(state, target), span=call.span)


def _on_load(state: _Guard, load: ir.TensorLoad, mutator: Any) -> Any:
    indices = [mutator.mutate(index) for index in load.indices]
    result = T.BufferLoad(load.source, indices, load.span)
    condition = _unproved(state, load.source, indices)
    if condition is None:
        return result
    return T.if_then_else(condition, result, _safe_value(state, load), span=load.span)


def _safe_value(state: _Guard, load: ir.TensorLoad) -> ir.Expr:
    safe = state.safe_values.get(load.source, 0)
    return safe if isinstance(safe, ir.Expr) else T.const(safe, dtype_of(load))


def _on_store(state: _Guard, stmt: T.BufferStore, mutator: Any) -> Any:
    indices = [mutator.mutate(index) for index in stmt.indices]
    condition = _unproved(state, stmt.buffer, indices)
    if condition is None:
        return T.BufferStore(stmt.buffer, mutator.mutate(stmt.value), indices, stmt.span)
    value = _under(state, condition, lambda: mutator.mutate(stmt.value))
    return T.IfThenElse(
        condition, T.BufferStore(stmt.buffer, value, indices, stmt.span), None, stmt.span
    )


def _unproved(state: _Guard, buffer: ir.Var, indices: list[ir.Expr]) -> ir.Expr | None:
    """The conditions on ``indices`` that are not proved, joined; None if all are."""
    if buffer.scope() != "global":
        return None
    missing: list[ir.Expr] = []
    for index, size in zip(indices, buffer.shape, strict=True):
        index, size = _comparable(index, size)
        for condition in (T.GE(index, T.const(0, dtype_of(index))), T.LT(index, size)):
            if not state.analyzer.can_prove(condition):
                missing.append(condition)
    if not missing:
        return None
    if state.inside_root:
        if state.assume_safe:
            return None
        state.needed.extend(missing)
    result = missing[0]
    for condition in missing[1:]:
        result = T.And(result, condition)
    return result


def _comparable(index: ir.Expr, size: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """An index and an extent in the wider of their dtypes."""
    have = dtype_of(index), dtype_of(size)
    if have[0] == have[1]:
        return index, size
    wide = "int64" if "int64" in have else have[0]
    value = const_int(size)
    size = size.astype(wide) if value is None else T.const(value, wide)
    return index.astype(wide), size
