"""Atomic additions to neighbouring elements of a tensor become one wide operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import ir, sym
from tvm import tirx as T
from tvm_ffi import structural_equal, structural_mutate, structural_walk

from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.intrin import simt
from tilelang.ir.op import ELEMENT_ATOMIC
from tilelang.transform.simt.access_map import mentions
from tilelang.transform.simt.context import register_array
from tilelang.transform.simt.defaults import at_zero

__all__ = ["widen_atomics"]

#: The most elements that must be aligned together, by dtype.
_PIECES = {"float16": 2, "bfloat16": 2, "float32": 4}
_RUNS = (4, 2)
_LOOPS = (2, 4, 8)


@dataclass(frozen=True)
class _Addition:
    """``A[indices] += value`` if ``condition`` holds."""

    target: ir.TensorLoad
    value: ir.Expr
    condition: Any
    span: ir.Span | None

    @property
    def last(self) -> ir.Expr:
        return self.target.indices[-1]


def widen_atomics(body: T.Stmt) -> T.Stmt:
    """Join relaxed additions whose old value nobody wants.

    Before: ``for v in T.unroll(4): T.atomic_add(C[tx * 4 + v], f[v])``. After: ``for v in
    T.unroll(4): w[v] = f[v]``, then ``T.atomic_add_vec(&C[tx * 4], &w[0], 4)``.
    """
    analyzer = sym.Analyzer()

    def on_for(loop: T.For, mutator: Any) -> Any:
        result = mutator.default_mutate(loop)
        return _joined_loop(result, analyzer) or result

    def on_sequence(stmt: T.SeqStmt, mutator: Any) -> Any:
        result = mutator.default_mutate(stmt)
        return _joined_run(result, analyzer) if isinstance(result, T.SeqStmt) else result

    return structural_mutate(body, [(T.For, on_for), (T.SeqStmt, on_sequence)])


def _addition(stmt: Any) -> _Addition | None:
    condition = None
    if isinstance(stmt, T.IfThenElse) and stmt.else_case is None:
        condition, stmt = stmt.condition, stmt.then_case
    call: Any = stmt.value if isinstance(stmt, T.Evaluate) else None
    if not isinstance(call, ir.Call) or not call.op.same_as(ELEMENT_ATOMIC):
        return None
    if call.attrs.kind != "add" or call.attrs.order != "relaxed":
        return None
    target, value = call.args
    if dtype_of(target) not in _PIECES or str(target.source.scope()) != "global":
        return None
    return _Addition(target, value, condition, stmt.span)


def _joined_loop(loop: T.For, analyzer: sym.Analyzer) -> T.Stmt | None:
    lanes, var = const_int(loop.extent), loop.loop_var
    found = _addition(loop.body) if loop.kind == T.ForKind.UNROLLED else None
    if found is None or lanes not in _LOOPS or const_int(loop.min) != 0:
        return None
    first = analyzer.simplify(found.last - var)
    fixed = [*found.target.indices[:-1], first, found.condition]
    if any(mentions(part, [var]) for part in fixed if part is not None):
        return None
    if not _aligned(found, first, lanes, analyzer) or _reads(found.value, found.target.source):
        return None
    array = _array(found, lanes)
    fill = T.For(var, 0, lanes, loop.kind, T.BufferStore(array, found.value, [var]))
    head = at_zero(found.target, var)
    return _wide(found, array, head, lanes, [fill])


def _joined_run(stmt: T.SeqStmt, analyzer: sym.Analyzer) -> T.Stmt:
    children = list(stmt.seq)
    additions = [_addition(child) for child in children]
    result: list[T.Stmt] = []
    position = 0
    while position < len(children):
        lanes = next((n for n in _RUNS if _is_run(additions[position:], n, analyzer)), 1)
        first = additions[position]
        if lanes == 1 or first is None:
            result.append(children[position])
            position += 1
            continue
        array = _array(first, lanes)
        values = [a.value for a in additions[position : position + lanes] if a is not None]
        puts = [T.BufferStore(array, value, [lane]) for lane, value in enumerate(values)]
        result.append(_wide(first, array, first.target, lanes, puts))
        position += lanes
    return T.stmt_seq(*result) if len(result) < len(children) else stmt


def _is_run(additions: Sequence[_Addition | None], lanes: int, analyzer: sym.Analyzer) -> bool:
    """Whether the first ``lanes`` additions are to neighbours, under one condition."""
    run = [a for a in additions[:lanes] if a is not None]
    if len(run) < lanes or not _aligned(run[0], run[0].last, lanes, analyzer):
        return False
    first = run[0]
    for lane, other in enumerate(run):
        same = other.target.source.same_as(first.target.source) and all(
            structural_equal(a, b)
            for a, b in zip(other.target.indices[:-1], first.target.indices[:-1], strict=True)
        )
        if not same or const_int(analyzer.simplify(other.last - first.last)) != lane:
            return False
        one = other.condition is None and first.condition is None
        if not one and not structural_equal(other.condition, first.condition):
            return False
        if _reads(other.value, first.target.source):
            return False
    return True


def _aligned(found: _Addition, first: ir.Expr, lanes: int, analyzer: sym.Analyzer) -> bool:
    """Whether the wide operation begins at a multiple of its size, in every row of the tensor."""
    piece = min(lanes, _PIECES[dtype_of(found.target)])
    buffer = found.target.source
    last = const_int(buffer.shape[-1])
    whole = len(buffer.shape) == 1 or (last is not None and last % piece == 0)
    if not whole or len(buffer.ty.strides) or const_int(buffer.ty.elem_offset or 0) != 0:
        return False
    start = analyzer.modular_set(first)
    return int(start.coeff) % piece == 0 and int(start.base) % piece == 0


def _reads(value: ir.Expr, buffer: ir.Var) -> bool:
    """Whether ``value`` depends on ``buffer`` or on an update of anything."""
    found: list[Any] = []

    def on_load(load: ir.TensorLoad) -> None:
        if load.source.same_as(buffer):
            found.append(load)

    def on_call(call: ir.Call) -> None:
        if call.op.same_as(ELEMENT_ATOMIC):
            found.append(call)

    structural_walk(value, [(ir.TensorLoad, on_load), (ir.Call, on_call)])
    return bool(found)


def _array(found: _Addition, lanes: int) -> ir.Var:
    dtype = dtype_of(found.target)
    return register_array(f"w_{found.target.source.name}", lanes, dtype, 16)


def _wide(
    found: _Addition, array: ir.Var, head: ir.TensorLoad, lanes: int, before: Sequence[T.Stmt]
) -> T.Stmt:
    source = T.address_of(T.BufferLoad(array, [0]))
    add = simt.call("atomic_add_vec", T.address_of(head), source, lanes, span=found.span)
    body = T.SeqStmt([T.AllocBuffer(array), *before, add])
    if found.condition is None:
        return body
    return T.IfThenElse(found.condition, body, None, found.span)
