"""Logarithms and the inverse hyperbolic functions.

``log`` of float32 works in float32; the others work in float64 and round once. With m in
[sqrt(1/2), sqrt(2)) and s = (m - 1) / (m + 1), log(x) = k log(2) + log((1 + s) / (1 - s)).
"""

from __future__ import annotations

import math

from tilelang.cpu.intrinsics.math.compare import copysign
from tilelang.cpu.intrinsics.math.ops import numeric
from tilelang.cpu.intrinsics.math.value import Value, horner, select

__all__ = ["log64"]

_LN2_HIGH = 355 / 512
_LN2_LOW = math.log(2) - 355 / 512
_SQRT_HALF32 = 0x3F3504F3  # bits of sqrt(1/2)
_SQRT_HALF64 = 0x3FE6A09E667F3BCD

# (log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2), error 2^-30.3
_LOG = (0.3333331346511841, -0.25000008940696716, 0.20002123713493347, -0.16668005287647247,
        0.14219452440738678, -0.12405338138341904, 0.11888699978590012, -0.11677528917789459,
        0.06747741252183914)  # fmt: skip
# (log((1 + s) / (1 - s)) - 2 s) / s^3 in s^2 for the same interval, error 2^-44.9
_LOG_WIDE = (0.6666666667629355, 0.3999999543364799, 0.28572131064172906, 0.22175198988236472,
             0.19599380550793238)  # fmt: skip


def _domain(x: Value, result: Value) -> Value:
    """Log of 0, negative numbers, infinity and NaN."""
    result = select(x.eq(0.0), -math.inf, select(x < 0.0, math.nan, result))
    return select(x < math.inf, result, x)


def _log32(x: Value) -> Value:
    small = x < 2.0**-126
    bits = select(small, x * 2.0**23, x).bits() - _SQRT_HALF32
    exponent = (bits >> 23).to("float32") - select(small, x.const(23.0), 0.0)
    f = ((bits & 0x7FFFFF) + _SQRT_HALF32).reinterpret("float32") - 1.0
    square = f * f
    tail = horner(f, _LOG) * (square * f) + exponent * _LN2_LOW
    result = ((tail - square * 0.5) + f) + exponent * _LN2_HIGH
    return _domain(x, result)


def _split64(x: Value) -> tuple[Value, Value]:
    """Exponent (float64) and mantissa in [sqrt(1/2), sqrt(2)) of a positive normal float64."""
    bits = x.bits() - _SQRT_HALF64
    mantissa = ((bits & ((1 << 52) - 1)) + _SQRT_HALF64).reinterpret("float64")
    return (bits >> 52).to("int32").to("float64"), mantissa


def _log_of_ratio(numerator: Value, denominator: Value) -> Value:
    """log((1 + s) / (1 - s)) for s = numerator / denominator."""
    s = numerator / denominator
    square = s * s
    return horner(square, _LOG_WIDE) * (square * s) + (s + s)


def log64(x: Value) -> Value:
    """log of a positive, normal, finite float64 with relative error below 2^-40."""
    exponent, mantissa = _split64(x)
    return exponent * math.log(2) + _log_of_ratio(mantissa - 1.0, mantissa + 1.0)


def _log1p64(x: Value) -> Value:
    """log(1 + x) for ``-1 < x < 2**1000`` with relative error below 2^-40."""
    # Near 0, 1 + x would lose bits of x; there the exponent is 0 and x itself is mantissa - 1.
    small = x.magnitude() < 0.25
    exponent, mantissa = _split64(x + 1.0)
    f = select(small, x, mantissa - 1.0)
    return select(small, 0.0, exponent) * math.log(2) + _log_of_ratio(f, f + 2.0)


@numeric("log")
def log(x: Value) -> Value:
    """Natural logarithm."""
    return _log32(x) if x.dtype == "float32" else x.libm("log")


@numeric("log2")
def log2(x: Value) -> Value:
    """Logarithm to base 2."""
    return _through_log64(x, "log2", 1.0, math.log2(math.e))


@numeric("log10")
def log10(x: Value) -> Value:
    """Logarithm to base 10."""
    return _through_log64(x, "log10", math.log10(2), math.log10(math.e))


def _through_log64(x: Value, name: str, log_of_2: float, scale: float) -> Value:
    if x.dtype != "float32":
        return x.libm(name)
    exponent, mantissa = _split64(x.to("float64"))
    wide = exponent * log_of_2 + _log_of_ratio(mantissa - 1.0, mantissa + 1.0) * scale
    return _domain(x, wide.to("float32"))


@numeric("log1p")
def log1p(x: Value) -> Value:
    """log(1 + x), accurate for small ``x``."""
    if x.dtype != "float32":
        return x.libm("log1p")
    result = _log1p64(x.to("float64")).to("float32")
    result = select(x.eq(-1.0), -math.inf, select(x < -1.0, math.nan, result))
    return select((x < math.inf) & x.ne(0.0), result, x)


@numeric("asinh")
def asinh(x: Value) -> Value:
    """Inverse hyperbolic sine."""
    if x.dtype != "float32":
        return x.libm("asinh")
    wide = x.magnitude().to("float64")
    square = wide * wide
    root = (square + 1.0).intrinsic("sqrt")
    result = _log1p64(wide + square / (root + 1.0)).to("float32")
    return copysign(select(x.magnitude() < math.inf, result, x), x)


@numeric("acosh")
def acosh(x: Value) -> Value:
    """Inverse hyperbolic cosine; NaN below 1."""
    if x.dtype != "float32":
        return x.libm("acosh")
    above = x.to("float64") - 1.0
    root = (above * (above + 2.0)).intrinsic("sqrt")
    result = _log1p64(above + root).to("float32")
    return select(x < 1.0, math.nan, select(x < math.inf, result, x))


@numeric("atanh")
def atanh(x: Value) -> Value:
    """Inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond."""
    if x.dtype != "float32":
        return x.libm("atanh")
    wide = x.magnitude().to("float64")
    result = (_log1p64((wide + wide) / (1.0 - wide)) * 0.5).to("float32")
    size = x.magnitude()
    result = select(size < 1.0, result, select(size.eq(1.0), size.const(math.inf), math.nan))
    return copysign(result, x)
