"""Elementwise mathematics on scalars: ``T.exp``, ``T.sqrt``, ``T.atan2``, ...

Arguments are floating-point expressions or numbers of any float dtype; a function of several takes
them to one common type. The result has that type and is rounded once: functions of the 16- and
8-bit types are computed in float32. Errors relative to the exact value are bounded per function in
the accuracy table of the interpreter. Integer arguments are refused (``TraceTypeError``) except
where a function says otherwise. All functions run on every backend::

    B[i] = T.exp(A[i] - row_max)
    B[i] = T.pow(A[i], 3)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import ir

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import arith, intrin
from tilelang.ir.dtype import AnyDType, dtype
from tilelang.ir.expr import const_number
from tilelang.ir.span import user_span
from tilelang.ir.values import as_scalar, constant, element_type, int_range

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "clamp",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "exp10",
    "floor",
    "fmod",
    "hypot",
    "infinity",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "log",
    "log1p",
    "log2",
    "log10",
    "max_value",
    "min_value",
    "nearbyint",
    "nextafter",
    "pow",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]


def exp(x: Any) -> ir.Expr:
    """``e**x``."""
    return intrin.get("exp")(x)


def exp2(x: Any) -> ir.Expr:
    """``2**x``; the cheapest exponential on GPUs."""
    return intrin.get("exp2")(x)


def exp10(x: Any) -> ir.Expr:
    """``10**x``."""
    return intrin.get("exp10")(x)


def log(x: Any) -> ir.Expr:
    """Natural logarithm; -inf at 0, NaN below."""
    return intrin.get("log")(x)


def log2(x: Any) -> ir.Expr:
    """Logarithm to base 2."""
    return intrin.get("log2")(x)


def log10(x: Any) -> ir.Expr:
    """Logarithm to base 10."""
    return intrin.get("log10")(x)


def log1p(x: Any) -> ir.Expr:
    """``log(1 + x)``, accurate near 0."""
    return intrin.get("log1p")(x)


def sin(x: Any) -> ir.Expr:
    """Sine of an angle in radians."""
    return intrin.get("sin")(x)


def cos(x: Any) -> ir.Expr:
    """Cosine of an angle in radians."""
    return intrin.get("cos")(x)


def tan(x: Any) -> ir.Expr:
    """Tangent of an angle in radians."""
    return intrin.get("tan")(x)


def sinh(x: Any) -> ir.Expr:
    """Hyperbolic sine."""
    return intrin.get("sinh")(x)


def cosh(x: Any) -> ir.Expr:
    """Hyperbolic cosine."""
    return intrin.get("cosh")(x)


def tanh(x: Any) -> ir.Expr:
    """Hyperbolic tangent."""
    return intrin.get("tanh")(x)


def asin(x: Any) -> ir.Expr:
    """Arc sine in radians; NaN outside [-1, 1]."""
    return intrin.get("asin")(x)


def acos(x: Any) -> ir.Expr:
    """Arc cosine in radians; NaN outside [-1, 1]."""
    return intrin.get("acos")(x)


def atan(x: Any) -> ir.Expr:
    """Arc tangent in radians."""
    return intrin.get("atan")(x)


def asinh(x: Any) -> ir.Expr:
    """Inverse hyperbolic sine."""
    return intrin.get("asinh")(x)


def acosh(x: Any) -> ir.Expr:
    """Inverse hyperbolic cosine; NaN below 1."""
    return intrin.get("acosh")(x)


def atanh(x: Any) -> ir.Expr:
    """Inverse hyperbolic tangent; NaN outside [-1, 1]."""
    return intrin.get("atanh")(x)


def sqrt(x: Any) -> ir.Expr:
    """Square root; NaN below 0."""
    return intrin.get("sqrt")(x)


def rsqrt(x: Any) -> ir.Expr:
    """``1 / sqrt(x)``."""
    return intrin.get("rsqrt")(x)


def erf(x: Any) -> ir.Expr:
    """Gauss error function."""
    return intrin.get("erf")(x)


def sigmoid(x: Any) -> ir.Expr:
    """``1 / (1 + exp(-x))``."""
    return intrin.get("sigmoid")(x)


def atan2(y: Any, x: Any) -> ir.Expr:
    """Angle of the point ``(x, y)`` in radians, in [-pi, pi]."""
    return intrin.get("atan2")(y, x)


def hypot(x: Any, y: Any) -> ir.Expr:
    """``sqrt(x*x + y*y)`` without intermediate overflow."""
    return intrin.get("hypot")(x, y)


def copysign(x: Any, y: Any) -> ir.Expr:
    """The size of ``x`` with the sign of ``y``."""
    return intrin.get("copysign")(x, y)


def nextafter(x: Any, y: Any) -> ir.Expr:
    """The next value of the type after ``x`` in the direction of ``y``."""
    return intrin.get("nextafter")(x, y)


def fmod(x: Any, y: Any) -> ir.Expr:
    """The remainder of ``x / y`` with the sign of ``x``; integers: use ``%`` or ``T.truncmod``."""
    return intrin.get("fmod")(x, y)


def ldexp(x: Any, n: Any) -> ir.Expr:
    """``x * 2**n`` for an integer ``n``."""
    return intrin.get("ldexp")(x, n)


def pow(x: Any, y: Any) -> ir.Expr:
    """``x**y``.

    Integers take a constant exponent of 0 or more and multiply out, wrapping at their width.

    Raises
    ------
    TraceTypeError
        For an integer base with any other exponent.
    """
    base, exponent = as_scalar(x, "T.pow"), const_number(y)
    if element_type(base).is_float:
        return intrin.get("pow")(base, y)
    if not isinstance(exponent, int) or exponent < 0:
        if element_type(as_scalar(y, "T.pow")).is_float:
            return intrin.get("pow")(arith.multiply(base, 1.0), y)
        raise TraceTypeError(
            "T.pow of an integer needs a constant exponent >= 0; or cast the base to a float",
            user_span(),
        )
    result: ir.Expr | None = None
    while exponent:
        if exponent & 1:
            result = base if result is None else arith.multiply(result, base)
        exponent >>= 1
        base = arith.multiply(base, base) if exponent else base
    return constant(1, element_type(base)) if result is None else result


def _rounding(name: str, x: Any) -> ir.Expr:
    value = as_scalar(x, f"T.{name}")
    return value if element_type(value).is_integer else intrin.get(name)(value)


def floor(x: Any) -> ir.Expr:
    """The largest whole number not above ``x``, as a float; integers are returned as they are."""
    return _rounding("floor", x)


def ceil(x: Any) -> ir.Expr:
    """The smallest whole number not below ``x``, as a float; integers are returned as they are."""
    return _rounding("ceil", x)


def trunc(x: Any) -> ir.Expr:
    """``x`` without its fraction, as a float; integers are returned as they are."""
    return _rounding("trunc", x)


def nearbyint(x: Any) -> ir.Expr:
    """The nearest whole number, halves to even, as a float; integers are returned as they are."""
    return _rounding("nearbyint", x)


def round(x: Any, rounding_mode: str = "ties-to-even") -> ir.Expr:
    """The nearest whole number as a float; integers are returned as they are.

    Parameters
    ----------
    x : float or integer expression
    rounding_mode : {"ties-to-even", "ties-away-from-zero"}
        Where halves go.

    Raises
    ------
    TraceError
        For another rounding mode.
    """
    names = {"ties-to-even": "nearbyint", "ties-away-from-zero": "round"}
    if rounding_mode not in names:
        raise TraceError(
            f"T.round: unknown rounding mode {rounding_mode!r}; expected one of {', '.join(names)}",
            user_span(),
        )
    return _rounding(names[rounding_mode], x)


def abs(x: Any) -> ir.Expr:
    """The absolute value of a float or integer; that of the lowest integer wraps to itself."""
    value = as_scalar(x, "T.abs")
    kind = element_type(value)
    if not kind.is_integer:
        return intrin.get("fabs")(value)
    if kind.startswith("u"):
        return value
    return arith.maximum(value, arith.negate(value))


def isnan(x: Any) -> ir.Expr:
    """Whether ``x`` is NaN, as a bool; never for integers."""
    value = as_scalar(x, "T.isnan")
    return constant(False, "bool") if element_type(value).is_integer else intrin.get("isnan")(value)


def isinf(x: Any) -> ir.Expr:
    """Whether ``x`` is plus or minus infinity, as a bool; never for types without infinities."""
    value = as_scalar(x, "T.isinf")
    if _largest(element_type(value))[1] is None:
        return constant(False, "bool")
    return arith.binary("eq", intrin.get("fabs")(value), infinity(element_type(value).element))


def isfinite(x: Any) -> ir.Expr:
    """Whether ``x`` is neither infinite nor NaN, as a bool; always for integers."""
    value = as_scalar(x, "T.isfinite")
    kind = element_type(value)
    if kind.is_integer:
        return constant(True, "bool")
    if _largest(kind)[1] is None:
        return arith.logical_not(isnan(value))
    return arith.binary("lt", intrin.get("fabs")(value), infinity(kind.element))


def clamp(x: Any, lo: Any, hi: Any) -> Any:
    """``x`` limited to [``lo``, ``hi``]: ``min(max(x, lo), hi)``, so a NaN gives ``lo``."""
    return arith.minimum(arith.maximum(x, lo), hi)


def _largest(kind: dtype) -> tuple[float | None, float | None]:
    """The largest finite value of a float type and its infinity, None where it has none."""
    if not kind.is_float:
        return None, None
    numpy_type = kind.element.as_numpy()
    if numpy_type.kind == "f":
        return float(np.finfo(numpy_type).max), float("inf")
    import ml_dtypes  # only the short types need it

    info = ml_dtypes.finfo(numpy_type)
    with np.errstate(all="ignore"):
        infinite = np.isinf(np.array(np.inf).astype(numpy_type).astype(np.float64))
    return float(info.max), float("inf") if infinite else None


def infinity(dtype: AnyDType) -> ir.Expr:
    """Positive infinity of a float type.

    Raises
    ------
    TraceTypeError
        If the type has no infinity, as the integers and ``float8_e4m3fn``.
    """
    kind = _dtype(dtype)
    if _largest(kind)[1] is None:
        raise TraceTypeError(f"T.infinity: {kind} has no infinity; use T.max_value", user_span())
    return constant(float("inf"), kind)


def max_value(dtype: AnyDType) -> ir.Expr:
    """The largest finite value of a type."""
    return _extreme("T.max_value", _dtype(dtype), largest=True)


def min_value(dtype: AnyDType) -> ir.Expr:
    """The lowest finite value of a type (for floats minus the largest)."""
    return _extreme("T.min_value", _dtype(dtype), largest=False)


def _extreme(what: str, kind: dtype, largest: bool) -> ir.Expr:
    if kind.is_integer or kind.is_bool:
        return constant(int_range(kind)[largest], kind)
    highest = _largest(kind)[0]
    if highest is None:
        raise TraceTypeError(f"{what}: {kind} is no number", user_span())
    if kind.element == "float8_e8m0fnu" and not largest:
        return constant(2.0**-127, kind)  # powers of two only, none of them negative
    return constant(highest if largest else -highest, kind)


_dtype = dtype
