"""Circular functions of any argument, and their inverses.

Arguments are reduced exactly: x is multiplied by 1 / (2 pi) in pieces of 29 bits, whose products
with a float32 are exact in float64 and whose whole turns are dropped piece by piece. (The idea is
Payne and Hanek's; float64 products take the place of long integers.)
"""

from __future__ import annotations

import math

from tilelang.cpu.intrinsics.math.compare import copysign
from tilelang.cpu.intrinsics.math.ops import numeric
from tilelang.cpu.intrinsics.math.value import Value, horner, select

__all__ = ["atan2_64"]

# 1 / (2 pi) in pieces of 29 bits, the first one with weight 2^-29
_TURN = (
    0x0517CC1B,
    0x0E4E4415,
    0x053F84EA,
    0x1F47D4D3,
    0x0EE06DB1,
    0x095993C4,
    0x072083FC,
)
_ROUND64 = 1.5 * 2.0**52
_SMALL = 2.0**-12  # below, sin(x) and tan(x) are x and cos(x) is 1 in float32

# (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4 in r^2 for |r| <= pi / 4
_SIN = (-0.16666655242443085, 0.008332155644893646, -0.0001951463200384751)  # 2^-28
_COS = (0.04166664555668831, -0.0013887309469282627, 2.443241282890085e-05)  # 2^-33
_SIN_WIDE = (-0.1666666664058807, 0.008333329280512001, -0.00019839304412379684,
             2.718046447550982e-06)  # 2^-37.5 # fmt: skip
_COS_WIDE = (0.041666666647784685, -0.0013888885527439253, 2.4799904981665426e-05,
             -2.7236530413501415e-07)  # 2^-41 # fmt: skip
# (atan(t) - t) / t^3 in t^2 for 0 <= t <= sqrt(2) - 1, error 2^-40
_ATAN = (-0.3333333329524248, 0.19999994264676949, -0.14285421038428647, 0.11103954616080423,
         -0.08996369326000048, 0.06989019158195174, -0.03788441966109335)  # fmt: skip


def _reduce(x: Value) -> tuple[Value, Value]:
    """Quadrant (low bits of an int64) and rest in [-pi/4, pi/4] (float64) of float32 ``x``."""
    wide = x.to("float64")
    parts = []
    for position, piece in enumerate(_TURN):
        turns = wide * (piece * 2.0 ** (-29 * (position + 1)))
        # The first pieces may count more turns than the magic constant can round.
        whole = turns.intrinsic("nearbyint") if position < 3 else turns + _ROUND64 - _ROUND64
        parts.append(turns - whole)
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    shifted = total * 4.0 + _ROUND64
    # Subtracting the quadrant first and adding from large to small keeps each step exact or its
    # error small beside the rest, even where the rest is tiny.
    rest = parts[0] - (shifted - _ROUND64) * 0.25
    for part in parts[1:]:
        rest = rest + part
    return shifted.bits(), rest * (2.0 * math.pi)


def _sin_cos(r: Value) -> tuple[Value, Value]:
    wide = r.dtype == "float64"
    square = r * r
    sine = horner(square, _SIN_WIDE if wide else _SIN) * (square * r) + r
    cosine = horner(square, _COS_WIDE if wide else _COS) * (square * square)
    return sine, (cosine - square * 0.5) + 1.0


def _sine_at(x: Value, offset: int) -> Value:
    """The sine, ``offset`` quadrants further on."""
    quadrant, rest = _reduce(x)
    sine, cosine = _sin_cos(rest.to("float32"))
    quadrant = quadrant.to("int32") + offset if offset else quadrant.to("int32")
    result = select((quadrant & 1).eq(0), sine, cosine)
    return (result.bits() ^ ((quadrant & 2) << 30)).reinterpret("float32")


@numeric("sin")
def sin(x: Value) -> Value:
    """Sine of an angle in radians."""
    if x.dtype != "float32":
        return x.libm("sin")
    return select(x.magnitude() < _SMALL, x, _sine_at(x, 0))


@numeric("cos")
def cos(x: Value) -> Value:
    """Cosine of an angle in radians."""
    return _sine_at(x, 1) if x.dtype == "float32" else x.libm("cos")


@numeric("tan")
def tan(x: Value) -> Value:
    """Tangent of an angle in radians."""
    if x.dtype != "float32":
        return x.libm("tan")
    quadrant, rest = _reduce(x)
    sine, cosine = _sin_cos(rest)
    odd = (quadrant & 1).ne(0)
    ratio = select(odd, cosine, sine) / select(odd, sine.const(0.0) - sine, cosine)
    return select(x.magnitude() < _SMALL, x, ratio.to("float32"))


def atan2_64(y: Value, x: Value) -> Value:
    """Angle in [0, pi] of the point (x, abs(y)) for float64 values that came from float32."""
    height, width = _finite(y.magnitude()), _finite(x.magnitude())
    steep = height > width
    low, high = select(steep, width, height), select(steep, height, width)
    # Beyond tan(pi / 8): atan(t) = pi / 4 + atan((t - 1) / (t + 1)).
    far = low > high * (math.sqrt(2) - 1)
    divisor = select(far, low + high, select(high.eq(0.0), 1.0, high))
    t = select(far, low - high, low) / divisor
    square = t * t
    angle = horner(square, _ATAN) * (square * t) + t + select(far, t.const(math.pi / 4), 0.0)
    angle = select(steep, math.pi / 2 - angle, angle)
    return select(x.bits() < 0, math.pi - angle, angle)


def _finite(size: Value) -> Value:
    """Infinity as a number so large that any float32 vanishes beside it."""
    return select(size.eq(math.inf), 2.0**600, size)


@numeric("atan2")
def atan2(y: Value, x: Value) -> Value:
    """Angle of the point (x, y); quadrants and signed zeros as in C."""
    if x.dtype != "float32":
        return y.libm("atan2", x)
    return copysign(atan2_64(y.to("float64"), x.to("float64")).to("float32"), y)


@numeric("atan")
def atan(x: Value) -> Value:
    """Inverse tangent."""
    if x.dtype != "float32":
        return x.libm("atan")
    wide = x.to("float64")
    return copysign(atan2_64(wide, wide.const(1.0)).to("float32"), x)


def _leg(x: Value) -> Value:
    """sqrt(1 - x^2)."""
    return ((1.0 - x) * (x + 1.0)).intrinsic("sqrt")


@numeric("asin")
def asin(x: Value) -> Value:
    """Inverse sine; NaN beyond 1."""
    if x.dtype != "float32":
        return x.libm("asin")
    wide = x.to("float64")
    return copysign(atan2_64(wide, _leg(wide)).to("float32"), x)


@numeric("acos")
def acos(x: Value) -> Value:
    """Inverse cosine; NaN beyond 1."""
    if x.dtype != "float32":
        return x.libm("acos")
    wide = x.to("float64")
    return atan2_64(_leg(wide), wide).to("float32")
