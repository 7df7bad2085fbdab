"""Rounding to integral values, remainders, and scaling by powers of two."""

from __future__ import annotations

from tilelang.cpu.intrinsics.math.compare import copysign
from tilelang.cpu.intrinsics.math.ops import numeric
from tilelang.cpu.intrinsics.math.value import Value, select

__all__: list[str] = []

_BELOW_HALF = {"float32": 0.5 - 2.0**-25, "float64": 0.5 - 2.0**-54}


@numeric("nearbyint")
def nearbyint(x: Value) -> Value:
    """Nearest integral value, ties to even."""
    return x.intrinsic("nearbyint")


@numeric("round")
def round_away(x: Value) -> Value:
    """Nearest integral value, ties away from zero.

    Adding the number just below one half, instead of one half, keeps the sum from rounding up to
    the next integer.
    """
    half = copysign(x.const(_BELOW_HALF[x.dtype]), x)
    return (x + half).intrinsic("trunc")


@numeric("fmod")
def fmod(x: Value, y: Value) -> Value:
    """Exact remainder with the sign of ``x``; by the C library, lane by lane."""
    return x.libm("fmodf" if x.dtype == "float32" else "fmod", y)


def _power_of_two(exponent: Value) -> Value:
    """``2 ** exponent`` as float64, for int32 exponents from -1022 to 1023."""
    return ((exponent.to("int64") + 1023) << 52).reinterpret("float64")


def _clamp(n: Value, limit: int) -> Value:
    return select(n > limit, limit, select(n < -limit, -limit, n))


@numeric("ldexp")
def ldexp(x: Value, n: Value) -> Value:
    """``x * 2 ** n``, rounded once."""
    if x.dtype == "float32":
        # In float64 the product is exact: beyond 300 every float32 overflows or vanishes.
        return (x.to("float64") * _power_of_two(_clamp(n, 300))).to("float32")
    return x.libm("ldexp", n)
