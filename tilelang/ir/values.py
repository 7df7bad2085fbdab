"""Values of a given dtype: constants, casts, vectors, and the type rule of mixed operands.

A Python number beside an expression takes the expression's dtype if it can hold it (``x + 1`` of
an int8 ``x`` is int8, ``x * 0.5`` of a float16 ``x`` is float16); otherwise, and for two
expressions, the wider type wins as in TVM. The one difference: float16 with bfloat16 gives
float32, because neither holds the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from tvm import ir
from tvm import tirx as T

from tilelang.errors import TileLangError, TraceError, TraceTypeError
from tilelang.ir.dtype import AnyDType, declared_dtype, dtype
from tilelang.ir.expr import is_buffer
from tilelang.ir.span import user_span

__all__ = [
    "as_scalar",
    "cast",
    "constant",
    "element_type",
    "guard",
    "int_range",
    "is_number",
    "make_value",
    "match_pair",
    "match_types",
    "number_like",
    "plain",
]

Result = TypeVar("Result")
_DEFAULT_INT = (-(2**31), 2**31)


def plain(value: Any) -> Any:
    """Unwrap what stands for a Python number or expression: numpy scalars, lazy ``==`` results."""
    if isinstance(value, (int, float, ir.Expr)):
        return value
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
        return value.item()
    return value.asobject() if hasattr(value, "asobject") else value


def is_number(value: Any) -> bool:
    """Whether ``value`` is a Python bool, int or float."""
    return isinstance(value, (int, float))


def as_scalar(value: Any, what: str = "value") -> ir.Expr:
    """Turn a number, expression or one-element variable (``T.alloc_var``) into an expression.

    Raises
    ------
    TraceTypeError
        If ``value`` is none of these; ``what`` names it in the message.
    """
    value = plain(value)
    if isinstance(value, ir.Expr) and not isinstance(value, ir.TensorRegion):
        if not is_buffer(value):
            return value
        if value.scope() == "local.var":
            return T.BufferLoad(value, [0], user_span())
    if is_number(value):
        return constant(value, _default_dtype(value))
    kind = f"buffer {value.name}" if is_buffer(value) else type(value).__name__
    hint = "; index it to get an element" if is_buffer(value) else ""
    raise TraceTypeError(
        f"{what}: expected a scalar or expression, found {kind}{hint}", user_span()
    )


def element_type(value: ir.Expr) -> dtype:
    """The dtype of an expression; pointers are ``handle``."""
    ty = value.ty
    return dtype("handle") if isinstance(ty, ir.PointerType) else dtype(ty.dtype)


def _default_dtype(value: bool | int | float) -> dtype:
    if isinstance(value, bool):
        return dtype("bool")
    if isinstance(value, float):
        return dtype("float32")
    if _DEFAULT_INT[0] <= value < _DEFAULT_INT[1]:
        return dtype("int32")
    return dtype("int64" if value < 2**63 else "uint64")


def int_range(target: dtype) -> tuple[int, int]:
    """Lowest and highest value of an integer type or bool (of one lane)."""
    if target.is_bool:
        return 0, 1
    if target.element.startswith("u"):
        return 0, 2**target.bits - 1
    return -(2 ** (target.bits - 1)), 2 ** (target.bits - 1) - 1


def constant(value: bool | int | float, target: AnyDType, span: ir.Span | None = None) -> ir.Expr:
    """A constant of dtype ``target``; a vector type gets the value in every lane.

    A float becomes an integer as a cast does (toward zero, saturating, NaN is 0); a number too
    large for a float type becomes what that type makes of it (infinity or NaN).

    Raises
    ------
    TraceError
        If an integer does not fit an integer type.
    """
    kind = dtype(target)
    span = span or user_span()
    if kind.is_integer and type(value) is int:
        return T.const(_fit_integer(value, kind, span), str(kind), span)
    if kind.is_bool:
        number: bool | int | float = bool(value)
    elif kind.is_integer:
        number = _fit_integer(value, kind, span)
    elif kind.is_float and not kind.is_float4_e2m1_unpacked():
        number = _fit_float(float(value), kind.element)
    else:
        raise TraceTypeError(f"there are no constants of dtype {kind}", span)
    return T.const(number, str(kind.storage), span)


def _fit_integer(value: bool | int | float, kind: dtype, span: ir.Span | None) -> int:
    low, high = int_range(kind)
    if isinstance(value, float):
        return 0 if math.isnan(value) else int(min(max(value, low), high))
    if not low <= value <= high:
        raise TraceError(
            f"{value} does not fit {kind.element} ({low} to {high}); use a wider type or T.cast",
            span,
        )
    return int(value)


def _fit_float(value: float, kind: dtype) -> float:
    if kind == "float64" or not math.isfinite(value) or abs(value) < 1:
        return value
    with np.errstate(over="ignore"):
        rounded = float(np.float64(value).astype(kind.as_numpy()))
    return value if math.isfinite(rounded) else rounded


def number_like(value: bool | int | float, other: dtype) -> ir.Expr:
    """The constant that a Python number becomes beside an operand of dtype ``other``."""
    element = other.element
    if element.is_float and not element.is_float4_e2m1_unpacked():
        return constant(value, element)
    if isinstance(value, bool) or (isinstance(value, int) and element.is_integer):
        low, high = int_range(element)
        if low <= value <= high:
            return constant(value, element)
    return constant(value, _default_dtype(value))


def match_pair(a: Any, b: Any, what: str) -> tuple[ir.Expr, ir.Expr, dtype]:
    """Bring two operands to one dtype by the rule of this module, and say which.

    Raises
    ------
    TraceTypeError
        If an operand is no scalar or there is no common type.
    """
    if is_number(a) and is_number(b):
        a = constant(a, _default_dtype(a))
    if is_number(a):
        right = as_scalar(b, what)
        right_kind = element_type(right)
        left = number_like(a, right_kind)
        left_kind = element_type(left)
    else:
        left = as_scalar(a, what)
        left_kind = element_type(left)
        right = number_like(b, left_kind) if is_number(b) else as_scalar(b, what)
        right_kind = element_type(right)
    if left_kind is right_kind:
        return left, right, left_kind
    common = _wider(left_kind, right_kind, what)
    return cast(left, common), cast(right, common), common


def match_types(values: Sequence[Any], what: str) -> list[ir.Expr]:
    """Bring any number of operands to one dtype by the rule of this module.

    Raises
    ------
    TraceTypeError
        If an operand is no scalar or there is no common type.
    """
    operands = [plain(value) for value in values]
    # Numbers last: they adapt to the expressions.
    order = sorted(range(len(operands)), key=lambda i: is_number(operands[i]))
    exprs: dict[int, ir.Expr] = {}
    common: dtype | None = None
    for i in order:
        operand = operands[i]
        if is_number(operand) and common is not None:
            exprs[i] = number_like(operand, common)
        else:
            exprs[i] = as_scalar(operand, what)
        kind = element_type(exprs[i])
        common = kind if common is None or kind is common else _wider(common, kind, what)
    assert common is not None, "no operands"
    return [cast(exprs[i], common) for i in range(len(operands))]


def _wider(a: dtype, b: dtype, what: str) -> dtype:
    lanes = max(a.lanes, b.lanes)
    if a.lanes != b.lanes and min(a.lanes, b.lanes) != 1:
        raise TraceTypeError(f"{what}: operands have {a.lanes} and {b.lanes} lanes", user_span())
    x, y = a.element, b.element
    if x == y:
        return x.with_lanes(lanes)
    if {str(x), str(y)} == {"float16", "bfloat16"}:
        return dtype("float32").with_lanes(lanes)
    # Any two variables of the types show how TVM promotes.
    probe = [T.Var("a", str(x.storage)), T.Var("b", str(y.storage))]
    try:
        return element_type(guard(what, lambda: probe[0] + probe[1])).with_lanes(lanes)
    except TraceTypeError:
        raise TraceTypeError(
            f"{what}: no common type of {a} and {b}; cast one of the operands", user_span()
        ) from None


def cast(value: Any, target: AnyDType, span: ir.Span | None = None) -> ir.Expr:
    """Convert an expression or number to ``target`` by the numeric contract.

    Integers wrap; float to integer truncates and saturates, NaN gives 0; to a narrower float
    rounds to nearest even. A cast to ``tfloat32`` rounds to 10 mantissa bits. A scalar cast to a
    vector type fills its lanes.

    Raises
    ------
    TraceTypeError
        If ``value`` is no scalar or the types do not convert into each other.
    """
    kind = dtype(target)
    value = plain(value)
    if is_number(value) and kind.element != "tfloat32":
        low, high = int_range(kind) if kind.is_integer else (value, value)
        wrapped = (
            low + (value - low) % (high - low + 1)
            if isinstance(value, int) and kind.is_integer
            else value
        )
        return constant(wrapped, kind, span)
    expr = as_scalar(value, "cast")
    source = element_type(expr)
    if "handle" in (source, kind) or kind.is_float4_e2m1_unpacked():
        if source == kind:
            return expr
        raise TraceTypeError(
            f"cannot cast {source} to {kind}; use T.reinterpret or T.copy", span or user_span()
        )
    if source.lanes not in (1, kind.lanes):
        raise TraceTypeError(f"cannot cast {source} to {kind}: lanes differ", span or user_span())
    storage = kind.storage
    if source != storage:
        expr = guard("cast", lambda: expr.astype(str(storage), span or user_span()))
    if kind.element != "tfloat32" or declared_dtype(expr) == kind:
        return expr
    return ir.Call(_round_tfloat32(), [expr], ret_ty=kind.prim_type, span=span or user_span())


def _round_tfloat32() -> ir.Op:
    from tilelang.ir import intrin  # the table builds its arguments with this module

    return intrin.get("round_tfloat32").op


def guard(what: str, build: Callable[[], Result]) -> Result:
    """Run a TVM constructor, turning its complaints into a located error of ours.

    Raises
    ------
    TraceTypeError
        If TVM rejects the operands.
    """
    try:
        return build()
    except TileLangError:
        raise
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        reason = lines[-1].strip() if lines else type(error).__name__
        raise TraceTypeError(f"{what}: {reason.split(' is false: ')[-1]}", user_span()) from error


def make_value(target: dtype, values: Sequence[Any]) -> ir.Expr:
    """What calling the dtype ``target`` with ``values`` gives; see :meth:`dtype.__call__`."""
    span = user_span()
    if not values:
        return T.Var("v", target.prim_type, span)
    if len(values) == 1:
        value = plain(values[0])
        if isinstance(value, str):
            return constant(_parse_float(value, target, span), target, span)
        if is_number(value) and target.element != "tfloat32":
            return constant(value, target, span)
        return cast(value, target, span)
    if len(values) != target.lanes:
        raise TraceError(f"{target} has {target.lanes} lanes, found {len(values)} values", span)
    lanes = [cast(value, target.element, span) for value in values]
    return T.Shuffle(lanes, list(range(len(lanes))), span)


def _parse_float(text: str, target: dtype, span: ir.Span | None) -> float:
    if target.is_float and text.lower() in {"inf", "+inf", "-inf", "nan"}:
        return float(text)
    raise TraceError(
        f"{target}({text!r}): the only texts are 'inf', '-inf' and 'nan', for floats", span
    )
