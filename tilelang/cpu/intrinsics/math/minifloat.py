"""Floats of 4 to 16 bits as integers: decode to float32, encode from float32, round in float32.

All formats but float8_e8m0fnu are sign-magnitude with ``exponent`` and ``mantissa`` bits. What
they do at the top differs: infinities (``ieee``), a single NaN code (``fn``), NaN in place of minus
zero (``fnuz``), or no special values at all. Overflow goes where torch and, for formats that torch
lacks, ml_dtypes send it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tilelang.cpu.intrinsics.math.ops import numeric
from tilelang.cpu.intrinsics.math.value import Value, select

__all__ = ["FORMATS", "Format", "storage_dtype"]

_F32_INF = 0x7F800000
_F32_NAN = 0x7FC00000


@dataclass(frozen=True)
class Format:
    """A narrow float format.

    Parameters
    ----------
    exponent, mantissa, bias : int
        Field widths and exponent bias.
    overflow : int
        Magnitude code of results beyond the largest finite value, and of infinity.
    nan : int
        Code of NaN (all bits).
    special : int, optional
        Smallest magnitude code that is not a finite number.
    negative_zero : bool
        Whether the code with only the sign bit is minus zero.
    """

    exponent: int
    mantissa: int
    bias: int
    overflow: int
    nan: int
    special: int | None = None
    negative_zero: bool = True

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.exponent + self.mantissa)

    @property
    def largest(self) -> int:
        """Magnitude code of the largest finite value."""
        return (self.sign if self.special is None else self.special) - 1


FORMATS: dict[str, Format] = {
    "bfloat16": Format(8, 7, 127, overflow=0x7F80, nan=0x7FC0, special=0x7F80),
    "float16": Format(5, 10, 15, overflow=0x7C00, nan=0x7E00, special=0x7C00),
    "float8_e3m4": Format(3, 4, 3, overflow=0x70, nan=0x78, special=0x70),
    "float8_e4m3": Format(4, 3, 7, overflow=0x7E, nan=0x7F, special=0x7F),
    "float8_e4m3b11fnuz": Format(4, 3, 11, overflow=0x80, nan=0x80, negative_zero=False),
    "float8_e4m3fn": Format(4, 3, 7, overflow=0x7E, nan=0x7F, special=0x7F),
    "float8_e4m3fnuz": Format(4, 3, 8, overflow=0x80, nan=0x80, negative_zero=False),
    "float8_e5m2": Format(5, 2, 15, overflow=0x7C, nan=0x7F, special=0x7C),
    "float8_e5m2fnuz": Format(5, 2, 16, overflow=0x80, nan=0x80, negative_zero=False),
    "float6_e2m3fn": Format(2, 3, 1, overflow=0x1F, nan=0x20),
    "float6_e3m2fn": Format(3, 2, 3, overflow=0x1F, nan=0x20),
    "float4_e2m1fn": Format(2, 1, 1, overflow=0x7, nan=0x8),
}  # fmt: skip


def storage_dtype(dtype: str) -> str | None:
    """The unsigned integer dtype that holds codes of ``dtype``, None if it is no narrow float."""
    if dtype in ("bfloat16", "float16"):
        return "uint16"
    return "uint8" if dtype in FORMATS or dtype == "float8_e8m0fnu" else None


def _decode(form: Format, code: Value) -> Value:
    wide = code.to("int32")
    magnitude = wide & (form.sign - 1)
    bits = (magnitude << (23 - form.mantissa)) + ((127 - form.bias) << 23)
    small = magnitude.to("float32") * 2.0 ** (1 - form.bias - form.mantissa)
    bits = select(magnitude < (1 << form.mantissa), small.bits(), bits)
    if form.special is not None and form.special == form.nan:  # a NaN code and no infinities
        bits = select(magnitude >= form.special, _F32_NAN, bits)
    elif form.special is not None:
        bits = select(magnitude >= form.special, bits | _F32_INF, bits)
    bits = bits | ((wide & form.sign) << (31 - form.exponent - form.mantissa))
    if not form.negative_zero:
        bits = select(wide.eq(form.sign), _F32_NAN, bits)
    return bits.reinterpret("float32")


def _encode(form: Format, x: Value) -> Value:
    bits = x.bits()
    unordered = x.ne(x)
    magnitude = select(unordered, 0, bits & 0x7FFFFFFF)
    shift = 23 - form.mantissa
    # Nearest, ties to even: half an ulp less one, plus the last kept bit.
    rounded = (magnitude + ((1 << (shift - 1)) - 1)) + ((magnitude >> shift) & 1)
    code = (rounded >> shift) - ((127 - form.bias) << form.mantissa)
    # Adding this power of two lets the addition round at the subnormal's last bit.
    exponent = 23 - form.mantissa + 1 - form.bias
    small = (x.magnitude() + 2.0**exponent).bits() - ((127 + exponent) << 23)
    code = select(magnitude < ((128 - form.bias) << 23), small, code)
    code = select(code > form.largest, form.overflow, code)
    sign = (bits >> (31 - form.exponent - form.mantissa)) & form.sign
    signed = code | sign
    if not form.negative_zero:
        signed = select(code.eq(0), 0, signed)
    return select(unordered, form.nan, signed).to("uint16" if form.sign > 0x80 else "uint8")


def _round(form: Format, x: Value) -> Value:
    return _decode(form, _encode(form, x))


for _name, _form in FORMATS.items():
    if _name != "bfloat16":
        numeric(f"decode.{_name}")(partial(_decode, _form))
        numeric(f"encode.{_name}")(partial(_encode, _form))
        numeric(f"round.{_name}")(partial(_round, _form))


@numeric("decode.bfloat16")
def decode_bfloat16(code: Value) -> Value:
    """A bfloat16 is the upper half of a float32."""
    return (code.to("uint32") << 16).reinterpret("float32")


def _round_to_upper_half(x: Value) -> Value:
    """Bits of which the upper half is ``x`` rounded to nearest even, for any ``x`` but NaN."""
    bits = x.bits()
    return (bits + 0x7FFF) + ((bits >> 16) & 1)


@numeric("encode.bfloat16")
def encode_bfloat16(x: Value) -> Value:
    """The upper half of float32 ``x``, rounded; NaN becomes the quiet positive one."""
    code = select(x.ne(x), FORMATS["bfloat16"].nan << 16, _round_to_upper_half(x))
    return ((code >> 16) & 0xFFFF).to("uint16")


@numeric("round.bfloat16")
def round_bfloat16(x: Value) -> Value:
    """float32 ``x`` rounded to a bfloat16."""
    return select(x.ne(x), x, (_round_to_upper_half(x) & -0x10000).reinterpret("float32"))


@numeric("decode.float8_e8m0fnu")
def decode_e8m0(code: Value) -> Value:
    """A power of two; code 0 is 2^-127, code 255 is NaN."""
    wide = code.to("int32")
    bits = select(wide.eq(0), 0x00400000, wide << 23)
    return select(wide.eq(255), _F32_NAN, bits).reinterpret("float32")


@numeric("encode.float8_e8m0fnu")
def encode_e8m0(x: Value) -> Value:
    """The nearest power of two, halves upward; the sign is dropped, infinity becomes NaN."""
    bits = x.bits()
    exponent, mantissa = (bits >> 23) & 0xFF, bits & 0x7FFFFF
    up = select(exponent.eq(0), mantissa > 0x400000, mantissa >= 0x400000)
    return select(up & (exponent < 255), exponent + 1, exponent).to("uint8")


@numeric("round.float8_e8m0fnu")
def round_e8m0(x: Value) -> Value:
    """The value of the code of ``x``."""
    return decode_e8m0(encode_e8m0(x))


@numeric("round_tfloat32")
def round_tfloat32(x: Value) -> Value:
    """float32 with 10 mantissa bits, nearest with ties away from zero (``rna`` of PTX ``cvt``)."""
    bits = x.bits()
    finite = (bits & _F32_INF).ne(_F32_INF)
    return select(
        finite, ((bits & 0x7FFFFFFF) + 0x1000) & ~0x1FFF | (bits & -0x80000000), bits
    ).reinterpret("float32")
