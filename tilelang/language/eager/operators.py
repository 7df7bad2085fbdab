"""The operators of traced code: Python on Python values, IR nodes as soon as an operand is one."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm.ir.prim import _ffi_api as _prim

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir.expr import const_int, const_number
from tilelang.ir.span import user_span
from tilelang.language.eager.logic import logic, negate
from tilelang.language.eager.values import describe, guarded, is_scalar, operand, read, refuse

__all__ = ["BINARY_OPERATORS", "COMPARISONS", "chain", "contains", "equal", "invert", "neg", "pos"]

_PLAIN = frozenset({int, float, bool, str})
_ARITHMETIC = frozenset(["+", "-", "*", "//", "%", "<<", ">>", "**"])


def _binary(symbol: str, compute: Callable[[Any, Any], Any], node: Callable[..., Any]) -> Any:
    promotes_bool = symbol in _ARITHMETIC

    def apply(left: Any, right: Any) -> Any:
        if type(left) in _PLAIN and type(right) in _PLAIN:
            return compute(left, right)
        left, right = read(left), read(right)
        if not (isinstance(left, ir.Expr) or isinstance(right, ir.Expr)):
            return compute(left, right)
        a, b = operand(left), operand(right)
        if a is None or b is None:
            return _foreign(symbol, compute, left, right)
        if promotes_bool:
            a, b = _number(a), _number(b)
        elif a.ty == "bool" and b.ty != "bool":
            a = a.astype(str(b.ty.dtype))
        elif b.ty == "bool" and a.ty != "bool":
            b = b.astype(str(a.ty.dtype))
        return guarded(symbol, node, *_same_halves(a, b), user_span())

    return apply


def _number(value: ir.Expr) -> ir.Expr:
    return value.astype("int32") if value.ty == "bool" else value


def _same_halves(a: ir.Expr, b: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """float16 and bfloat16 meet in float32, the narrowest that holds both; TVM takes the left."""
    if a.ty != b.ty and {str(a.ty.dtype), str(b.ty.dtype)} == {"float16", "bfloat16"}:
        return a.astype("float32"), b.astype("float32")
    return a, b


def _foreign(symbol: str, compute: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Let a user's class with its own operators decide, as Python would."""
    other = right if isinstance(left, ir.Expr) else left
    if isinstance(other, ir.Expr):
        raise refuse(symbol, left, right)
    try:
        return compute(left, right)
    except TypeError:
        raise refuse(symbol, left, right) from None


def _is_float(value: ir.Expr) -> bool:
    return not str(value.ty.dtype).startswith(("int", "uint", "bool"))


def _truediv(a: ir.Expr, b: ir.Expr, span: Any) -> ir.Expr:
    if not _is_float(a) and not _is_float(b):
        raise TraceTypeError(
            "/ of two integers is ambiguous in a kernel; use // (floor), T.truncdiv, T.ceildiv, or "
            "cast to a float first",
            span,
        )
    divisor = const_number(b)
    if divisor == 0:
        # Dividing by a constant zero is refused by TVM; this product is the quotient of IEEE.
        kind = b if _is_float(b) else a
        infinity = T.const(math.copysign(math.inf, divisor), str(kind.ty.dtype.with_lanes(1)))
        return _prim._OpMul(a, infinity, span)
    return _prim._OpDiv(a, b, span)


def _integer_division(
    symbol: str, node: Callable[..., ir.Expr], instead: str
) -> Callable[..., ir.Expr]:
    def build(a: ir.Expr, b: ir.Expr, span: Any) -> ir.Expr:
        if _is_float(a) or _is_float(b):
            raise TraceTypeError(f"{symbol} needs integers; for floats use {instead}", span)
        if const_int(b) == 0:
            raise TraceError(f"division by zero in {symbol}", span)
        return node(a, b, span)

    return build


def _shift(symbol: str, node: Callable[..., ir.Expr]) -> Callable[..., ir.Expr]:
    def build(a: ir.Expr, b: ir.Expr, span: Any) -> ir.Expr:
        amount = const_int(b)
        dtype = str(a.ty.dtype)
        if amount is None or _is_float(a):
            return node(a, b, span)
        if amount < 0:
            raise TraceError(f"{symbol} by a negative amount ({amount})", span)
        bits = a.ty.dtype.bits
        if amount < bits:
            return node(a, T.const(amount, dtype), span)
        if symbol == "<<" or dtype.startswith("uint"):
            return T.const(0, dtype)
        return node(a, T.const(bits - 1, dtype), span)

    return build


def _power(a: ir.Expr, b: ir.Expr, span: Any) -> ir.Expr:
    if _is_float(a) or _is_float(b):
        return T.pow(a, b, span)
    exponent = const_int(b)
    if exponent is None or exponent < 0:
        raise TraceTypeError(
            "** of integers needs an exponent that is a constant >= 0; cast to a float for others",
            span,
        )
    result: ir.Expr = T.const(1, str(a.ty.dtype))
    for _ in range(exponent):
        result = _prim._OpMul(result, a, span)
    return result


def _matmul(a: ir.Expr, b: ir.Expr, span: Any) -> ir.Expr:
    raise TraceTypeError("@ is not defined on scalars; use T.gemm on tiles", span)


BINARY_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": _binary("+", operator.add, _prim._OpAdd),
    "sub": _binary("-", operator.sub, _prim._OpSub),
    "mul": _binary("*", operator.mul, _prim._OpMul),
    "truediv": _binary("/", operator.truediv, _truediv),
    "floordiv": _binary(
        "//", operator.floordiv, _integer_division("//", _prim._OpFloorDiv, "T.floor(a / b)")
    ),
    "mod": _binary("%", operator.mod, _integer_division("%", _prim._OpFloorMod, "T.fmod(a, b)")),
    "power": _binary("**", operator.pow, _power),
    "matmul": _binary("@", operator.matmul, _matmul),
    "lshift": _binary("<<", operator.lshift, _shift("<<", _prim.left_shift)),
    "rshift": _binary(">>", operator.rshift, _shift(">>", _prim.right_shift)),
    "bitand": _binary("&", operator.and_, _prim.bitwise_and),
    "bitor": _binary("|", operator.or_, _prim.bitwise_or),
    "bitxor": _binary("^", operator.xor, _prim.bitwise_xor),
}


def _compare(symbol: str, compute: Callable[[Any, Any], Any], node: Callable[..., Any]) -> Any:
    ordered = _binary(symbol, compute, node)

    def apply(left: Any, right: Any) -> Any:
        result = ordered(left, right)
        return bool(result.value) if type(result) is prim.IntImm else result

    return apply


def equal(left: Any, right: Any) -> Any:
    """``left == right``: a Python bool if it is known now, else a boolean expression."""
    if type(left) in _PLAIN and type(right) in _PLAIN:
        return left == right
    left, right = read(left), read(right)
    if is_scalar(left) or is_scalar(right):
        if left is None or right is None:
            return False
        a, b = operand(left), operand(right)
        if a is None or b is None:
            raise refuse("==", left, right)
        x, y = const_number(a), const_number(b)
        if x is not None and y is not None:
            return x == y
        return guarded("==", _prim._OpEQ, *_same_halves(a, b), user_span())
    if isinstance(left, ir.Expr) and isinstance(right, ir.Expr):
        return left.same_as(right)
    if _is_sequence(left) and _is_sequence(right):
        return _equal_sequences(left, right)
    return left == right


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (tuple, list)) or type(value).__name__ in ("Array", "List")


def _equal_sequences(left: Any, right: Any) -> Any:
    if len(left) != len(right) or isinstance(left, list) != isinstance(right, list):
        return False
    return logic("and", [equal(a, b) for a, b in zip(left, right, strict=True)])


def _not_equal(left: Any, right: Any) -> Any:
    return negate(equal(left, right))


def contains(item: Any, container: Any) -> Any:
    """``item in container``; with run-time operands a disjunction of comparisons."""
    item, container = read(item), read(container)
    if isinstance(container, ir.Expr):
        raise TraceTypeError(
            f"'in' needs a Python container, found {describe(container)}", user_span()
        )
    sequence = _is_sequence(container) or isinstance(container, (set, frozenset, range))
    if sequence and (is_scalar(item) or any(is_scalar(e) for e in container)):
        return logic("or", [equal(item, element) for element in container])
    return item in container


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": _compare("<", operator.lt, _prim._OpLT),
    "le": _compare("<=", operator.le, _prim._OpLE),
    "gt": _compare(">", operator.gt, _prim._OpGT),
    "ge": _compare(">=", operator.ge, _prim._OpGE),
    "eq": equal,
    "ne": _not_equal,
    "in_": contains,
    "not_in": lambda a, b: negate(contains(a, b)),
    "is_": lambda a, b: read(a) is read(b),
    "is_not": lambda a, b: read(a) is not read(b),
}


def chain(ops: tuple[str, ...], *operands: Any) -> Any:
    """``a < b < c``: each operand is used once per comparison, all are evaluated."""
    values = [read(operand) for operand in operands]
    pairs = zip(ops, values, values[1:], strict=False)
    return logic("and", [COMPARISONS[op](a, b) for op, a, b in pairs])


def neg(value: Any) -> Any:
    """``-value``; unsigned integers wrap."""
    value = read(value)
    if not isinstance(value, ir.Expr):
        return -value
    if not is_scalar(value):
        raise TraceTypeError(f"unsupported operand for -: {describe(value)}", user_span())
    value, span = _number(value), user_span()
    if str(value.ty.dtype).startswith("uint"):
        return prim.Sub(T.const(0, value.ty.dtype), value, span)
    return _prim._OpMul(value, T.const(-1, value.ty.dtype), span)


def pos(value: Any) -> Any:
    """``+value``."""
    value = read(value)
    return value if isinstance(value, ir.Expr) else +value


def invert(value: Any) -> Any:
    """``~value``."""
    value = read(value)
    if not isinstance(value, ir.Expr):
        return ~value
    if not is_scalar(value) or _is_float(value):
        raise TraceTypeError(f"~ needs an integer or bool, found {describe(value)}", user_span())
    return _prim.bitwise_not(value, user_span())
