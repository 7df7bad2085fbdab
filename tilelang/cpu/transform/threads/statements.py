"""Statements of a block: what threads do apart goes into loops, what they do together between."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_walk

from tilelang.cpu.transform.threads.block import Block, for_threads
from tilelang.cpu.transform.threads.classify import (
    is_collective_call,
    is_per_thread_op,
    is_tile_print,
    leaves_loop,
    meets,
)
from tilelang.cpu.transform.threads.collectives import Exchange, collective
from tilelang.cpu.transform.threads.control import (
    is_uniform,
    lower_branch,
    lower_for,
    lower_jump,
    lower_while,
)
from tilelang.cpu.transform.threads.once import run_once
from tilelang.cpu.transform.threads.one_thread import at_thread, thread_loop
from tilelang.ir.expr import dtype_of
from tilelang.ir.op import TileCall
from tilelang.transform.thread_use import BARRIERS, lane_intrinsic

__all__ = ["lower_statement"]


def lower_statement(block: Block, stmt: Any) -> list[T.Stmt]:
    """Statements that run ``stmt`` for the whole block."""
    out: list[T.Stmt] = []
    pending: list[T.Stmt] = []

    def flush() -> None:
        if pending:
            out.append(thread_loop(block, T.stmt_seq(*pending)))
            pending.clear()

    for child in stmt.seq if isinstance(stmt, T.SeqStmt) else [stmt]:
        if isinstance(child, (T.AllocBuffer, T.DeclBuffer)) and child.buffer not in block.addresses:
            flush()
            out.append(_declaration(block, child))
        elif meets(child, block.thread_vars) or leaves_loop(child):
            flush()
            out.extend(_meeting(block, child))
        else:
            if isinstance(child, T.Bind) and not block.masks and is_uniform(block, child.value):
                block.uniform.add(child.var)
            out.extend(_declared_inside(block, child))
            pending.append(child)
    flush()
    return out


def _declaration(block: Block, stmt: T.AllocBuffer | T.DeclBuffer) -> T.Stmt:
    buffer = block.expanded.get(stmt.buffer, stmt.buffer)
    if isinstance(stmt, T.AllocBuffer):
        return T.AllocBuffer(buffer, span=stmt.span)
    source = stmt.data.args[0] if isinstance(stmt.data, ir.Call) else None
    data = block.expanded[source].data if source in block.expanded else stmt.data
    return T.DeclBuffer(buffer, data=data, span=stmt.span)


def _declared_inside(block: Block, stmt: Any) -> list[T.Stmt]:
    """Storage for everything that threads declare for themselves inside ``stmt``."""
    found: list[T.Stmt] = []

    def on_bind(bind: T.Bind) -> None:
        if bind.var in block.binds:
            found.append(T.AllocBuffer(block.binds[bind.var]))

    def on_declaration(inner: T.AllocBuffer | T.DeclBuffer) -> None:
        if inner.buffer in block.addresses:
            found.append(T.AllocBuffer(block.addresses[inner.buffer]))
        elif inner.buffer in block.expanded:
            found.append(_declaration(block, inner))

    rules = [(T.Bind, on_bind), ((T.AllocBuffer, T.DeclBuffer), on_declaration)]
    structural_walk(stmt, rules)
    return found


def _meeting(block: Block, stmt: Any) -> list[T.Stmt]:
    """A statement in which threads meet, or leave a loop."""
    if isinstance(stmt, T.SeqStmt):
        return block.lower(block, stmt)
    if isinstance(stmt, T.AttrStmt):
        body = T.stmt_seq(*block.lower(block, stmt.body))
        return [T.AttrStmt(stmt.node, stmt.attr_key, stmt.value, body, stmt.span)]
    if isinstance(stmt, T.Evaluate) and lane_intrinsic(stmt.value) in BARRIERS:
        return []
    if _happens_once(block, stmt):
        return run_once(block, stmt)
    if isinstance(stmt, T.For):
        before, header = _hoist(block, [stmt.min, stmt.extent])
        return [*before, *lower_for(block, stmt, header)]
    if isinstance(stmt, T.While):
        return lower_while(block, stmt, *_hoist_later(block, stmt.condition))
    if isinstance(stmt, T.IfThenElse):
        before, (condition,) = _hoist(block, [stmt.condition])
        return [*before, *lower_branch(block, stmt, condition)]
    if isinstance(stmt, (T.Break, T.Continue)):
        return lower_jump(block, stmt)
    return _exchanges(block, stmt)


def _happens_once(block: Block, stmt: Any) -> bool:
    """Whether the whole block executes a statement once: parallel loops and tile ops."""
    if isinstance(stmt, T.For):
        return bool(stmt.kind == T.ForKind.PARALLEL)
    if not isinstance(stmt, T.Evaluate):
        return False
    tile = TileCall.of(stmt)
    collective_op = tile is not None and not is_per_thread_op(tile, block.thread_vars)
    return collective_op or is_tile_print(stmt.value)


# --- exchanges ----------------------------------------------------------------------------------


def _exchanges(block: Block, stmt: Any) -> list[T.Stmt]:
    """A plain statement with votes or shuffles in it: they run before it, over all threads."""
    before: list[T.Stmt] = []

    def on_call(call: ir.Call) -> Any:
        return _run_exchange(block, call, before) if is_collective_call(call) else call

    rewritten = structural_map(stmt, (ir.Call, on_call))
    declared = _declared_inside(block, rewritten)
    return [*before, *declared, thread_loop(block, rewritten)]


def _hoist(block: Block, exprs: list[Any]) -> tuple[list[T.Stmt], list[Any]]:
    """Run the exchanges of expressions; returns the statements and the expressions without them."""
    before: list[T.Stmt] = []

    def on_call(call: ir.Call) -> Any:
        return _run_exchange(block, call, before) if is_collective_call(call) else call

    return before, [structural_map(expr, (ir.Call, on_call)) for expr in exprs]


def _hoist_later(block: Block, condition: Any) -> tuple[Any, Any]:
    """The condition of a while loop, and how to compute it under the masks of each iteration."""

    def compute() -> tuple[list[T.Stmt], Any]:
        before, (expr,) = _hoist(block, [condition])
        return before, expr

    return condition, compute


def _run_exchange(block: Block, call: ir.Call, before: list[T.Stmt]) -> ir.Expr:
    """Emit the collective into ``before``; its value for the current thread stands for the call."""
    name = lane_intrinsic(call)
    assert name is not None
    operands: list[ir.Var] = []
    for position, arg in enumerate(call.args):
        operand = block.array(f"{name}_{position}", dtype_of(arg))
        before.append(T.AllocBuffer(operand))
        before.append(_store_all(block, operand, arg))
        operands.append(operand)
    result = block.array(name, dtype_of(call))
    before.append(T.AllocBuffer(result))
    active = block.active
    if block.masks:
        mask = block.masks[-1]
        active = lambda t: mask[t]  # noqa: E731  (the mask of now, not of a later time)
    exchange = Exchange(name, tuple(operands), result, block.count, active, call.span)
    before.append(collective(exchange))
    return T.BufferLoad(result, [block.linear_thread()])


def _store_all(block: Block, target: ir.Var, value: Any) -> T.Stmt:
    """``target[t] = value`` for every thread that executes, 0 for the others."""

    def one(t: ir.Var) -> T.Stmt:
        store = T.BufferStore(target, at_thread(block, value, t), [t])
        if not block.masks:
            return store
        other = T.BufferStore(target, T.const(0, dtype_of(target)), [t])
        return T.IfThenElse(block.active(t), store, other)

    return for_threads(block, one)
