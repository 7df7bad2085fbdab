"""``and``, ``or``, ``not`` and conditional expressions.

The left side of ``and`` / ``or`` and the condition of a ternary wait on a stack while the other
operands are evaluated, so that Python values keep their short-circuit evaluation.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm.ir import prim

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir.builder import current_or_none
from tilelang.ir.span import user_span
from tilelang.language.eager.values import describe, guarded, operand, read, truth

__all__ = [
    "and_begin",
    "and_end",
    "logic",
    "logic_pop",
    "mark",
    "negate",
    "or_begin",
    "or_end",
    "reset",
    "select_else",
    "select_end",
    "select_then",
]


def negate(value: Any) -> Any:
    """``not value``."""
    known = truth(value)
    if not isinstance(known, ir.Expr):
        return not known
    if isinstance(known, prim.EQ):
        return prim.NE(known.a, known.b, known.span)
    return prim.Not(known, user_span())


def logic(kind: str, values: Iterable[Any]) -> Any:
    """``and`` or ``or`` over values that are all evaluated: a bool, or a boolean expression."""
    node = prim.And if kind == "and" else prim.Or
    result: Any = None
    for value in values:
        known = truth(value)
        if not isinstance(known, ir.Expr):
            if known == (kind == "or"):
                return known
            continue
        result = known if result is None else node(result, known, user_span())
    return kind == "and" if result is None else result


class _Pending(threading.local):
    """Left operands of ``and``, ``or`` and conditions of ternaries under evaluation."""

    def __init__(self) -> None:
        self.stack: list[tuple[Any, int | None]] = []


_pending = _Pending()


def mark() -> int:
    """How much was emitted so far; equal marks mean that nothing was emitted in between."""
    builder = current_or_none()
    return 0 if builder is None else builder.emitted


def _check_pure(before: int, what: str) -> None:
    if mark() != before:
        raise TraceError(
            f"{what} contains a call that emits statements (a macro, a tile op or ':='); it would "
            "run whether or not it is reached. Evaluate it before, or use an if statement",
            user_span(),
        )


def _begin(value: Any, stop_at: bool) -> bool:
    value = read(value)
    known = truth(value)
    if isinstance(known, ir.Expr):
        _pending.stack.append((known, mark()))
        return True
    _pending.stack.append((value, None))
    return known is not stop_at


def _end(kind: str, value: Any) -> Any:
    left, before = _pending.stack.pop()
    if before is None:
        return read(value)
    _check_pure(before, f"the right side of '{kind}'")
    return logic(kind, [left, value])


def and_begin(value: Any) -> bool:
    """Evaluate the left side of ``and``; whether the right side is needed."""
    return _begin(value, stop_at=False)


def and_end(value: Any) -> Any:
    """Combine the pending left side with the right side of ``and``."""
    return _end("and", value)


def or_begin(value: Any) -> bool:
    """Evaluate the left side of ``or``; whether the right side is needed."""
    return _begin(value, stop_at=True)


def or_end(value: Any) -> Any:
    """Combine the pending left side with the right side of ``or``."""
    return _end("or", value)


def logic_pop() -> Any:
    """The left side of ``and`` or ``or`` that decided the result."""
    return _pending.stack.pop()[0]


def select_then(condition: Any) -> bool:
    """Open a ternary; whether its first value is needed."""
    known = truth(condition)
    _pending.stack.append((known, mark()))
    return known is not False


def select_else() -> bool:
    """Whether the second value of the open ternary is needed."""
    return _pending.stack[-1][0] is not True


def select_end(then: Any, other: Any) -> Any:
    """Close a ternary: one of the values, or a conditional expression."""
    condition, before = _pending.stack.pop()
    if not isinstance(condition, ir.Expr):
        return then if condition else other
    assert before is not None
    _check_pure(before, "a conditional expression")
    a, b = operand(then), operand(other)
    if a is None or b is None:
        bad = then if a is None else other
        raise TraceTypeError(
            f"a run-time condition cannot choose {describe(bad)}; both values must be scalars",
            user_span(),
        )
    return guarded("conditional expression", T.if_then_else, condition, a, b, user_span())


def reset() -> None:
    """Forget operands left behind by an exception."""
    _pending.stack.clear()
