"""Conversions between float32, float64 and integers that hardware or LLVM leaves undefined."""

from __future__ import annotations

from tilelang.cpu.intrinsics.math.integer import width
from tilelang.cpu.intrinsics.math.ops import numeric
from tilelang.cpu.intrinsics.math.value import Value, select

__all__ = ["float_to_int", "odd_float32"]

_MANTISSA = {"float32": 24, "float64": 53}


@numeric("float_to_int", typed=True)
def float_to_int(dtype: str, x: Value) -> Value:
    """Truncate toward zero; out of range gives the nearest limit, NaN gives 0."""
    bits, unsigned = width(dtype), dtype.startswith("u")
    low = 0 if unsigned else -(1 << (bits - 1))
    high = (1 << (bits if unsigned else bits - 1)) - 1
    number = select(x.ne(x), 0.0, x)
    if bits < _MANTISSA[x.dtype]:
        # Both limits are floats, so clamping first leaves one conversion.
        bounded = select(number > low, select(number < high, number, float(high)), float(low))
        carrier = "int32" if bits < 32 else dtype
        return bounded.to(carrier).to(dtype)
    inside = select(number > low, number.to(dtype), low)
    return select(number >= float(high + 1), high, inside)


@numeric("odd_float32")
def odd_float32(x: Value) -> Value:
    """float64 to float32; inexact results go to the neighbour whose last bit is odd.

    Rounding the result to nearest in a format that is shorter by two bits or more equals rounding
    ``x`` once (S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    near = x.to("float32")
    back = near.to("float64")
    bits = near.bits()
    # Toward zero first: one step down in magnitude where rounding went up.
    up = back.magnitude() > x.magnitude()
    truncated = select(up, bits - 1, bits)
    inexact = back.ne(x) & x.eq(x)
    return select(inexact, truncated | 1, bits).reinterpret("float32")


@numeric("sticky_float64")
def sticky_float64(x: Value) -> Value:
    """A 64-bit integer as the float64 that rounds to a short float as the integer itself would.

    From 2^53 on, the low 11 bits are replaced by one sticky bit, which makes the conversion exact.
    """
    low = x & 0x7FF
    sticky = select(low.ne(0), (x ^ low) | 0x800, x)
    bound = 1 << 53
    large = x >= bound if x.dtype == "uint64" else (x >= bound) | (x <= -bound)
    return select(large, sticky, x).to("float64")
