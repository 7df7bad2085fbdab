"""Comparisons, selection and classification of floats where NaN and signed zeros matter.

The comparisons lower to plain nodes: the operators only hide them from TVM's simplifier, which
takes ``x == x`` for true and ``not x < y`` for ``y <= x``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tvm import ir
from tvm.ir import prim

from tilelang.cpu.intrinsics.math.integer import width
from tilelang.cpu.intrinsics.math.ops import numeric
from tilelang.cpu.intrinsics.math.value import Value, select

__all__ = ["copysign"]

numeric("eq")(lambda a, b: a.eq(b))
numeric("ne")(lambda a, b: a.ne(b))
numeric("lt")(lambda a, b: a < b)
numeric("le")(lambda a, b: a <= b)
numeric("gt")(lambda a, b: a > b)
numeric("ge")(lambda a, b: a >= b)
numeric("div")(lambda a, b: a / b)


def _is_number(x: Value) -> bool:
    """Whether ``x`` is a constant other than NaN."""
    if x.args:
        return False
    expr: ir.Expr = x.build()
    expr = expr.value if isinstance(expr, prim.Broadcast) else expr
    return isinstance(expr, prim.FloatImm) and not math.isnan(float(expr.value))


def _extreme(better: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    def rule(a: Value, b: Value) -> Value:
        if _is_number(a):
            a, b = b, a
        picked = select(better(a, b), a, b)  # b if either is NaN
        return picked if _is_number(b) else select(b.ne(b), a, picked)

    return rule


maximum = numeric("max")(_extreme(lambda a, b: a > b))
minimum = numeric("min")(_extreme(lambda a, b: a < b))


@numeric("isnan")
def isnan(x: Value) -> Value:
    """Whether ``x`` is NaN."""
    return x.ne(x)


@numeric("copysign")
def copysign(x: Value, y: Value) -> Value:
    """The magnitude of ``x`` with the sign bit of ``y``."""
    sign = -1 << (width(x.bits().dtype) - 1)
    return ((x.bits() & ~sign) | (y.bits() & sign)).reinterpret(x.dtype)


def _next_code(bits: Value, toward: Value, not_a_number: Value) -> Value:
    """The neighbour of sign-magnitude code ``bits`` in the direction of ``toward``."""
    bottom = -1 << (width(bits.dtype) - 1)
    magnitude = bits & ~bottom
    target = toward & ~bottom
    # Order of codes as integers: negative numbers are minus their magnitude.
    here = select(bits < 0, magnitude.const(0) - magnitude, magnitude)
    there = select(toward < 0, magnitude.const(0) - target, target)
    from_zero = select(there < 0, bits.const(bottom | 1), 1)
    away = (bits < 0) ^ (here < there)
    step = select(magnitude.eq(0), from_zero, select(away, bits + 1, bits - 1))
    return select(not_a_number, bits.const(~bottom), select(here.eq(there), toward, step))


@numeric("nextafter")
def nextafter(x: Value, y: Value) -> Value:
    """The next value of the dtype after ``x`` in the direction of ``y``."""
    code = _next_code(x.bits(), y.bits(), x.ne(x) | y.ne(y))
    return code.reinterpret(x.dtype)


@numeric("nextafter.bfloat16")
def nextafter_bfloat16(x: Value, y: Value) -> Value:
    """:func:`nextafter` on codes of bfloat16 (uint16)."""
    a, b = x.reinterpret("int16"), y.reinterpret("int16")
    unordered = ((x & 0x7FFF) > 0x7F80) | ((y & 0x7FFF) > 0x7F80)
    return _next_code(a, b, unordered).reinterpret("uint16")
