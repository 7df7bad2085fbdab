"""The last check of a trace: every variable is used inside the block that made it."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import VisitInterrupt, structural_visit, structural_walk

from tilelang.errors import TraceError

__all__ = ["check_scopes"]


class _ScopeFinder:
    """Walks statements with the set of variables in scope; stops at the first one that is not."""

    def __init__(self, params: list[ir.Var]) -> None:
        self.scope: set[ir.Var] = set(params)
        for param in params:
            if isinstance(param.ty, T.BufferType):
                self._define_sizes(param.ty)
        self.stmt: T.Stmt | None = None

    def _define_sizes(self, ty: T.BufferType) -> None:
        for expr in (*ty.shape, *ty.strides):
            structural_visit(expr, (ir.Var, lambda var, _: self.scope.add(var)))

    def on_stmt(self, stmt: T.Stmt, visitor: Any) -> Any:
        outer, self.stmt = self.stmt, stmt
        saved = set(self.scope)
        if isinstance(stmt, T.For):
            self.scope.add(stmt.loop_var)
        elif isinstance(stmt, T.Bind):
            found = visitor.visit(stmt.value)
            self.scope.add(stmt.var)
            self.stmt = outer
            return found
        elif isinstance(stmt, T.AllocBuffer | T.DeclBuffer):
            self.scope.add(stmt.buffer)
            saved.add(stmt.buffer)
        found = visitor.default_visit(stmt)
        if not isinstance(stmt, T.AllocBuffer | T.DeclBuffer | T.SeqStmt):
            self.scope = saved
        self.stmt = outer
        return found

    def on_block(self, stmt: T.IfThenElse, visitor: Any) -> Any:
        """The two branches do not see each other's variables."""
        self.stmt = stmt
        saved = set(self.scope)
        for part in (stmt.condition, stmt.then_case, stmt.else_case):
            found = visitor.visit(part) if part is not None else None
            self.scope = set(saved)
            if found is not None:
                return found
        return None

    def on_var(self, var: ir.Var, visitor: Any) -> Any:
        return None if var in self.scope else VisitInterrupt((var, self.stmt))


def check_scopes(func: T.PrimFunc) -> None:
    """Raise if a variable is used outside the block that made it.

    Raises
    ------
    TraceError
        At the line of the use.
    """
    if T.analysis.verify_well_formed(func, assert_mode=False):
        return
    finder = _ScopeFinder(list(func.params))
    callbacks: Any = [
        (T.IfThenElse, finder.on_block),
        (T.Stmt, finder.on_stmt),
        (T.IterVar, lambda *_: None),
        (ir.Var, finder.on_var),
    ]
    found = structural_visit(func.body, callbacks)
    if found is None:
        T.analysis.verify_well_formed(func, assert_mode=True)
        raise AssertionError("ill-formed function")
    var, stmt = found.value
    span = None if stmt is None else stmt.span
    if not _is_made(func, var):
        raise TraceError(
            f"size '{var.name}' is used but no argument determines it; a T.dynamic size must "
            "stand in the shape or strides of an argument, or be an argument",
            span,
        )
    made = f" at line {var.span.line}" if var.span is not None else ""
    what = "buffer" if isinstance(var.ty, T.BufferType) else "value"
    raise TraceError(
        f"{what} '{var.name}' was made{made} inside a block (a launch, loop or branch) that has "
        "ended, and is used after it. Make it before the block, or use T.alloc_var",
        span,
    )


def _is_made(func: T.PrimFunc, var: ir.Var) -> bool:
    """Whether some statement of ``func`` defines ``var``."""

    def stop(found: ir.Var) -> VisitInterrupt | None:
        return VisitInterrupt(found) if found.same_as(var) else None

    callbacks: Any = [
        (T.For, lambda loop: stop(loop.loop_var)),
        (T.Bind, lambda bind: stop(bind.var)),
        (T.AllocBuffer, lambda made: stop(made.buffer)),
        (T.DeclBuffer, lambda made: stop(made.buffer)),
    ]
    return structural_walk(func.body, callbacks) is not None
