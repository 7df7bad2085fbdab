"""Exponentials and what follows from them: exp, exp2, exp10, sigmoid, tanh, sinh, cosh.

Polynomials are minimax fits (Remez) for the relative error of the function, made for this file.
"""

from __future__ import annotations

import math

from tilelang.cpu.intrinsics.math.compare import copysign
from tilelang.cpu.intrinsics.math.ops import numeric
from tilelang.cpu.intrinsics.math.value import Value, horner, select

__all__ = ["exp32", "exp32_moderate", "exp64"]

# Adding 1.5 * 2^23 (2^52 for float64) rounds to an integer, which then sits in the low bits. With
# the exponent bias added as well, these bits shifted left are a power of two.
_ROUND32, _ROUND64 = 1.5 * 2.0**23 + 127, 1.5 * 2.0**52
_LN2_HIGH = 355 / 512  # 9 bits, so that multiples up to 2^15 are exact in float32
_LN2_LOW = math.log(2) - 355 / 512
# 29 bits, and the rest of ln(2)
_LN2_HIGH64 = float.fromhex("0x1.62e42fep-1")
_LN2_LOW64 = float.fromhex("0x1.f473de6af278fp-30")
_LOG10_2_HIGH = 1233 / 4096
_LOG10_2_LOW = math.log10(2) - 1233 / 4096

# (exp(r) - 1) / r for |r| <= ln(2), error 2^-30.2
_EXP = (1.0, 0.5, 0.1666668951511383, 0.04166683554649353, 0.008331837132573128,
        0.0013880871701985598, 0.00020193630189169198, 2.596571903268341e-05)  # fmt: skip
# the same for |r| <= ln(2) / 2, error 2^-28.5
_EXP_NEAR = (1.0, 0.5000000596046448, 0.16666364669799805, 0.041664768010377884,
             0.008379107341170311, 0.0014061618130654097)  # fmt: skip
# (2^r - 1) / r for |r| <= 1, error 2^-30.2
_EXP2 = (0.6931471824645996, 0.24022650718688965, 0.05550418794155121, 0.009618168696761131,
         0.0013331164373084903, 0.0001539463846711442, 1.5523606634815224e-05,
         1.3835792742611375e-06)  # fmt: skip
# (10^r - 1) / r for |r| <= log10(2), error 2^-30.2
_EXP10 = (2.3025851249694824, 2.650949001312256, 2.034681558609009, 1.1712599992752075,
          0.5392858982086182, 0.20687608420848846, 0.06929992139339447,
          0.02051873318850994)  # fmt: skip
# (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2, error 2^-39.7
_EXP_WIDE = (0.5000000000428517, 0.16666666784795228, 0.04166666439824951, 0.00833328170501229,
             0.0013889197755502553, 0.00019909006642479667, 2.470819122984995e-05)  # fmt: skip
# (tanh(x) - x) / x^3 in x^2 for |x| <= 0.625, error 2^-27.8
_TANH = (-0.3333328068256378, 0.13331441581249237, -0.05373971536755562, 0.02063908241689205,
         -0.0057049826718866825)  # fmt: skip
# (sinh(x) - x) / x^3 in x^2 for |x| <= 1, error 2^-34
_SINH = (0.16666666490753648, 0.008333350562281098, 0.00019836057264545156, 2.817565075629344e-06)


def _clamp(x: Value, low: float, high: float) -> Value:
    """``x`` within limits; NaN stays NaN. Each step is one min or max instruction."""
    raised = select(x < low, low, x)
    return select(raised > high, high, raised)


def _power32(
    x: Value, coefficients: tuple[float, ...], per_square: float, high: float, low: float
) -> Value:
    """``base ** x`` as ``4 ** m * base ** r`` with an integer m and ``r = x - 2 m log(2)``.

    ``per_square`` is m per unit of x, ``high + low`` twice the logarithm of 2. Multiplying twice
    by ``2 ** m`` reaches subnormal results, rounded once, and infinity.
    """
    shifted = x * per_square + _ROUND32
    m = shifted - _ROUND32
    r = (x - m * high) - m * low if low else x - m * high
    scale = (shifted.bits() << 23).reinterpret("float32")
    return (horner(r, coefficients) * r + 1.0) * scale * scale


def exp32(x: Value) -> Value:
    """exp of float32 for any argument."""
    bounded = _clamp(x, -104.0, 89.0)
    return _power32(bounded, _EXP, math.log2(math.e) / 2, 2 * _LN2_HIGH, 2 * _LN2_LOW)


def exp32_moderate(x: Value) -> Value:
    """exp of float32 for ``|x| <= 80``, where one power of two suffices."""
    shifted = x * math.log2(math.e) + _ROUND32
    n = shifted - _ROUND32
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    scale = (shifted.bits() << 23).reinterpret("float32")
    return (horner(r, _EXP_NEAR) * r + 1.0) * scale


def exp64(x: Value) -> Value:
    """exp of float64 with relative error below 2^-38, for ``|x| < 700``."""
    shifted = x * math.log2(math.e) + _ROUND64
    n = shifted - _ROUND64
    r = (x - n * _LN2_HIGH64) - n * _LN2_LOW64
    power = (horner(r, _EXP_WIDE) * (r * r) + r) + 1.0
    return power * ((shifted.bits() << 52) + (1023 << 52)).reinterpret("float64")


@numeric("exp")
def exp(x: Value) -> Value:
    """e to the power ``x``."""
    return exp32(x) if x.dtype == "float32" else x.libm("exp")


@numeric("exp2")
def exp2(x: Value) -> Value:
    """2 to the power ``x``."""
    if x.dtype != "float32":
        return x.libm("exp2")
    return _power32(_clamp(x, -151.0, 129.0), _EXP2, 0.5, 2.0, 0.0)


@numeric("exp10")
def exp10(x: Value) -> Value:
    """10 to the power ``x``."""
    if x.dtype != "float32":
        return x.const(10.0).libm("pow", x)
    bounded = _clamp(x, -46.0, 39.0)
    return _power32(bounded, _EXP10, math.log2(10) / 2, 2 * _LOG10_2_HIGH, 2 * _LOG10_2_LOW)


@numeric("sigmoid")
def sigmoid(x: Value) -> Value:
    """``1 / (1 + exp(-x))``, accurate in both tails."""
    if x.dtype != "float32":
        small = (x.const(0.0) - x.magnitude()).libm("exp")
    else:
        small = exp32(x.const(0.0) - x.magnitude())
    return select(x < 0.0, small, 1.0) / (small + 1.0)


@numeric("tanh")
def tanh(x: Value) -> Value:
    """Hyperbolic tangent."""
    if x.dtype != "float32":
        return x.libm("tanh")
    size = x.magnitude()
    size = select(size > 10.0, 10.0, size)  # from here on the result is 1
    square = size * size
    near = horner(square, _TANH) * square * size + size
    far = 1.0 - 2.0 / (exp32_moderate(size + size) + 1.0)
    return copysign(select(size < 0.625, near, far), x)


@numeric("sinh")
def sinh(x: Value) -> Value:
    """Hyperbolic sine."""
    if x.dtype != "float32":
        return x.libm("sinh")
    wide = x.to("float64")
    square = wide * wide
    near = horner(square, _SINH) * square * wide + wide
    power = exp64(_clamp(wide, -100.0, 100.0))
    far = (power - 1.0 / power) * 0.5
    return select(wide.magnitude() < 1.0, near, far).to("float32")


@numeric("cosh")
def cosh(x: Value) -> Value:
    """Hyperbolic cosine."""
    if x.dtype != "float32":
        return x.libm("cosh")
    power = exp64(_clamp(x.to("float64"), -100.0, 100.0))
    return ((power + 1.0 / power) * 0.5).to("float32")
