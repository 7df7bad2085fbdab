"""Exponentials and what follows from them: exp, exp2, exp10, sigmoid, tanh, sinh, cosh.

Polynomials are minimax fits (Remez) for the relative error of the function, made for this file.
"""

from __future__ import annotations

import math

from tilelang.cpu.intrinsics.math.compare import copysign
from tilelang.cpu.intrinsics.math.ops import numeric
from tilelang.cpu.intrinsics.math.value import Value, horner, select

__all__ = ["exp32", "exp64"]

# Adding 1.5 * 2^23 (2^52 for float64) rounds to an integer, which then sits in the low bits.
_ROUND32, _ROUND64 = 1.5 * 2.0**23, 1.5 * 2.0**52
_LN2_HIGH = 355 / 512  # 9 bits, so that multiples up to 2^15 are exact in float32
_LN2_LOW = math.log(2) - 355 / 512
# 29 bits, and the rest of ln(2)
_LN2_HIGH64 = float.fromhex("0x1.62e42fep-1")
_LN2_LOW64 = float.fromhex("0x1.f473de6af278fp-30")
_LOG10_2_HIGH = 1233 / 4096
_LOG10_2_LOW = math.log10(2) - 1233 / 4096

# (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2, error 2^-28.3
_EXP = (0.4999999403953552, 0.1666652113199234, 0.04166838899254799, 0.00836874544620514,
        0.0013814541744068265)  # fmt: skip
# the same for float64 results that are rounded to float32 afterwards, error 2^-39.7
_EXP_WIDE = (0.5000000000428517, 0.16666666784795228, 0.04166666439824951, 0.00833328170501229,
             0.0013889197755502553, 0.00019909006642479667, 2.470819122984995e-05)  # fmt: skip
# (2^r - 1) / r for |r| <= 1/2, error 2^-28.5
_EXP2 = (0.6931472420692444, 0.24022652208805084, 0.055503103882074356, 0.009617691859602928,
         0.0013406705111265182, 0.0001559485390316695)  # fmt: skip
# (10^r - 1) / r for |r| <= log10(2) / 2, error 2^-28.5
_EXP10 = (2.3025851249694824, 2.650949239730835, 2.034641742706299, 1.1712018251419067,
          0.5423457026481628, 0.20957015454769135)  # fmt: skip
# (tanh(x) - x) / x^3 in x^2 for |x| <= 0.625, error 2^-27.8
_TANH = (-0.3333328068256378, 0.13331441581249237, -0.05373971536755562, 0.02063908241689205,
         -0.0057049826718866825)  # fmt: skip
# (sinh(x) - x) / x^3 in x^2 for |x| <= 1, error 2^-34
_SINH = (0.16666666490753648, 0.008333350562281098, 0.00019836057264545156, 2.817565075629344e-06)


def _clamp(x: Value, low: float, high: float) -> Value:
    """``x`` within limits; NaN stays NaN."""
    return select(x > high, high, select(x < low, low, x))


def _scale32(x: Value, shifted: Value, bits: int) -> Value:
    """``x * 2 ** n`` for the integer in the low bits of ``shifted``, rounded once.

    Two factors, because one float32 cannot hold the powers needed for subnormal results.
    """
    n = shifted.bits() - bits
    half = n >> 1
    first = ((half + 127) << 23).reinterpret("float32")
    second = (((n - half) + 127) << 23).reinterpret("float32")
    return x * first * second


_ROUND32_BITS = 0x4B400000  # the bits of _ROUND32


def exp32(x: Value) -> Value:
    """exp of float32 for any argument, below 1 ulp."""
    bounded = _clamp(x, -104.0, 89.0)
    shifted = bounded * math.log2(math.e) + _ROUND32
    n = shifted - _ROUND32
    r = (bounded - n * _LN2_HIGH) - n * _LN2_LOW
    power = (horner(r, _EXP) * (r * r) + r) + 1.0
    return _scale32(power, shifted, _ROUND32_BITS)


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
    bounded = _clamp(x, -151.0, 129.0)
    shifted = bounded + _ROUND32
    r = bounded - (shifted - _ROUND32)
    return _scale32(horner(r, _EXP2) * r + 1.0, shifted, _ROUND32_BITS)


@numeric("exp10")
def exp10(x: Value) -> Value:
    """10 to the power ``x``."""
    if x.dtype != "float32":
        return x.const(10.0).libm("pow", x)
    bounded = _clamp(x, -46.0, 39.0)
    shifted = bounded * math.log2(10) + _ROUND32
    n = shifted - _ROUND32
    r = (bounded - n * _LOG10_2_HIGH) - n * _LOG10_2_LOW
    return _scale32(horner(r, _EXP10) * r + 1.0, shifted, _ROUND32_BITS)


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
    square = x * x
    near = horner(square, _TANH) * square * x + x
    far = 1.0 - 2.0 / (exp32(size + size) + 1.0)
    return select(size < 0.625, near, copysign(far, x))


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
