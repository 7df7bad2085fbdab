"""Numeric operators of the CPU backend and their formulas, for LLVM and for C.

Importing this package registers every operator ``tl.num.<name>``; see :mod:`.ops`.
"""

from tilelang.cpu.intrinsics.math import (
    compare,
    convert,
    exponential,
    ieee,
    integer,
    logarithm,
    minifloat,
    power,
    rounding,
    trigonometric,
)
from tilelang.cpu.intrinsics.math.ops import call, expand, is_numeric, operator_name
from tilelang.cpu.intrinsics.math.value import Value, select

__all__ = [
    "Value",
    "call",
    "compare",
    "convert",
    "expand",
    "exponential",
    "ieee",
    "integer",
    "is_numeric",
    "logarithm",
    "minifloat",
    "operator_name",
    "power",
    "rounding",
    "select",
    "trigonometric",
]
