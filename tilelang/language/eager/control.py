"""Control flow of traced code except loops: scopes, branches, jumps, assertions, statements."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir.builder import Frame, current, current_or_none, seq
from tilelang.ir.span import user_span
from tilelang.language.eager.values import Missing, describe, read, truth
from tilelang.language.loop import LoopSpec

__all__ = [
    "Listed",
    "Scope",
    "Values",
    "assertion",
    "begin_scope",
    "branch",
    "check_raise",
    "control_depth",
    "lost_value",
    "match_subject",
    "ret",
    "static_test",
    "stmt",
]

Listed = tuple[tuple[str, int], ...]  # names bound in a block, with the line of the first binding
Values = tuple[Any, ...]


def control_depth() -> int:
    """Number of open run-time loops and branches."""
    builder = current_or_none()
    return 0 if builder is None else sum(frame.kind != "kernel" for frame in builder.frames)


def lost_value(kind: str, name: str, line: int) -> Missing:
    """What a name is after a run-time block that rebound it."""
    return Missing(
        f"'{name}' was assigned inside a run-time {kind} (line {line}) and is read after it; its "
        "value depends on what happens while the kernel runs. Make it a variable before the "
        f"{kind}: {name} = T.alloc_var(dtype)"
    )


class Scope:
    """One call of a traced function."""

    __slots__ = ("declares", "depth", "name")

    def __init__(self, name: str, depth: int, declares: Any) -> None:
        self.name = name
        self.depth = depth
        self.declares = declares


def begin_scope(name: str) -> Scope:
    """Enter a traced function. The first one of a session declares the arguments."""
    builder = current_or_none()
    session = None if builder is None else builder.session
    declares = None
    if session is not None and not session.entered:
        session.entered = True
        declares = session
    return Scope(name, control_depth(), declares)


def _refuse_jump(scope: Scope, what: str) -> None:
    if control_depth() > scope.depth:
        raise TraceError(
            f"{what} inside a run-time loop or branch of '{scope.name}': whether it is reached "
            "is only known while the kernel runs",
            user_span(),
        )


def ret(scope: Scope, value: Any) -> Any:
    """``return value``."""
    _refuse_jump(scope, "return")
    if scope.declares is not None:
        scope.declares.return_span = user_span()
    return value


def check_raise(scope: Scope) -> None:
    """Before ``raise``, which acts while the kernel is traced."""
    if control_depth() > scope.depth:
        raise TraceError(
            "raise inside a run-time loop or branch; use T.device_assert or an assert statement "
            "for conditions known only while the kernel runs",
            user_span(),
        )


class _StaticBranch:
    """An ``if`` whose condition is known while tracing."""

    traced = False

    def __init__(self, taken: bool) -> None:
        self.taken = taken

    def then(self) -> bool:
        return self.taken

    def other(self, values: Values) -> bool:
        return not self.taken


_TAKEN, _SKIPPED = _StaticBranch(True), _StaticBranch(False)


class _TracedBranch:
    """An ``if`` that becomes IR: both sides are traced."""

    traced = True

    def __init__(self, condition: ir.Expr, names: Listed, before: Values) -> None:
        self.builder = current("if")
        self.condition = condition
        self.names = names
        self.before = before
        self.span = user_span()
        self.after_then = before
        self.then_body: list[T.Stmt] = []
        self.frame: Frame | None = None
        self.has_else = False

    def then(self) -> bool:
        self.frame = self.builder.push("then", span=self.span)
        return True

    def other(self, values: Values) -> bool:
        assert self.frame is not None
        self.then_body = self.builder.pop(self.frame)
        self.after_then = values
        self.has_else = True
        self.frame = self.builder.push("else", span=self.span)
        return True

    def end(self, values: Values) -> Values:
        assert self.frame is not None
        body = self.builder.pop(self.frame)
        after_else = values if self.has_else else self.before
        if not self.has_else:
            self.then_body, self.after_then = body, values
        other = seq(body, self.span) if self.has_else and body else None
        then = seq(self.then_body, self.span)
        self.builder.emit(T.IfThenElse(self.condition, then, other, self.span))
        return tuple(
            old if old is a and old is b else lost_value("if", name, line)
            for (name, line), old, a, b in zip(
                self.names, self.before, self.after_then, after_else, strict=True
            )
        )


def branch(test: Any, names: Listed, values: Values) -> _StaticBranch | _TracedBranch:
    """Open an ``if`` statement."""
    condition = truth(test)
    if isinstance(condition, ir.Expr):
        return _TracedBranch(condition, names, values)
    return _TAKEN if condition else _SKIPPED


class _Assertion:
    """An assertion that is not known to hold."""

    def __init__(self, condition: Any) -> None:
        self.condition = condition
        self.open = condition is not True
        self.span = user_span()

    def fail(self, message: Any) -> None:
        """Raise if the condition is known to be false, else emit the check."""
        if not isinstance(self.condition, ir.Expr):
            raise AssertionError(*(() if message is None else (message,)))
        text = "assertion failed" if message is None else str(message)
        kind, parts = ir.StringImm("AssertionError"), [ir.StringImm(text)]
        current("assert").emit(T.AssertStmt(self.condition, kind, parts, self.span))


def assertion(test: Any) -> _Assertion:
    """Evaluate the condition of an ``assert`` statement."""
    return _Assertion(truth(test))


def static_test(test: Any) -> bool:
    """A condition that must be known while tracing."""
    condition = truth(test)
    if isinstance(condition, ir.Expr):
        raise TraceError(
            "this condition (of a comprehension or a case) must be known while the kernel is "
            f"traced, found {describe(condition)}",
            user_span(),
        )
    return bool(condition)


def match_subject(value: Any) -> Any:
    """The subject of a ``match`` statement, which is decided while tracing."""
    value = read(value)
    if isinstance(value, ir.Expr):
        raise TraceTypeError(
            f"match needs a value known while the kernel is traced, found {describe(value)}; use "
            "if / elif",
            user_span(),
        )
    return value


def stmt(value: Any) -> None:
    """An expression used as a statement: calls are kept for their effect."""
    builder = current_or_none()
    if value is None or builder is None:
        return
    builder.name_hint = None
    if isinstance(value, ir.Call):
        if isinstance(value.op, T.PrimFunc):
            raise TraceError(
                "a @T.prim_func cannot be called inside a kernel; make the function a @T.macro, "
                "which is written out where it is called",
                user_span(),
            )
        builder.emit(T.Evaluate(value, user_span()))
    elif isinstance(value, T.Stmt):
        builder.emit(value)
    elif isinstance(value, LoopSpec):
        raise TraceError(f"{value.name} has no effect outside a for statement", user_span())
    elif hasattr(value, "name_indices"):
        raise TraceError("T.Kernel has no effect outside a with statement", user_span())
