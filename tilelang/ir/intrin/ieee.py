"""Arithmetic that rounds exactly once, in a chosen direction, and is never contracted.

One op an operation and rounding mode, named as the CUDA functions are: ``tl.ieee_add_rz``. The
references compute with exact fractions, which is slow and beyond doubt.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tilelang.ir.dtype import dtype
from tilelang.ir.intrin.record import ALL, NVIDIA, Array, Intrinsic, Kind, Reference, define

__all__ = ["IEEE_OPERATIONS", "ROUNDING_MODES", "round_exact"]

_FLOAT: Kind = "float"
#: Nearest even, toward zero, up, down.
ROUNDING_MODES = ("rn", "rz", "ru", "rd")

_MANTISSA = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_MIN_EXPONENT = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022}
_MAX_EXPONENT = {"float16": 15, "bfloat16": 127, "float32": 127, "float64": 1023}


def round_exact(value: Fraction, kind: str, mode: str) -> float:
    """Round an exact number to a value of float type ``kind``; ``mode`` is a rounding mode."""
    if value == 0:
        return 0.0
    sign, size = (-1 if value < 0 else 1), abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** (max(exponent, _MIN_EXPONENT[kind]) - _MANTISSA[kind] + 1)
    count, rest = divmod(size, step)
    up = {
        "rn": rest * 2 > step or (rest * 2 == step and count % 2 == 1),
        "rz": False,
        "ru": rest > 0 and sign > 0,
        "rd": rest > 0 and sign < 0,
    }[mode]
    rounded = (count + up) * step
    largest = (2 - Fraction(2) ** (1 - _MANTISSA[kind])) * Fraction(2) ** _MAX_EXPONENT[kind]
    if rounded > largest:
        away = mode == "rn" or (mode == "ru" and sign > 0) or (mode == "rd" and sign < 0)
        return sign * (math.inf if away else float(largest))
    return sign * float(rounded)


def _exact(special: Callable[..., float], exact: Callable[..., Fraction], mode: str) -> Reference:
    """A reference: exact on finite operands with a nonzero result, else what float64 gives."""

    def reference(dtypes: tuple[str, ...], *values: Array) -> Array:
        kind = str(dtype(dtypes[0]).element)

        def one(*operands: float) -> float:
            plain = float(special(*(np.float64(v) for v in operands)))
            if not all(map(math.isfinite, operands)) or math.isnan(plain):
                return plain
            try:
                result = exact(*map(Fraction, operands))
            except (ZeroDivisionError, ValueError):
                return plain
            if result == 0:
                return -0.0 if mode == "rd" and plain == 0 and _cancels(operands) else plain
            sign = -1.0 if result < 0 else 1.0  # a result of zero has one too
            return math.copysign(round_exact(result, kind, mode), sign)

        with np.errstate(all="ignore"):
            return np.vectorize(one, otypes=[np.float64])(*values)

    return reference


def _cancels(operands: tuple[float, ...]) -> bool:
    """Whether a zero result comes from operands that are not all zero (``x - x``)."""
    return any(operands) and len(operands) > 1 and all(v != 0 for v in operands)


def _sqrt(value: Fraction) -> Fraction:
    """The square root to 2**-160 relative, or exactly where it is rational."""
    scale = 2 ** (2 * 600)
    root = math.isqrt(value.numerator * value.denominator * scale)
    exact = Fraction(root, value.denominator * 2**600)
    if exact * exact == value:
        return exact
    # A sticky bit below the kept ones makes directed rounding see that the root is inexact.
    return Fraction(2 * root + 1, value.denominator * 2**601)


IEEE_OPERATIONS: dict[str, tuple[int, Callable[..., float], Callable[..., Fraction]]] = {
    "ieee_add": (2, lambda x, y: x + y, lambda x, y: x + y),
    "ieee_sub": (2, lambda x, y: x - y, lambda x, y: x - y),
    "ieee_mul": (2, lambda x, y: x * y, lambda x, y: x * y),
    "ieee_fdiv": (2, lambda x, y: x / y, lambda x, y: x / y),
    "ieee_fmaf": (3, lambda x, y, z: x * y + z, lambda x, y, z: x * y + z),
    "ieee_frcp": (1, lambda x: 1.0 / x, lambda x: 1 / x),
    "ieee_fsqrt": (1, np.sqrt, _sqrt),
}

for _name, (_arity, _special, _function) in IEEE_OPERATIONS.items():
    _args = (_FLOAT,) * _arity
    for _mode in ROUNDING_MODES:
        define(
            Intrinsic(
                f"{_name}_{_mode}",
                f"tl.{_name}_{_mode}",
                _args,
                reference=_exact(_special, _function, _mode),
                # Directed rounding needs an instruction with a rounding mode.
                backends=ALL if _mode == "rn" else NVIDIA,
            )
        )
define(
    Intrinsic(
        "ieee_frsqrt",
        "tl.ieee_frsqrt",
        ("float",),
        reference=_exact(lambda x: 1.0 / np.sqrt(x), lambda x: 1 / _sqrt(x), "rn"),
    )
)
