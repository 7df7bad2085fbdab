"""A block that returns early goes on with the next block: one call runs many of them."""

from __future__ import annotations

from typing import Any

from tvm import tirx as T
from tvm_ffi import VisitInterrupt, structural_mutate, structural_walk

from tilelang.errors import UnsupportedError
from tilelang.transform.thread_use import is_thread_program

__all__ = ["check_returns", "end_block"]


def check_returns(func: T.PrimFunc) -> T.PrimFunc:
    """Refuse to return where it would end one thread or iteration of many.

    Raises
    ------
    UnsupportedError
        At the return, in a thread program or a parallel loop.
    """

    def refuse(stmt: T.Return, where: str) -> None:
        raise UnsupportedError(
            f"T.thread_return or T.ret in a {where} is not available on backend 'cpu', where it "
            "would have to end one of many that run together; guard the rest of the body with an "
            "if instead",
            stmt.span,
        )

    def on_loop(loop: T.For) -> None:
        if loop.kind == T.ForKind.PARALLEL or "tl.parallel" in loop.annotations:
            structural_walk(loop.body, (T.Return, lambda stmt: refuse(stmt, "parallel loop")))

    structural_walk(func.body, (T.For, on_loop))
    if _returns(func.body) and is_thread_program(func):
        structural_walk(func.body, (T.Return, lambda stmt: refuse(stmt, "thread program")))
    return func


def _returns(node: Any) -> bool:
    return structural_walk(node, (T.Return, lambda stmt: VisitInterrupt(True))) is not None


def end_block(body: T.Stmt) -> T.Stmt:
    """Make the returns of a block's body continue the loop over blocks that will be around it.

    Before: ``for i in range(4): if A[i] < 0: return``. After: ``ended = False``, ``for i in
    range(4): if A[i] < 0: ended = True; break`` and ``if ended: continue``.
    """
    if not _returns(body):
        return body
    ended = T.decl_buffer((1,), "bool", "ended", scope="local", layout=None, data_alignment=1)
    depth = 0

    def set_ended(value: bool) -> T.Stmt:
        return T.BufferStore(ended, T.const(value, "bool"), [0])

    def on_loop(loop: Any, mutator: Any) -> Any:
        nonlocal depth
        if not _returns(loop.body):
            return loop
        depth += 1
        left = mutator.default_mutate(loop)
        depth -= 1
        jump = T.Break() if depth else T.Continue()
        return T.SeqStmt([_plain(left), T.IfThenElse(T.BufferLoad(ended, [0]), jump, None)])

    def on_return(stmt: T.Return, mutator: Any) -> T.Stmt:
        if not depth:
            return T.Continue(stmt.span)
        return T.SeqStmt([set_ended(True), T.Break(stmt.span)])

    rewritten = structural_mutate(
        body, [(T.For, on_loop), (T.While, on_loop), (T.Return, on_return)]
    )
    return T.stmt_seq(T.AllocBuffer(ended), set_ended(False), rewritten)


def _plain(loop: Any) -> Any:
    """A loop that can be left, without unrolling."""
    if isinstance(loop, T.While) or loop.kind == T.ForKind.SERIAL:
        return loop
    return T.For(
        loop.loop_var,
        loop.min,
        loop.extent,
        T.ForKind.SERIAL,
        loop.body,
        step=loop.step,
        span=loop.span,
    )
