"""Branches, loops and jumps in which threads may part.

Where a condition differs between threads, an array of bool per divergence says who takes part;
a loop then runs until no thread is left in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import VisitInterrupt, structural_visit, structural_walk

from tilelang.cpu.transform.threads.block import Block, LoopFrame, flag, for_threads
from tilelang.cpu.transform.threads.classify import leaves_loop
from tilelang.cpu.transform.threads.one_thread import at_thread
from tilelang.ir.expr import dtype_of
from tilelang.transform.thread_use import lane_intrinsic

__all__ = ["is_uniform", "lower_branch", "lower_for", "lower_jump", "lower_while"]

_ZERO = T.const(0, "int32")
_READ = 2  # effect kind of an op that changes nothing


def is_uniform(block: Block, expr: Any) -> bool:
    """Whether an expression is known to have one value for all threads that execute.

    Memory that threads share is: to change it while others read it is a race.
    """
    varying = {*block.thread_vars, *block.binds} - block.uniform

    def on_var(var: ir.Var) -> Any:
        return VisitInterrupt(True) if var in varying else None

    def on_load(load: ir.TensorLoad) -> Any:
        own = load.source in block.expanded or load.source in block.addresses
        # With threads parted there may be none that could read it.
        return VisitInterrupt(True) if own or block.masks else None

    def on_call(call: ir.Call) -> Any:
        effect = call.op.get_attr("TCallEffectKind") if isinstance(call.op, ir.Op) else None
        repeatable = effect is not None and int(effect) <= _READ
        return None if repeatable and lane_intrinsic(call) is None else VisitInterrupt(True)

    rules = [(ir.TensorLoad, on_load), (ir.Var, on_var), (ir.Call, on_call)]
    return structural_walk(expr, rules) is None


# --- branches -----------------------------------------------------------------------------------


def lower_branch(block: Block, stmt: T.IfThenElse, condition: Any) -> list[T.Stmt]:
    """A branch: taken by all if the condition is uniform, else by each thread for itself."""
    if is_uniform(block, condition):
        then_case = T.stmt_seq(*block.lower(block, stmt.then_case))
        else_case = stmt.else_case
        if else_case is not None:
            else_case = T.stmt_seq(*block.lower(block, else_case))
        return [T.IfThenElse(at_thread(block, condition, _ZERO), then_case, else_case, stmt.span)]
    # Both masks are computed first: the branch may change what the condition reads.
    taken, skipped = block.array("taken", "bool"), block.array("skipped", "bool")

    def decide(t: ir.Var) -> T.Stmt:
        there = block.active(t)
        # Not evaluated where the thread does not execute.
        holds = T.if_then_else(there, at_thread(block, condition, t), T.const(False, "bool"))
        return T.SeqStmt(
            [
                T.BufferStore(taken, holds, [t]),
                T.BufferStore(skipped, T.And(there, T.Not(taken[t])), [t]),
            ]
        )

    out: list[T.Stmt] = [T.AllocBuffer(taken), T.AllocBuffer(skipped), for_threads(block, decide)]
    for mask, branch in ((taken, stmt.then_case), (skipped, stmt.else_case)):
        if branch is not None:
            out.extend(_under(block, mask, lambda branch=branch: block.lower(block, branch)))
    return out


def _under(block: Block, mask: ir.Var, run: Callable[[], list[T.Stmt]]) -> list[T.Stmt]:
    block.masks.append(mask)
    result = run()
    block.masks.pop()
    return result


# --- loops --------------------------------------------------------------------------------------


def lower_for(block: Block, loop: T.For, header: list[Any]) -> list[T.Stmt]:
    """A loop with meeting points; ``header`` is its start and extent without exchanges."""
    start, extent = header
    if all(is_uniform(block, part) for part in header) and not _parts(block, loop.body):
        body = _framed(block, None, lambda: block.lower(block, loop.body))
        return [
            T.For(
                loop.loop_var,
                at_thread(block, start, _ZERO),
                at_thread(block, extent, _ZERO),
                loop.kind,
                T.stmt_seq(*body),
                annotations=loop.annotations,
                step=loop.step,
                span=loop.span,
            )
        ]
    return _masked_for(block, loop, start, extent)


def _masked_for(block: Block, loop: T.For, start: Any, extent: Any) -> list[T.Stmt]:
    """Every thread counts for itself; the loop ends when none has an iteration left."""
    dtype = dtype_of(loop.loop_var)
    step = loop.step if loop.step is not None else T.const(1, dtype)
    value, end = block.array(loop.loop_var.name, dtype), block.array("end", dtype)
    block.binds[loop.loop_var] = value

    def begin(t: ir.Var) -> T.Stmt:
        first = at_thread(block, start, t)
        return T.SeqStmt(
            [
                T.BufferStore(value, first, [t]),
                T.BufferStore(end, first + at_thread(block, extent, t), [t]),
            ]
        )

    def advance(t: ir.Var) -> T.Stmt:
        return T.BufferStore(value, value[t] + at_thread(block, step, t), [t])

    def goes_on(t: ir.Expr) -> ir.Expr:
        return T.LT(value[t], end[t])

    before = [T.AllocBuffer(value), T.AllocBuffer(end), for_threads(block, begin, masked=True)]
    run = block.array("run", "bool")

    def after() -> list[T.Stmt]:
        # A thread that left the iteration early counts on, one that left the loop may too.
        return [for_threads(block, advance)]

    return [*before, *_masked_loop(block, loop, run, lambda: ([], goes_on), after)]


def lower_while(
    block: Block,
    loop: T.While,
    condition: Any,
    compute: Callable[[], tuple[list[T.Stmt], Any]],
) -> list[T.Stmt]:
    """A while loop with meeting points; ``compute`` gives the condition without exchanges."""
    if is_uniform(block, condition) and not _parts(block, loop.body):
        body = _framed(block, None, lambda: block.lower(block, loop.body))
        return [T.While(at_thread(block, condition, _ZERO), T.stmt_seq(*body), loop.span)]
    run = block.array("run", "bool")

    def test() -> tuple[list[T.Stmt], Callable[[ir.Expr], ir.Expr]]:
        before, expr = compute()
        return before, lambda t: at_thread(block, expr, t)

    return _masked_loop(block, loop, run, test, list)


def _masked_loop(
    block: Block,
    loop: T.For | T.While,
    run: ir.Var,
    test: Callable[[], tuple[list[T.Stmt], Callable[[ir.Expr], ir.Expr]]],
    after: Callable[[], list[T.Stmt]],
) -> list[T.Stmt]:
    """Repeat the body for the threads that pass the test, until there are none."""
    iteration, left = block.array("iteration", "bool"), flag("left")

    def enter(t: ir.Var) -> T.Stmt:
        return T.BufferStore(run, block.active(t), [t])

    start = [T.AllocBuffer(run), T.AllocBuffer(iteration), T.AllocBuffer(left)]
    start.append(for_threads(block, enter))

    def turn() -> list[T.Stmt]:
        exchanges, goes_on = test()

        def check(t: ir.Var) -> T.Stmt:
            again = T.if_then_else(run[t], goes_on(t), T.const(False, "bool"))
            return T.SeqStmt(
                [
                    T.BufferStore(run, again, [t]),
                    T.BufferStore(iteration, run[t], [t]),
                    T.BufferStore(left, T.Or(left[0], run[t]), [0]),
                ]
            )

        frame = LoopFrame(len(block.masks), run, iteration)
        body = _framed(
            block, frame, lambda: _under(block, iteration, lambda: block.lower(block, loop.body))
        )
        return [
            *exchanges,
            T.BufferStore(left, T.const(False, "bool"), [0]),
            for_threads(block, check),
            T.IfThenElse(T.Not(left[0]), T.Break(), None),
            *body,
            *after(),
        ]

    turns = _under(block, run, turn)
    return [*start, T.While(T.const(True, "bool"), T.stmt_seq(*turns), loop.span)]


def _framed(block: Block, frame: LoopFrame | None, run: Callable[[], list[T.Stmt]]) -> list[T.Stmt]:
    block.frames.append(frame)
    result = run()
    block.frames.pop()
    return result


def _parts(block: Block, body: Any) -> bool:
    """Whether some threads may leave the loop around ``body`` before others."""

    def own(node: Any, visitor: Any) -> Any:
        return None  # a loop inside takes its own jumps

    def on_if(stmt: T.IfThenElse, visitor: Any) -> Any:
        if leaves_loop(stmt) and not is_uniform(block, stmt.condition):
            return VisitInterrupt(True)
        return visitor.default_visit(stmt)

    rules = [(T.For, own), (T.While, own), (T.IfThenElse, on_if)]
    return structural_visit(body, rules) is not None


def lower_jump(block: Block, stmt: T.Break | T.Continue) -> list[T.Stmt]:
    """Leave the loop, or its present iteration, with the threads that execute."""
    frame = block.frames[-1]
    if frame is None:
        return [stmt]
    inner = block.masks[frame.depth + 1 :]  # around the jump, inside the loop
    leaving = inner[-1] if inner else frame.iteration
    cleared = [*inner[:-1], frame.iteration] if inner else []
    if isinstance(stmt, T.Break):
        cleared.append(frame.run)

    def leave(t: ir.Var) -> T.Stmt:
        stores = [T.BufferStore(mask, T.const(False, "bool"), [t]) for mask in cleared]
        stores.append(T.BufferStore(leaving, T.const(False, "bool"), [t]))
        return T.IfThenElse(leaving[t], T.stmt_seq(*stores), None)

    return [for_threads(block, leave)]
