"""Loops of traced code: repeated by Python, or traced once into IR."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError
from tilelang.ir.builder import Builder, Frame, current, seq
from tilelang.ir.span import make_span, user_frame, user_span
from tilelang.language.eager.binding import evaluate_once, iterate
from tilelang.language.eager.control import Listed, Values, control_depth, lost_value
from tilelang.language.eager.logic import mark
from tilelang.language.eager.values import truth
from tilelang.language.loop import LoopSpec, serial

__all__ = ["loop", "range_", "while_loop"]


class _StaticLoop:
    """A loop over a Python iterable: Python repeats the body."""

    traced = False

    def __init__(self, source: Any) -> None:
        self.source = source
        self.depth = control_depth()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.source)

    def seen(self, position: int, value: Any) -> Any:
        return value

    def jump(self, kind: str) -> bool:
        if control_depth() > self.depth:
            raise TraceError(
                f"{kind} of a compile-time loop inside a run-time branch or loop: whether it is "
                "reached is only known while the kernel runs; loop with T.serial instead",
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
                    f"'{name}' is read at line {self.reads[k].line} and rebound in the same "
                    "run-time loop, so its value would have to be carried from one iteration to "
                    f"the next. Make it a variable before the loop: {name} = T.alloc_var(dtype)",
                    make_span(self.filename, line),
                )
            results.append(lost_value(f"{self.kind} loop", name, line))
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
                f"{self.spec.name} has {count} loop variable{'s' if count > 1 else ''} and the "
                f"target has {len(pattern)}",
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
        if not spec.ordered or (kind == "break" and not spec.breakable):
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
                "the condition of this while loop is always true while tracing, so the loop "
                "would never end; use a run-time condition, or a for loop over a Python iterable "
                "to repeat code",
                user_span(),
            )
        _warn("the condition of this while loop is always false; its body is dropped")
        return _StaticLoop(())
    if mark() != before:
        raise TraceError(
            "the condition of a while loop contains a call that emits statements (a macro or "
            "':='); it would run only once. Move it into the loop and use break",
            user_span(),
        )
    _refuse_else(has_else)
    return _WhileLoop(condition, tested, names, values)


def _warn(message: str) -> None:
    frame = user_frame()
    where = ("<unknown>", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    warnings.warn_explicit(message, SyntaxWarning, *where)
