"""The operators of expressions: ``+ - * / // % << >> & | ^``, comparisons, negation, min and max.

They follow :mod:`tilelang.ir.values` for mixed operands and the language for meaning: ``//`` and
``%`` floor, ``/`` is for floats only, a shift keeps the dtype of its left operand. Two Python
numbers give a Python number. Integer constants wrap at their width.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tvm import ir
from tvm.ir import prim

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir.dtype import dtype
from tilelang.ir.span import user_span
from tilelang.ir.values import (
    as_scalar,
    cast,
    constant,
    element_type,
    int_range,
    is_number,
    match_pair,
    plain,
)

__all__ = [
    "BINARY",
    "add",
    "binary",
    "bit_and",
    "bit_not",
    "bit_or",
    "bit_xor",
    "ceildiv",
    "floordiv",
    "floormod",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "shift_left",
    "shift_right",
    "subtract",
    "truediv",
    "truncdiv",
    "truncmod",
    "truth",
]


def _truncdiv(a: Any, b: Any) -> Any:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _truncmod(a: Any, b: Any) -> Any:
    return a - b * _truncdiv(a, b)


_COMPARE = {prim.LT, prim.LE, prim.GT, prim.GE, prim.EQ, prim.NE}
_KEEP_BOOL = _COMPARE | {prim.Max, prim.Min}
_INTEGER_DIVISION = {prim.FloorDiv, prim.FloorMod, prim.Div, prim.Mod}


class _Binary:
    """One binary operator: how Python computes it, the IR node, which operands it takes."""

    def __init__(
        self,
        what: str,
        fold: Callable[[Any, Any], Any],
        node: Callable[..., ir.Expr],
        takes: str = "number",
        hint: str = "",
    ) -> None:
        self.what, self.fold, self.node, self.takes, self.hint = what, fold, node, takes, hint
        self.divides = node in _INTEGER_DIVISION

    def __call__(self, a: Any, b: Any) -> Any:
        a, b = plain(a), plain(b)
        if is_number(a) and is_number(b):
            return self._fold(a, b)
        left, right, kind = self.operands(a, b)
        self._check(kind)
        if type(left) is prim.IntImm and type(right) is prim.IntImm:
            return _wrapped(self._fold(int(left.value), int(right.value)), kind, self.node)
        if self.divides and type(right) is prim.IntImm and right.value == 0:
            raise TraceError(f"{self.what}: division by zero", user_span())
        return self.node(left, right, user_span())

    def operands(self, a: Any, b: Any) -> tuple[ir.Expr, ir.Expr, dtype]:
        """Bring both operands to one dtype."""
        left, right, kind = match_pair(a, b, self.what)
        if kind.is_bool and self.takes in ("number", "int") and self.node not in _KEEP_BOOL:
            kind = dtype("int32").with_lanes(kind.lanes)
            return cast(left, kind), cast(right, kind), kind
        return left, right, kind

    def _fold(self, a: Any, b: Any) -> Any:
        try:
            return self.fold(a, b)
        except ZeroDivisionError:
            raise TraceError(f"{self.what}: division by zero", user_span()) from None

    def _check(self, kind: dtype) -> None:
        ok = {
            "number": kind.is_integer or kind.is_float or kind.is_bool,
            "int": kind.is_integer,
            "bits": kind.is_integer or kind.is_bool,
            "float": kind.is_float,
        }[self.takes]
        if not ok:
            raise TraceTypeError(f"{self.what} is not defined for {kind}{self.hint}", user_span())


class _Shift(_Binary):
    """A shift: the amount takes the dtype of the shifted value; any amount is legal."""

    def operands(self, a: Any, b: Any) -> tuple[ir.Expr, ir.Expr, dtype]:
        amount = plain(b)
        if is_number(a):
            return match_pair(a, b, self.what)
        value = as_scalar(a, self.what)
        kind = element_type(value)
        if not kind.is_integer:
            self._check(kind)
        if not is_number(amount):
            count = as_scalar(amount, self.what)
            if not element_type(count).is_integer:
                self._check(element_type(count))
            return value, cast(count, kind), kind
        if not isinstance(amount, int) or amount < 0:
            raise TraceError(
                f"{self.what}: the amount must be an integer >= 0, found {amount}", user_span()
            )
        # Amounts from the width on give 0 (or the sign); the cap keeps the constant in range.
        return value, constant(min(amount, kind.bits), kind), kind


def _wrapped(number: Any, kind: dtype, node: Callable[..., ir.Expr]) -> ir.Expr:
    if isinstance(number, bool) and node in _COMPARE:
        return constant(number, "bool")
    low, high = int_range(kind)
    return constant(low + (int(number) - low) % (high - low + 1), kind)


_NO_FLOAT_DIV = "; use T.floor(a / b) or T.fmod(a, b) for floats"
_NO_INT_DIV = "; use // (floor) or T.truncdiv (toward zero), or cast an operand to a float"

add = _Binary("+", operator.add, prim.Add)
subtract = _Binary("-", operator.sub, prim.Sub)
multiply = _Binary("*", operator.mul, prim.Mul)
truediv = _Binary("/", operator.truediv, prim.Div, "float", _NO_INT_DIV)
floordiv = _Binary("//", operator.floordiv, prim.FloorDiv, "int", _NO_FLOAT_DIV)
floormod = _Binary("%", operator.mod, prim.FloorMod, "int", _NO_FLOAT_DIV)
truncdiv = _Binary("T.truncdiv", _truncdiv, prim.Div, "int", "; use / for floats")
truncmod = _Binary("T.truncmod", _truncmod, prim.Mod, "int", "; use T.fmod for floats")
shift_left = _Shift("<<", operator.lshift, prim.LShift, "int")
shift_right = _Shift(">>", operator.rshift, prim.RShift, "int")
bit_and = _Binary("&", operator.and_, prim.BitwiseAnd, "bits")
bit_or = _Binary("|", operator.or_, prim.BitwiseOr, "bits")
bit_xor = _Binary("^", operator.xor, prim.BitwiseXor, "bits")
maximum = _Binary("T.max", max, prim.Max)
minimum = _Binary("T.min", min, prim.Min)
_ceil_fold = _Binary("T.ceildiv", lambda a, b: -(-a // b), prim.FloorDiv, "int")

#: The binary operators by the name of the function of module ``operator``.
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "truediv": truediv,
    "floordiv": floordiv,
    "mod": floormod,
    "lshift": shift_left,
    "rshift": shift_right,
    "and_": bit_and,
    "or_": bit_or,
    "xor": bit_xor,
    "lt": _Binary("<", operator.lt, prim.LT),
    "le": _Binary("<=", operator.le, prim.LE),
    "gt": _Binary(">", operator.gt, prim.GT),
    "ge": _Binary(">=", operator.ge, prim.GE),
    "eq": _Binary("==", operator.eq, prim.EQ),
    "ne": _Binary("!=", operator.ne, prim.NE),
}


def binary(name: str, a: Any, b: Any) -> Any:
    """Apply the operator that Python's module ``operator`` calls ``name``, such as ``"lt"``."""
    return BINARY[name](a, b)


def ceildiv(a: Any, b: Any) -> Any:
    """The ceiling of ``a / b`` for integers of any sign; Python integers give a Python integer."""
    a, b = plain(a), plain(b)
    if is_number(a) and is_number(b):
        return _ceil_fold(a, b)
    left, right, kind = _ceil_fold.operands(a, b)
    _ceil_fold._check(kind)
    # a positive constant divisor: (a + b - 1) // b, which index analysis knows best
    if isinstance(right, prim.IntImm) and right.value > 0:
        return floordiv(add(left, int(right.value) - 1), right)
    rest = BINARY["ne"](floormod(left, right), 0)
    return add(floordiv(left, right), cast(rest, kind))


def negate(value: Any) -> Any:
    """``-value``; unsigned integers wrap."""
    value = plain(value)
    if is_number(value):
        return -value
    expr = as_scalar(value, "-")
    if element_type(expr).is_float:
        return multiply(expr, -1)  # 0 - x would turn -0.0 into 0.0
    return subtract(0, expr)


def bit_not(value: Any) -> Any:
    """``~value``; of a bool it is the logical negation."""
    value = plain(value)
    if is_number(value):
        return ~value
    expr = as_scalar(value, "~")
    kind = element_type(expr)
    if kind.is_bool:
        return logical_not(expr)
    if not kind.is_integer:
        raise TraceTypeError(f"~ is not defined for {kind}", user_span())
    if isinstance(expr, prim.IntImm):
        return _wrapped(~int(expr.value), kind, prim.BitwiseNot)
    return prim.BitwiseNot(expr, user_span())


def truth(value: Any, what: str) -> ir.Expr:
    """An operand as a condition: numbers are compared with zero."""
    expr = as_scalar(value, what)
    kind = element_type(expr)
    if kind.is_bool:
        return expr
    if isinstance(expr.ty, ir.PointerType):
        raise TraceTypeError(f"{what}: a pointer is no condition; use T.isnullptr", user_span())
    return BINARY["ne"](expr, 0)


def logical_and(*values: Any) -> Any:
    """Whether all operands are true; all of them are evaluated."""
    return _logical("and", prim.And, all, values)


def logical_or(*values: Any) -> Any:
    """Whether any operand is true; all of them are evaluated."""
    return _logical("or", prim.Or, any, values)


def _logical(
    what: str, node: Callable[..., ir.Expr], fold: Callable[..., bool], values: Any
) -> Any:
    operands = [plain(value) for value in values]
    if all(is_number(value) for value in operands):
        return fold(operands)
    span = user_span()
    conditions = [truth(value, what) for value in operands]
    result = conditions[0]
    for condition in conditions[1:]:
        result = node(result, condition, span)
    return result


def logical_not(value: Any) -> Any:
    """Whether the operand is false."""
    value = plain(value)
    return not value if is_number(value) else prim.Not(truth(value, "not"), user_span())
