"""Elementwise mathematics: the functions of :mod:`math`, their fast forms, bits and packed pairs.

References compute in float64 from exact values, so that one rounding to the result dtype is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilelang.ir.dtype import dtype
from tilelang.ir.extremes import larger, smaller
from tilelang.ir.intrin.record import ALL, NVIDIA, READ, Array, Intrinsic, Kind, Reference, define

__all__: list[str] = []

Dtypes = tuple[str, ...]
_FLOAT: Kind = "float"


def _ignoring_types(function: Callable[..., Any]) -> Reference:
    def reference(dtypes: Dtypes, *values: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(*values))

    return reference


def _elementwise(function: Callable[..., float]) -> Reference:
    """A scalar function of module math over arrays; domain errors give NaN."""

    def guarded(*values: float) -> float:
        try:
            return function(*values)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return np.vectorize(guarded, otypes=[np.float64])


def _sigmoid(x: Array) -> Array:
    positive = 1.0 / (1.0 + np.exp(-np.abs(x)))
    return np.where(x >= 0, positive, np.exp(-np.abs(x)) / (1.0 + np.exp(-np.abs(x))))


def _round_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.copysign(np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole), x)


def _pow(x: Array, y: Array) -> Array:
    return np.power(np.asarray(x, np.float64), np.asarray(y, np.float64))


_UNARY: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(10.0, x),
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "erf": _elementwise(math.erf),
    "sigmoid": _sigmoid,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "nearbyint": np.rint,
    "round": _round_away,
    "fabs": np.abs,
}
_OP_NAMES = {"ceil": "prim.ceil", "log2": "prim.log2"}

for _name, _function in _UNARY.items():
    define(
        Intrinsic(
            _name,
            _OP_NAMES.get(_name, f"tirx.{_name}"),
            ("float",),
            reference=_ignoring_types(_function),
        )
    )


def _nextafter(dtypes: Dtypes, x: Array, y: Array) -> Array:
    kind = dtype(dtypes[0]).as_numpy()
    return np.nextafter(np.asarray(x).astype(kind), np.asarray(y).astype(kind))


_BINARY: dict[str, Callable[..., Any]] = {
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "fmod": np.fmod,
    "pow": _pow,
}
for _name, _function in _BINARY.items():
    define(
        Intrinsic(_name, f"tirx.{_name}", ("float", "float"), reference=_ignoring_types(_function))
    )
define(Intrinsic("nextafter", "tirx.nextafter", ("float", "float"), reference=_nextafter))
define(
    Intrinsic(
        "ldexp",
        "tirx.ldexp",
        ("float", "int32"),
        reference=_ignoring_types(lambda x, n: np.ldexp(x, np.asarray(n, np.int32))),
    )
)
define(
    Intrinsic("isnan", "tirx.isnan", ("float",), result="bool", reference=_ignoring_types(np.isnan))
)

# The fast forms may use approximate hardware functions. As elsewhere the reference is the exact
# value; where there is no approximation the ordinary function serves.
for _name in ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan"):
    define(
        Intrinsic(
            f"__{_name}", f"tl.__{_name}", ("float",), reference=_ignoring_types(_UNARY[_name])
        )
    )
define(
    Intrinsic("fast_rcp", "tl.fast_rcp", ("float",), reference=_ignoring_types(lambda x: 1.0 / x))
)


# A read through the read-only cache where there is one.
define(
    Intrinsic(
        "__ldg",
        "tl.__ldg",
        ("element",),
        effect=READ,
        reference=_ignoring_types(lambda value: value),
    )
)


# --- bits -------------------------------------------------------------------------------------


def _unsigned(value: Array, name: str) -> Array:
    """The bit pattern of integers of dtype ``name`` as uint64."""
    mask = np.uint64(2 ** dtype(name).bits - 1)
    return np.asarray(value).astype(np.int64).astype(np.uint64) & mask


def _bit_unsigned(value: Array, name: str) -> Array:
    if np.asarray(value).dtype == np.uint64:
        return np.asarray(value)
    return _unsigned(value, name)


def _popcount(dtypes: Dtypes, x: Array) -> Array:
    return np.vectorize(lambda v: int(v).bit_count(), otypes=[np.int64])(
        _bit_unsigned(x, dtypes[1])
    )


def _clz(dtypes: Dtypes, x: Array) -> Array:
    bits = dtype(dtypes[1]).bits
    count = np.vectorize(lambda v: bits - int(v).bit_length(), otypes=[np.int64])
    return count(_bit_unsigned(x, dtypes[1]))


def _ffs(dtypes: Dtypes, x: Array) -> Array:
    lowest = np.vectorize(lambda v: (int(v) & -int(v)).bit_length(), otypes=[np.int64])
    return lowest(_bit_unsigned(x, dtypes[1]))


def _nth_set_bit(mask: int, base: int, offset: int) -> int:
    step = 1 if offset >= 0 else -1
    wanted, position = (offset or 1) * step, base
    if offset == 0:
        return base if mask >> base & 1 else -1
    while 0 <= position < 32:
        wanted -= mask >> position & 1
        if wanted == 0:
            return position
        position += step
    return -1


def _fns(dtypes: Dtypes, mask: Array, base: Array, offset: Array) -> Array:
    find = np.vectorize(lambda m, b, o: _nth_set_bit(int(m), int(b), int(o)), otypes=[np.int64])
    return find(_bit_unsigned(mask, "uint32"), base, offset)


define(Intrinsic("popcount", "tirx.popcount", ("int",), reference=_popcount))
define(Intrinsic("clz", "prim.clz", ("int",), result="int32", reference=_clz))
define(Intrinsic("__ffs", "tl.__ffs", ("int",), result="int32", reference=_ffs))
define(
    Intrinsic(
        "__fns", "tl.__fns", ("uint32", "int32", "int32"), result="int32", reference=_fns,
        backends=frozenset({"cpu", "cuda"}),
    )
)  # fmt: skip


def _bits_of(value: Array, name: str) -> Array:
    return np.asarray(value).astype(dtype(name).as_numpy())


def _reinterpret(dtypes: Dtypes, value: Array) -> Array:
    return _bits_of(value, dtypes[1]).view(dtype(dtypes[0]).as_numpy())


define(
    Intrinsic("reinterpret", "tirx.reinterpret", ("any",), result="given", reference=_reinterpret)
)


def _round_tfloat32(dtypes: Dtypes, x: Array) -> Array:
    """Nearest value with 10 mantissa bits, ties away from zero (the ``rna`` of PTX ``cvt``)."""
    value = np.asarray(x, np.float64)
    bits = value.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(value), rounded.view(np.float32), value)


define(
    Intrinsic(
        "round_tfloat32", "tl.round_tfloat32", ("float",), result="given", reference=_round_tfloat32
    )
)


# --- fixed point, packed pairs, stochastic rounding ---------------------------------------------


def _q_multiply_shift(dtypes: Dtypes, x: Array, y: Array, q: Array, s: Array) -> Array:
    """``round(x * y * 2**-s)`` of Q-format numbers, halves upward: shift left, then right."""
    left, total = np.maximum(s, 0), np.asarray(q) - np.minimum(s, 0)
    product = (np.asarray(x, np.int64) << left) * np.asarray(y, np.int64)
    return (product + (np.int64(1) << (total - 1))) >> total


def _q_multiply_shift_per_axis(
    dtypes: Dtypes,
    x: Array,
    y: Array,
    left: Array,
    right: Array,
    q: Array,
    shift_left: Array,
    shift_right: Array,
) -> Array:
    value = np.where(shift_left, np.asarray(x, np.int64) << left, np.asarray(x, np.int64))
    total = np.asarray(q) + np.where(shift_right, right, 0)
    return (value * np.asarray(y, np.int64) + (np.int64(1) << (total - 1))) >> total


define(
    Intrinsic(
        "q_multiply_shift",
        "tirx.q_multiply_shift",
        ("int32",) * 4,
        result="int32",
        reference=_q_multiply_shift,
    )
)
define(
    Intrinsic(
        "q_multiply_shift_per_axis",
        "tirx.q_multiply_shift_per_axis",
        ("int32",) * 7,
        result="int32",
        reference=_q_multiply_shift_per_axis,
    )
)

_PACKED: dict[str, tuple[int, Callable[..., Any]]] = {
    "add2": (2, np.add),
    "sub2": (2, np.subtract),
    "mul2": (2, np.multiply),
    "fma2": (3, lambda x, y, z: x * y + z),
    "max2": (2, larger),
    "min2": (2, smaller),
    "abs2": (1, np.abs),
}
for _name, (_arity, _function) in _PACKED.items():
    _args = (_FLOAT,) * _arity
    define(
        Intrinsic(
            _name,
            f"tl.{_name}",
            _args,
            reference=_ignoring_types(_function),
            backends=ALL - {"metal", "webgpu"},
        )
    )


def _stochastic(dtypes: Dtypes, x: Array, random: Array) -> Array:
    """Add the random bits below the kept mantissa, then truncate (PTX ``cvt.rs``)."""
    kind = dtype(dtypes[0])
    mantissa = {"float16": 10, "bfloat16": 7, "float8_e4m3fn": 3, "float8_e5m2": 2}[str(kind)]
    dropped = np.uint32(23 - mantissa)
    value = np.asarray(x, np.float64).astype(np.float32)
    noise = np.asarray(random).astype(np.uint32) & np.uint32((1 << int(dropped)) - 1)
    kept = ((value.view(np.uint32) + noise) >> dropped) << dropped
    rounded = np.where(np.isfinite(value), kept.view(np.float32), value)
    if kind.startswith("float8"):  # the 8-bit forms saturate to the largest finite value
        largest = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}[str(kind)]
        rounded = np.where(np.isnan(rounded), rounded, np.clip(rounded, -largest, largest))
    return rounded


define(
    Intrinsic(
        "cast_stochastic",
        "tl.cast_stochastic",
        ("float", "uint32"),
        result="given",
        reference=_stochastic,
        backends=NVIDIA,
    )
)
