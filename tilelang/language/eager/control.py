"""Control flow of traced code: branches, loops, jumps, assertions."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir.builder import Builder, Frame, current, current_or_none, seq
from tilelang.ir.span import make_span, user_frame, user_span
from tilelang.language.eager.binding import evaluate_once, iterate
from tilelang.language.eager.logic import mark
from tilelang.language.eager.values import Missing, describe, read, truth
from tilelang.language.loop import LoopSpec, serial

__all__ = [
    "Scope",
    "assertion",
    "begin_scope",
    "branch",
    "check_raise",
    "loop",
    "match_subject",
    "range_",
    "ret",
    "static_test",
    "stmt",
    "while_loop",
]

Listed = tuple[tuple[str, int], ...]  # names bound in a block, with the line of the first binding
Values = tuple[Any, ...]


def _depth() -> int:
    """Number of open run-time loops and branches."""
    builder = current_or_none()
    return 0 if builder is None else sum(frame.kind != "kernel" for frame in builder.frames)


def _changed(kind: str, name: str, line: int) -> Missing:
    """What a name is after a run-time block that rebound it."""
    return Missing(
        f"'{name}' was assigned inside a run-time {kind} (line {line}) and is read after it; its value "
        f"depends on what happens while the kernel runs. Make it a variable before the {kind}: "
        f"{name} = T.alloc_var(dtype)"
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
    return Scope(name, _depth(), declares)


def _refuse_jump(scope: Scope, what: str) -> None:
    if _depth() > scope.depth:
        raise TraceError(
            f"{what} inside a run-time loop or branch of '{scope.name}': whether it is reached is only "
            "known while the kernel runs",
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
    if _depth() > scope.depth:
        raise TraceError(
            "raise inside a run-time loop or branch; use T.device_assert or an assert statement for "
            "conditions known only while the kernel runs",
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
            old if old is a and old is b else _changed("if", name, line)
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


class _StaticLoop:
    """A loop over a Python iterable: Python repeats the body."""

    traced = False

    def __init__(self, source: Any) -> None:
        self.source = source
        self.depth = _depth()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.source)

    def seen(self, position: int, value: Any) -> Any:
        return value

    def jump(self, kind: str) -> bool:
        if _depth() > self.depth:
            raise TraceError(
                f"{kind} of a compile-time loop inside a run-time branch or loop: whether it is reached "
                "is only known while the kernel runs; loop with T.serial instead",
                user_span(),
            )
        return True


class _TracedLoop:
    """A loop that becomes IR: its body is traced once."""

    traced = True

    def __init__(self, kind: str, names: Listed, values: Values) -> None:
        self.builder: Builder = current("a loop")
        self.kind = kind
        self.names = names
        self.before = values
        self.reads: dict[int, Any] = {}
        self.span = user_span()
        frame = user_frame()
        self.filename = frame.f_code.co_filename if frame is not None else "<unknown>"

    def seen(self, position: int, value: Any) -> Any:
        """A name that the loop rebinds is read: note it while it has its value from before."""
        if value is self.before[position] and position not in self.reads:
            self.reads[position] = user_span()
        return value

    def end(self, values: Values) -> Values:
        """Close the names of the loop: what it rebound is gone."""
        results: list[Any] = []
        for k, ((name, line), old, new) in enumerate(
            zip(self.names, self.before, values, strict=True)
        ):
            if new is old:
                results.append(old)
                continue
            if k in self.reads:
                raise TraceError(
                    f"'{name}' is read at line {self.reads[k].line} and rebound in the same run-time loop, "
                    "so its value would have to be carried from one iteration to the next. Make it a "
                    f"variable before the loop: {name} = T.alloc_var(dtype)",
                    make_span(self.filename, line),
                )
            results.append(_changed(f"{self.kind} loop", name, line))
        return tuple(results)

    def jump(self, kind: str) -> bool:
        """Emit ``break`` or ``continue``; Python goes on tracing."""
        builder = self.builder
        if builder.innermost("for", "while", "kernel") is not self.frame:
            raise TraceError(f"{kind} cannot leave a T.Kernel block", user_span())
        self.check_jump(kind)
        node = T.Break if kind == "break" else T.Continue
        builder.emit(node(user_span()))
        builder.end_block()
        return False

    frame: Frame

    def check_jump(self, kind: str) -> None:
        """Refuse jumps that the loop cannot take."""


class _ForLoop(_TracedLoop):
    def __init__(self, spec: LoopSpec, pattern: Any, names: Listed, values: Values) -> None:
        super().__init__("for", names, values)
        self.spec = spec
        self.pattern = pattern

    def __iter__(self) -> Iterator[Any]:
        spec, builder = self.spec, self.builder
        names = self._target_names()
        variables = spec.variables(names)
        self.frame = builder.push("for", spec, self.span)
        yield self._value(variables, names)
        body = seq(builder.pop(self.frame), self.span)
        builder.emit(spec.build(variables, body))

    def _target_names(self) -> list[str]:
        pattern = self.pattern
        count = len(self.spec.extents)
        if isinstance(pattern, str):
            return [pattern] if count == 1 else [f"{pattern}_{k}" for k in range(count)]
        if pattern is None or not all(isinstance(part, str) for part in pattern):
            raise TraceError(f"the target of a {self.spec.name} loop must be names", user_span())
        if self.spec.decode is None and len(pattern) != count:
            raise TraceError(
                f"{self.spec.name} has {count} loop variable{'s' if count > 1 else ''} and the target has "
                f"{len(pattern)}",
                user_span(),
            )
        return list(pattern)

    def _value(self, variables: Sequence[ir.Var], names: Sequence[str]) -> Any:
        if self.spec.decode is None:
            lone = isinstance(self.pattern, str) and len(variables) == 1
            return variables[0] if lone else tuple(variables)
        value = self.spec.decode(*variables)
        if not isinstance(value, tuple):
            return evaluate_once(names[0], value)
        return tuple(
            evaluate_once(names[k] if k < len(names) else "i", part) for k, part in enumerate(value)
        )

    def check_jump(self, kind: str) -> None:
        spec = self.spec
        if kind == "break" and not spec.breakable or not spec.ordered:
            raise TraceError(
                f"{kind} is not possible in {spec.name}: "
                + (
                    "its iterations are unordered; guard the body with an if"
                    if not spec.ordered
                    else "it would leave only the innermost of its loops; nest T.serial loops"
                ),
                user_span(),
            )


class _WhileLoop(_TracedLoop):
    def __init__(
        self, condition: ir.Expr, tested: tuple[str, ...], names: Listed, values: Values
    ) -> None:
        super().__init__("while", names, values)
        self.condition = condition
        for position, (name, _) in enumerate(names):
            if name in tested:
                self.reads[position] = self.span

    def __iter__(self) -> Iterator[Any]:
        self.frame = self.builder.push("while", span=self.span)
        yield None
        body = seq(self.builder.pop(self.frame), self.span)
        self.builder.emit(T.While(self.condition, body, self.span))


def _refuse_else(has_else: bool) -> None:
    if has_else:
        raise TraceError(
            "a run-time loop cannot have an else clause; set a T.alloc_var flag before break",
            user_span(),
        )


def loop(
    source: Any, pattern: Any, names: Listed, values: Values, has_else: bool
) -> _StaticLoop | _ForLoop:
    """Open a ``for`` statement."""
    if isinstance(source, range):
        source = serial(source.start, source.stop, source.step)
    if isinstance(source, LoopSpec):
        _refuse_else(has_else)
        return _ForLoop(source, pattern, names, values)
    return _StaticLoop(iterate(source))


def range_(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """``range(...)`` in a ``for`` statement: a serial loop of the kernel."""
    if function is not builtins.range:
        return function(*args, **options)
    if options or not 1 <= len(args) <= 3:
        return range(*args, **options)  # raises Python's own error
    return serial(*args)


def while_loop(
    before: int,
    test: Any,
    tested: tuple[str, ...],
    names: Listed,
    values: Values,
    has_else: bool,
) -> Any:
    """Open a ``while`` statement; ``before`` is the mark from before its condition."""
    condition = truth(test)
    if not isinstance(condition, ir.Expr):
        if condition:
            raise TraceError(
                "the condition of this while loop is always true while tracing, so the loop would never "
                "end; use a run-time condition, or a for loop over a Python iterable to repeat code",
                user_span(),
            )
        _warn("the condition of this while loop is always false; its body is dropped")
        return _StaticLoop(())
    if mark() != before:
        raise TraceError(
            "the condition of a while loop contains a call that emits statements (a macro or ':='); it "
            "would run only once. Move it into the loop and use break",
            user_span(),
        )
    _refuse_else(has_else)
    return _WhileLoop(condition, tested, names, values)


def _warn(message: str) -> None:
    frame = user_frame()
    where = ("<unknown>", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    warnings.warn_explicit(message, SyntaxWarning, *where)


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
            "this condition (of a comprehension or a case) must be known while the kernel is traced, "
            f"found {describe(condition)}",
            user_span(),
        )
    return bool(condition)


def match_subject(value: Any) -> Any:
    """The subject of a ``match`` statement, which is decided while tracing."""
    value = read(value)
    if isinstance(value, ir.Expr):
        raise TraceTypeError(
            f"match needs a value known while the kernel is traced, found {describe(value)}; use if / elif",
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
        builder.emit(T.Evaluate(value, user_span()))
    elif isinstance(value, T.Stmt):
        builder.emit(value)
    elif isinstance(value, LoopSpec):
        raise TraceError(f"{value.name} has no effect outside a for statement", user_span())
