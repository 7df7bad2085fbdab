"""Integer expressions of a :class:`~tilelang.engine.launch_plan.LaunchPlan`.

An expression is an ``int``, a :class:`Sym` (value of one launch symbol) or a tuple
``(operator, operand, ...)`` over other expressions. They are evaluated on the host at every call:
grids, shapes, strides, workspace sizes and host assertions. The native launcher compiles the same
expressions; the functions here are for adapters and tools that run in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Union

__all__ = [
    "IntExpr",
    "Sym",
    "check_expr",
    "evaluate",
    "expr_from_json",
    "expr_to_json",
    "format_expr",
    "symbols",
]


@dataclass(frozen=True)
class Sym:
    """The value of launch symbol number ``index``."""

    index: int


IntExpr = Union[int, Sym, tuple[Any, ...]]  # noqa: UP007  (evaluated at run time on Python 3.10)


def _shift_left(a: int, b: int) -> int:
    return a << b if 0 <= b < 64 else 0


def _shift_right(a: int, b: int) -> int:
    return a >> b if 0 <= b < 64 else (-1 if a < 0 else 0)


_BINARY: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "min": min,
    "max": max,
    "<<": _shift_left,
    ">>": _shift_right,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
}
_LOGICAL = ("and", "or")
_ARITY = dict.fromkeys((*_BINARY, *_LOGICAL), 2) | {"not": 1, "select": 3}


def _wrap(value: int) -> int:
    """Reduce to a signed 64-bit integer, the arithmetic of the native launcher."""
    return (value + 2**63) % 2**64 - 2**63


def check_expr(expr: IntExpr, num_symbols: int) -> None:
    """Raise ``ValueError`` unless ``expr`` is well formed over ``num_symbols`` symbols."""
    if isinstance(expr, bool) or not isinstance(expr, (int, Sym, tuple)):
        raise ValueError(f"not an integer expression: {expr!r}")
    if isinstance(expr, int):
        if not -(2**63) <= expr < 2**63:
            raise ValueError(f"constant {expr} does not fit a 64-bit integer")
    elif isinstance(expr, Sym):
        if not 0 <= expr.index < num_symbols:
            raise ValueError(f"symbol {expr.index} is out of range (have {num_symbols})")
    else:
        if not expr or expr[0] not in _ARITY:
            raise ValueError(f"unknown operator in expression {expr!r}")
        if len(expr) != _ARITY[expr[0]] + 1:
            raise ValueError(f"operator '{expr[0]}' takes {_ARITY[expr[0]]} operands: {expr!r}")
        for operand in expr[1:]:
            check_expr(operand, num_symbols)


def evaluate(expr: IntExpr, values: Sequence[int]) -> int:
    """Return the value of ``expr`` when symbol ``i`` is ``values[i]``; booleans are 0 and 1.

    ``//`` and ``%`` floor; ``and``, ``or`` and ``select`` evaluate only the operand they need.

    Raises
    ------
    ZeroDivisionError
        If a divisor is zero.

    Examples
    --------
    >>> evaluate(("//", ("+", Sym(0), 127), 128), [300])
    3
    """
    if isinstance(expr, int):
        return expr
    if isinstance(expr, Sym):
        return values[expr.index]
    op, first = expr[0], evaluate(expr[1], values)
    if op == "not":
        return int(not first)
    if op == "select":
        return evaluate(expr[2] if first else expr[3], values)
    if op == "and":
        return int(bool(first) and bool(evaluate(expr[2], values)))
    if op == "or":
        return int(bool(first) or bool(evaluate(expr[2], values)))
    return _wrap(_BINARY[op](first, evaluate(expr[2], values)))


def symbols(expr: IntExpr) -> Iterator[int]:
    """Yield the index of every symbol occurrence in ``expr``, left to right."""
    if isinstance(expr, Sym):
        yield expr.index
    elif isinstance(expr, tuple):
        for operand in expr[1:]:
            yield from symbols(operand)


def format_expr(expr: IntExpr, names: Sequence[str]) -> str:
    """Render ``expr`` for messages, with ``names[i]`` for symbol ``i``.

    Examples
    --------
    >>> format_expr(("+", ("*", Sym(0), 4), 1), ["n"])
    'n * 4 + 1'
    """
    return _format(expr, names, 0)


_PRECEDENCE = {
    "or": 1, "and": 2, "not": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4,
    "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "//": 10, "%": 10,
}  # fmt: skip


def _format(expr: IntExpr, names: Sequence[str], outer: int) -> str:
    if isinstance(expr, int):
        return str(expr)
    if isinstance(expr, Sym):
        return names[expr.index]
    op, args = expr[0], expr[1:]
    if op in ("min", "max", "select"):
        return f"{op}({', '.join(_format(a, names, 0) for a in args)})"
    level = _PRECEDENCE[op]
    if op == "not":
        text = f"not {_format(args[0], names, level)}"
    else:
        text = f"{_format(args[0], names, level)} {op} {_format(args[1], names, level + 1)}"
    return f"({text})" if level < outer else text


def expr_to_json(expr: IntExpr) -> Any:
    """Return the JSON value of ``expr``: an int, ``{"sym": i}`` or ``[op, ...]``."""
    if isinstance(expr, Sym):
        return {"sym": expr.index}
    if isinstance(expr, tuple):
        return [expr[0], *(expr_to_json(a) for a in expr[1:])]
    return int(expr)


def expr_from_json(value: Any) -> IntExpr:
    """Inverse of :func:`expr_to_json`; raises ``ValueError`` on anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, dict) and set(value) == {"sym"}:
        return Sym(value["sym"])
    if isinstance(value, list) and value and isinstance(value[0], str):
        return (value[0], *(expr_from_json(v) for v in value[1:]))
    raise ValueError(f"not an integer expression: {value!r}")
