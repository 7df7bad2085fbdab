"""Operations on the bits of integers: ``T.popcount``, ``T.clz``, shifts and logic, everywhere.

The operators ``& | ^ ~ << >>`` are the same functions. A shift keeps the dtype of its left operand;
shifting by the width or more gives 0, or the sign for ``>>`` of a negative number. ``&``, ``|`` and
``^`` also work on bools. Floats are refused (``TraceTypeError``).
"""

from __future__ import annotations

from typing import Any

from tvm import ir

from tilelang.ir import arith, intrin

__all__ = [
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "clz",
    "popcount",
    "shift_left",
    "shift_right",
]


def bitwise_and(x: Any, y: Any) -> Any:
    """``x & y``."""
    return arith.bit_and(x, y)


def bitwise_or(x: Any, y: Any) -> Any:
    """``x | y``."""
    return arith.bit_or(x, y)


def bitwise_xor(x: Any, y: Any) -> Any:
    """``x ^ y``."""
    return arith.bit_xor(x, y)


def bitwise_not(x: Any) -> Any:
    """``~x``; of a bool the logical negation."""
    return arith.bit_not(x)


def shift_left(x: Any, y: Any) -> Any:
    """``x << y``."""
    return arith.shift_left(x, y)


def shift_right(x: Any, y: Any) -> Any:
    """``x >> y``: arithmetic for signed integers, logical for unsigned ones."""
    return arith.shift_right(x, y)


def popcount(x: Any) -> ir.Expr:
    """The number of set bits, in the dtype of ``x``."""
    return intrin.get("popcount")(x)


def clz(x: Any) -> ir.Expr:
    """The number of zero bits above the highest set one, as int32; the width for 0."""
    return intrin.get("clz")(x)
