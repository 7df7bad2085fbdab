"""Arithmetic, comparison and bit operators on values of one dtype.

``operator(name, dtype)`` gives the numpy function for one dtype: integers wrap at their width,
``floordiv`` and ``floormod`` floor, division by zero of integers gives 0, shifts by the width or
more give 0 (or the sign), max and min ignore NaN. Floats of 16 bits and less are computed in
float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tilelang.interpreter.numbers import Dtype, round_float, wrap
from tilelang.ir.extremes import larger, smaller

__all__ = ["COMPARISONS", "operator", "trunc_div", "trunc_mod"]

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def trunc_div(a: Any, b: Any) -> Any:
    """Integer division toward zero; 0 for ``b == 0``."""
    quotient, remainder = np.floor_divide(a, b), np.mod(a, b)
    return quotient + ((remainder != 0) & ((a < 0) != (b < 0))).astype(quotient.dtype)


def trunc_mod(a: Any, b: Any) -> Any:
    """The remainder of :func:`trunc_div`, with the sign of ``a``; 0 for ``b == 0``."""
    return np.fmod(a, b)


def _shift(dtype: Dtype, left: bool) -> Callable[[Any, Any], Any]:
    width, limit = dtype.carrier.type(dtype.bits), dtype.carrier.type(dtype.bits - 1)
    zero = dtype.carrier.type(0)

    def shift(a: Any, b: Any) -> Any:
        inside = (b >= zero) & (b < width)
        count = np.where(inside, b, limit)[()]
        if not left and dtype.kind == "i":
            return np.right_shift(a, count)  # by width - 1 leaves the sign
        moved = np.left_shift(a, count) if left else np.right_shift(a, count)
        return np.where(inside, moved, zero)[()]

    return shift


_INT: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": trunc_div,
    "mod": trunc_mod,
    "floordiv": np.floor_divide,
    "floormod": np.mod,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_FLOAT: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "mod": np.fmod,
    "floordiv": np.floor_divide,
    "floormod": np.mod,
    "max": larger,
    "min": smaller,
}


def _in_float32(function: Callable[[Any, Any], Any], dtype: Dtype) -> Callable[[Any, Any], Any]:
    return lambda a, b: round_float(function(a.astype(np.float32), b.astype(np.float32)), dtype)


@cache
def operator(name: str, dtype: Dtype) -> Callable[[Any, Any], Any]:
    """The function of binary operator ``name`` on two values of ``dtype``."""
    dtype = dtype.scalar
    if name in COMPARISONS:
        return COMPARISONS[name]
    if name in ("shl", "shr"):
        function = _shift(dtype, name == "shl")
    elif dtype.kind == "f":
        function = _FLOAT[name]
        return _in_float32(function, dtype) if dtype.bits < 32 else function
    elif dtype.kind == "b":
        return {"add": np.logical_or, "mul": np.logical_and}.get(name, _INT[name])
    else:
        function = _INT[name]
    return (lambda a, b: wrap(function(a, b), dtype)) if dtype.bits < 8 else function
