"""Numbers of every dtype as numpy arrays, and the conversions between them.

A value of dtype ``d`` is a numpy scalar or array of :attr:`Dtype.carrier`. Integers narrower than
a byte are carried by int8 or uint8 and kept in range by :func:`wrap`; all other dtypes are carried
by numpy's or ml_dtypes' type of the same bits.

Conversions follow the numeric contract: integers wrap, float to integer truncates, saturates and
maps NaN to 0, float to a narrower float rounds once to nearest even and overflows as torch does
for that dtype.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilelang.errors import UnsupportedError

__all__ = ["Dtype", "cast", "dtype_named", "from_bits", "round_float", "to_bits", "wrap"]

_NAME = re.compile(
    r"(bool|handle|u?int|b?float)(\d*)((?:_e\dm\d(?:b11)?(?:fnuz|fnu|fn)?)?)(?:x(\d+))?"
)


@dataclass(frozen=True)
class Dtype:
    """A dtype: ``kind`` is ``i`` (signed), ``u`` (unsigned), ``b`` (bool) or ``f`` (float)."""

    name: str
    kind: str
    bits: int
    lanes: int
    carrier: np.dtype

    @property
    def scalar(self) -> Dtype:
        """The dtype of one lane."""
        return dtype_named(self.name.rpartition("x")[0]) if self.lanes > 1 else self

    @property
    def is_int(self) -> bool:
        """Whether this is a signed or unsigned integer."""
        return self.kind in "iu"

    @property
    def packed(self) -> bool:
        """Whether two elements share a byte in memory."""
        return self.bits == 4

    @property
    def itemsize(self) -> int:
        """Bytes one lane takes in a numpy array."""
        return self.carrier.itemsize

    @property
    def memory_bits(self) -> int:
        """Bits one lane takes in memory."""
        return 4 if self.packed else 8 * self.itemsize

    @property
    def vector_shape(self) -> tuple[int, ...]:
        """The lane axis of a vector value, () for a scalar dtype."""
        return (self.lanes,) if self.lanes > 1 else ()


@cache
def dtype_named(name: str) -> Dtype:
    """The dtype called ``name``, such as ``"bfloat16"``, ``"uint4"`` or ``"float32x4"``."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise UnsupportedError(f"the interpreter has no values of dtype {name}")
    word, digits, variant, lanes = match.groups()
    bits = int(digits or {"bool": 8, "handle": 64}.get(word, 32))
    kind = {"bool": "b", "handle": "u", "int": "i", "uint": "u"}.get(word, "f")
    return Dtype(name, kind, bits, int(lanes or 1), _carrier(word, kind, bits, variant))


def _carrier(word: str, kind: str, bits: int, variant: str) -> np.dtype:
    if kind == "b":
        return np.dtype(np.bool_)
    if kind in "iu":
        return np.dtype(f"{kind}{max(bits, 8) // 8}")
    if word == "float" and not variant:
        return np.dtype(f"f{bits // 8}")
    import ml_dtypes  # only the short floats need it

    # The name without suffix means the finite-only format, as torch has it.
    name = "float8_e4m3fn" if variant == "_e4m3" else f"{word}{bits}{variant}"
    return np.dtype(getattr(ml_dtypes, name))


def wrap(value: Any, dtype: Dtype) -> Any:
    """Reduce carriers of sub-byte integers modulo 2^bits; other dtypes wrap in their carrier."""
    if not dtype.is_int or dtype.bits >= 8:
        return value
    low = value & dtype.carrier.type((1 << dtype.bits) - 1)
    if dtype.kind == "u":
        return low
    sign = dtype.carrier.type(1 << (dtype.bits - 1))
    return (low ^ sign) - sign


def cast(value: Any, source: Dtype, target: Dtype) -> Any:
    """Convert ``value`` of dtype ``source`` to ``target``."""
    if source.scalar.name == target.scalar.name:
        return value
    value = np.asarray(value)[()]
    if target.kind == "b":
        return value != source.carrier.type(0)
    if target.kind == "f":
        return round_float(value, target)
    if source.kind == "f":
        return _saturate(value, target)
    return wrap(value.astype(target.carrier), target)


def _saturate(value: Any, target: Dtype) -> Any:
    """Float to integer: toward zero, clamped to the range, NaN to 0."""
    wide = np.trunc(value.astype(np.float64))
    unsigned = target.kind == "u"
    low = 0 if unsigned else -(1 << (target.bits - 1))
    high = (1 << (target.bits - (not unsigned))) - 1
    # float(high) may round up to the first integer outside, so clamped lanes take `high` itself.
    fits = (wide > float(low)) & (wide < float(high))
    clamped = np.where(wide >= float(high), target.carrier.type(high), target.carrier.type(low))
    clamped = np.where(np.isnan(wide), target.carrier.type(0), clamped)
    return np.where(fits, np.where(fits, wide, 0.0).astype(target.carrier), clamped)[()]


def round_float(value: Any, target: Dtype) -> Any:
    """Round a number of any carrier once, to nearest even, to float dtype ``target``."""
    value = np.asarray(value)[()]
    if value.dtype == target.carrier:
        return value
    if target.bits >= 32:
        return value.astype(target.carrier)
    if value.dtype.kind in "iub":
        value = _sticky_float64(value)
    elif value.dtype != np.float64 and value.dtype != np.float32:
        value = value.astype(np.float32)  # exact: every short float is a float32
    if target.bits == 16 and target.carrier.kind == "f":
        return value.astype(np.float16)
    if value.dtype == np.float64:
        value = _odd_float32(value)
    if target.name == "float8_e8m0fnu":
        return _round_power_of_two(value, target)
    if target.carrier.name == "float8_e4m3fn":
        value = np.where(np.isnan(value), value, np.clip(value, -448.0, 448.0))[()]
    return value.astype(target.carrier)


def _sticky_float64(value: Any) -> Any:
    """An integer as float64 that rounds to short floats as the integer itself would.

    Beyond 2^53 the low bits are replaced by a sticky bit, so that the conversion is exact.
    """
    if value.dtype.itemsize < 8:
        return value.astype(np.float64)
    one = value.dtype.type(1)
    low = value & value.dtype.type(0x7FF)
    high = value - low
    large = np.abs(value.astype(np.float64)) >= 2.0**53
    sticky = np.where(low != 0, high | (one << value.dtype.type(11)), high)
    return np.where(large, sticky, value).astype(np.float64)[()]


def _odd_float32(value: Any) -> Any:
    """float64 to float32, inexact results to the neighbour with an odd last bit.

    Rounding the result to nearest even in a format at least two bits shorter then equals
    rounding ``value`` once.
    """
    near = np.asarray(value.astype(np.float32))
    inexact = (near.astype(np.float64) != value) & ~np.isnan(value) & np.isfinite(near)
    even = (near.view(np.uint32) & np.uint32(1)) == 0
    direction = np.where(value > near.astype(np.float64), np.inf, -np.inf).astype(np.float32)
    return np.where(inexact & even, np.nextafter(near, direction), near)[()]


def _round_power_of_two(value: Any, target: Dtype) -> Any:
    """float32 to the exponent-only format: the sign is dropped, ties go up, infinity is NaN."""
    bits = np.asarray(value).view(np.uint32)
    exponent, mantissa = bits >> np.uint32(23) & np.uint32(255), bits & np.uint32(0x7FFFFF)
    half = np.uint32(0x400000)
    up = np.where(exponent == 0, mantissa > half, mantissa >= half) & (exponent < 255)
    return (exponent + up).astype(np.uint8).view(target.carrier)[()]


def to_bits(value: Any, dtype: Dtype) -> Any:
    """The bits of ``value`` as an unsigned integer of the same width."""
    value = np.asarray(value, order="C")
    if dtype.is_int and dtype.bits < 8:
        return value.astype(np.uint8)[()] & np.uint8((1 << dtype.bits) - 1)
    return value.view(f"u{dtype.itemsize}").reshape(value.shape)[()]


def from_bits(bits: Any, dtype: Dtype) -> Any:
    """The value of ``dtype`` with the given bits (an unsigned integer of the same width)."""
    bits = np.asarray(bits, order="C")
    if dtype.is_int and dtype.bits < 8:
        return wrap(bits.astype(dtype.carrier), dtype)[()]
    return bits.astype(f"u{dtype.itemsize}").view(dtype.carrier).reshape(bits.shape)[()]
