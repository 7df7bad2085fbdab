"""What a block does together, under conditions that its threads decide one by one."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import VisitInterrupt, structural_walk

from tilelang.errors import LoweringError
from tilelang.ir import intrin
from tilelang.ir.op import TileCall
from tilelang.transform.simt.launch import launch_of
from tilelang.transform.simt.nest import nest_of
from tilelang.transform.simt.uniform import Uniformity
from tilelang.transform.thread_use import is_thread_program

__all__ = ["converge_branches"]

_PASSIVE = (T.AllocBuffer, T.DeclBuffer, T.Bind)


def converge_branches(func: T.PrimFunc) -> T.PrimFunc:
    """Let all threads take part in the tile ops and parallel loops of a thread program.

    Such a statement runs once, if any thread gets there; but all threads do its work. A branch of
    nothing else is taken by all of them when one wants it.

    Raises
    ------
    LoweringError
        If a branch mixes them with code of single threads, or a loop runs a different number of
        times in every thread.

    Before: ``if tx == 5: T.copy(A, S)``. After: ``if syncthreads_or(tx == 5): T.copy(A, S)``.
    """
    if not is_thread_program(func):
        return func
    launch = launch_of(func)
    walk = _Walk(Uniformity(func))
    return func.with_body(launch.around(walk.visit(launch.body)))


class _Walk:
    def __init__(self, uniformity: Uniformity) -> None:
        self._uniformity = uniformity

    def visit(self, stmt: Any) -> Any:
        if isinstance(stmt, T.SeqStmt):
            return T.SeqStmt([self.visit(child) for child in stmt.seq], stmt.span)
        if isinstance(stmt, T.AttrStmt):
            body = self.visit(stmt.body)
            return T.AttrStmt(stmt.node, stmt.attr_key, stmt.value, body, stmt.span)
        if nest_of(stmt) is not None or not _collective(stmt):
            return stmt
        if isinstance(stmt, (T.For, T.While)):
            return self._loop(stmt)
        return self._branch(stmt) if isinstance(stmt, T.IfThenElse) else stmt

    def _loop(self, loop: Any) -> Any:
        if not self._uniformity.is_uniform_loop(loop):
            raise _apart(loop, "loop runs a different number of times in every thread")
        body = self.visit(loop.body)
        if isinstance(loop, T.While):
            return T.While(loop.condition, body, loop.span)
        return T.For(
            loop.loop_var, loop.min, loop.extent, loop.kind, body, loop.thread_binding,
            loop.annotations, loop.step, loop.span,
        )  # fmt: skip

    def _branch(self, branch: T.IfThenElse) -> Any:
        condition = branch.condition
        if self._uniformity.is_uniform(condition):
            then_case = self.visit(branch.then_case)
            else_case = None if branch.else_case is None else self.visit(branch.else_case)
            return T.IfThenElse(condition, then_case, else_case, branch.span)
        result: list[T.Stmt] = []
        for case, wanted in ((branch.then_case, condition), (branch.else_case, T.Not(condition))):
            if case is None:
                continue
            if not _collective(case):
                result.append(T.IfThenElse(wanted, case, None, branch.span))
            elif not self._only_collective(case):
                raise _apart(branch, "branch is taken by some threads only and does other work too")
            else:
                voted = T.NE(_any_thread(wanted, branch.span), T.const(0, "int32"))
                result.append(T.IfThenElse(voted, self.visit(case), None, branch.span))
        return T.stmt_seq(*result)

    def _only_collective(self, stmt: Any) -> bool:
        if isinstance(stmt, T.SeqStmt):
            return all(self._only_collective(child) for child in stmt.seq)
        if isinstance(stmt, T.Bind):
            return self._uniformity.is_uniform(stmt.value)
        if isinstance(stmt, _PASSIVE) or nest_of(stmt) is not None:
            return True
        if isinstance(stmt, T.For):
            uniform = self._uniformity.is_uniform([stmt.min, stmt.extent])
            return uniform and self._only_collective(stmt.body)
        return isinstance(stmt, T.Evaluate) and TileCall.of(stmt) is not None


def _any_thread(condition: ir.Expr, span: ir.Span | None) -> ir.Expr:
    vote = intrin.get("syncthreads_or")
    return ir.Call(vote.op, [condition], ret_ty="int32", span=span)


def _collective(stmt: Any) -> bool:
    """Whether anything below ``stmt`` is done by the threads of the block together."""

    def on_for(loop: T.For) -> Any:
        return VisitInterrupt(True) if nest_of(loop) is not None else None

    def on_evaluate(found: T.Evaluate) -> Any:
        return VisitInterrupt(True) if TileCall.of(found) is not None else None

    return structural_walk(stmt, [(T.For, on_for), (T.Evaluate, on_evaluate)]) is not None


def _apart(stmt: Any, why: str) -> LoweringError:
    return LoweringError(
        f"a tile operation or T.Parallel is done by all threads of the block together, but this "
        f"{why}. Make the condition the same for all threads, or move the operation out of it",
        stmt.span,
    )
