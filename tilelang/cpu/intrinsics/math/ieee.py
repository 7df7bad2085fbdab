"""Arithmetic that rounds exactly once and is never contracted with its neighbours.

LLVM keeps a multiplication and an addition apart behind ``llvm.arithmetic.fence``. C compilers may
contract any product and sum of one type; conversions through float64 (whose second rounding is
harmless for float32), and products formed by ``fma``, leave them nothing to contract.
"""

from __future__ import annotations

from collections.abc import Callable

from tilelang.cpu.intrinsics.math.convert import odd_float32
from tilelang.cpu.intrinsics.math.ops import numeric
from tilelang.cpu.intrinsics.math.value import Value, select

__all__: list[str] = []

Binary = Callable[[Value, Value], Value]


def _fence(x: Value) -> Value:
    return x.intrinsic("arithmetic.fence")


def _through_float64(node: Binary, exact: Binary) -> Binary:
    def rule(x: Value, y: Value) -> Value:
        if x.dtype == "float32":
            return node(x.to("float64"), y.to("float64")).to("float32")
        return exact(x, y)

    return rule


def _define(name: str, node: Binary, exact: Binary) -> None:
    numeric(f"ieee_{name}")(lambda x, y: _fence(node(_fence(x), _fence(y))))
    numeric(f"ieee_{name}", kind="c")(_through_float64(node, exact))


_define("add", lambda x, y: x + y, lambda x, y: x.intrinsic("fma", x.const(1.0), y))
_define("sub", lambda x, y: x - y, lambda x, y: y.intrinsic("fma", y.const(-1.0), x))
_define("mul", lambda x, y: x * y, lambda x, y: x.intrinsic("fma", y, x.const(-0.0)))

numeric("ieee_fdiv")(lambda x, y: x / y)
numeric("ieee_frcp")(lambda x: 1.0 / x)
numeric("ieee_fsqrt")(lambda x: x.intrinsic("sqrt"))
numeric("ieee_fmaf")(lambda x, y, z: x.intrinsic("fma", y, z))


@numeric("ieee_fmaf.odd")
def multiply_add_odd(x: Value, y: Value, z: Value) -> Value:
    """``x * y + z`` of short floats, held in float32 such that rounding it again rounds once.

    The product is exact in float64; the error of the sum (Knuth's two-sum) makes it odd.
    """
    product, addend = x.to("float64") * y.to("float64"), z.to("float64")
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    bits = total.bits()
    # One step toward zero where the sum was rounded away from zero, then the last bit set.
    away = (error < 0.0) ^ (total < 0.0)
    odd = select(away, bits - 1, bits) | 1
    inexact = error.ne(0.0) & error.eq(error)
    return odd_float32(select(inexact, odd, bits).reinterpret("float64"))


@numeric("ieee_frsqrt")
def reciprocal_root(x: Value) -> Value:
    """``1 / sqrt(x)``; of float32 correctly rounded, because float64 decides every case."""
    if x.dtype == "float32":
        return (1.0 / x.to("float64").intrinsic("sqrt")).to("float32")
    return 1.0 / x.intrinsic("sqrt")
