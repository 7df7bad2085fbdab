"""Conversions between float32, float64 and integers that hardware or LLVM leaves undefined."""

from __future__ import annotations

from functools import partial

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


def _to_nibble(low: int, high: int, x: Value) -> Value:
    """Truncate and saturate to a 4-bit range, as int32."""
    number = select(x.ne(x), 0.0, x)
    return select(number > low, select(number < high, number, float(high)), float(low)).to("int32")


numeric("float_to_nibble.int4")(partial(_to_nibble, -8, 7))
numeric("float_to_nibble.uint4")(partial(_to_nibble, 0, 15))


def _wrap_nibble(signed: bool, x: Value) -> Value:
    """The low 4 bits of an int32 as an integer in a byte."""
    low = x & 15
    return ((low ^ 8) - 8).to("int8") if signed else low.to("uint8")


numeric("wrap.int4")(partial(_wrap_nibble, True))
numeric("wrap.uint4")(partial(_wrap_nibble, False))


@numeric("nibble.get")
def nibble_get(byte: Value, index: Value) -> Value:
    """Element ``index`` (its parity) of a byte that holds two, as int32; even ones are low."""
    return (byte.to("int32") >> ((index & 1) << 2).to("int32")) & 15


@numeric("nibble.set")
def nibble_set(byte: Value, index: Value, element: Value) -> Value:
    """``byte`` with the element of parity ``index`` replaced."""
    shift = ((index & 1) << 2).to("int32")
    kept = byte.to("int32") & ~(shift.const(15) << shift)
    return (kept | ((element & 15) << shift)).to("uint8")


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
