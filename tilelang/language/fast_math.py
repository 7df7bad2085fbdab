"""Arithmetic with a chosen precision: approximate, exactly rounded, or two lanes at once.

* ``T.__exp`` and friends may use approximate device functions; where a backend has none they are
  the ordinary functions.
* ``T.ieee_*`` rounds once in the given direction and is never contracted to a fused multiply-add.
  Directions other than ``rn`` need a device with such instructions (CUDA).
* ``T.add2`` and friends work on both lanes of a ``float32x2``, ``float16x2`` or ``bfloat16x2``.
"""

from __future__ import annotations

from typing import Any

from tvm import ir

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import intrin
from tilelang.ir.span import user_span
from tilelang.ir.values import as_scalar, element_type

__all__ = [
    "__cos",
    "__exp",
    "__exp10",
    "__log",
    "__log2",
    "__log10",
    "__sin",
    "__tan",
    "abs2",
    "add2",
    "fast_rcp",
    "fma2",
    "ieee_add",
    "ieee_fdiv",
    "ieee_fmaf",
    "ieee_frcp",
    "ieee_frsqrt",
    "ieee_fsqrt",
    "ieee_mul",
    "ieee_sub",
    "max2",
    "min2",
    "mul2",
    "sub2",
]

_PAIRS = ("float32x2", "float16x2", "bfloat16x2")


def __exp(x: Any) -> ir.Expr:
    """``e**x``, approximately."""
    return intrin.get("__exp")(x)


def __exp10(x: Any) -> ir.Expr:
    """``10**x``, approximately."""
    return intrin.get("__exp10")(x)


def __log(x: Any) -> ir.Expr:
    """Natural logarithm, approximately."""
    return intrin.get("__log")(x)


def __log2(x: Any) -> ir.Expr:
    """Logarithm to base 2, approximately."""
    return intrin.get("__log2")(x)


def __log10(x: Any) -> ir.Expr:
    """Logarithm to base 10, approximately."""
    return intrin.get("__log10")(x)


def __sin(x: Any) -> ir.Expr:
    """Sine, approximately."""
    return intrin.get("__sin")(x)


def __cos(x: Any) -> ir.Expr:
    """Cosine, approximately."""
    return intrin.get("__cos")(x)


def __tan(x: Any) -> ir.Expr:
    """Tangent, approximately."""
    return intrin.get("__tan")(x)


def fast_rcp(x: Any) -> ir.Expr:
    """``1 / x``, approximately."""
    return intrin.get("fast_rcp")(x)


def _ieee(name: str, rounding_mode: str, *operands: Any) -> ir.Expr:
    if rounding_mode not in intrin.ROUNDING_MODES:
        raise TraceError(
            f"T.{name}: unknown rounding mode {rounding_mode!r}; expected one of "
            f"{', '.join(intrin.ROUNDING_MODES)}",
            user_span(),
        )
    return intrin.get(f"{name}_{rounding_mode}")(*operands)


def ieee_add(x: Any, y: Any, rounding_mode: str = "rn") -> ir.Expr:
    """``x + y``, rounded once.

    Parameters
    ----------
    x, y : float expressions
    rounding_mode : {"rn", "rz", "ru", "rd"}
        To nearest even, toward zero, up, down.

    Raises
    ------
    TraceError
        For another rounding mode.
    """
    return _ieee("ieee_add", rounding_mode, x, y)


def ieee_sub(x: Any, y: Any, rounding_mode: str = "rn") -> ir.Expr:
    """``x - y``, rounded once; see :func:`ieee_add`."""
    return _ieee("ieee_sub", rounding_mode, x, y)


def ieee_mul(x: Any, y: Any, rounding_mode: str = "rn") -> ir.Expr:
    """``x * y``, rounded once; see :func:`ieee_add`."""
    return _ieee("ieee_mul", rounding_mode, x, y)


def ieee_fdiv(x: Any, y: Any, rounding_mode: str = "rn") -> ir.Expr:
    """``x / y``, rounded once; see :func:`ieee_add`."""
    return _ieee("ieee_fdiv", rounding_mode, x, y)


def ieee_fmaf(x: Any, y: Any, z: Any, rounding_mode: str = "rn") -> ir.Expr:
    """``x * y + z``, rounded once at the end; see :func:`ieee_add`."""
    return _ieee("ieee_fmaf", rounding_mode, x, y, z)


def ieee_frcp(x: Any, rounding_mode: str = "rn") -> ir.Expr:
    """``1 / x``, rounded once; see :func:`ieee_add`."""
    return _ieee("ieee_frcp", rounding_mode, x)


def ieee_fsqrt(x: Any, rounding_mode: str = "rn") -> ir.Expr:
    """``sqrt(x)``, rounded once; see :func:`ieee_add`."""
    return _ieee("ieee_fsqrt", rounding_mode, x)


def ieee_frsqrt(x: Any) -> ir.Expr:
    """``1 / sqrt(x)``, rounded once to nearest even."""
    return intrin.get("ieee_frsqrt")(x)


def _pairs(name: str, *operands: Any) -> ir.Expr:
    for operand in operands:
        kind = element_type(as_scalar(operand, f"T.{name}"))
        if kind not in _PAIRS:
            raise TraceTypeError(
                f"T.{name} requires pairs ({', '.join(_PAIRS)}), found {kind}", user_span()
            )
    return intrin.get(name)(*operands)


def add2(x: Any, y: Any) -> ir.Expr:
    """``x + y`` of two pairs.

    Raises
    ------
    TraceTypeError
        If an operand is no ``float32x2``, ``float16x2`` or ``bfloat16x2``.
    """
    return _pairs("add2", x, y)


def sub2(x: Any, y: Any) -> ir.Expr:
    """``x - y`` of two pairs; see :func:`add2`."""
    return _pairs("sub2", x, y)


def mul2(x: Any, y: Any) -> ir.Expr:
    """``x * y`` of two pairs; see :func:`add2`."""
    return _pairs("mul2", x, y)


def fma2(x: Any, y: Any, z: Any) -> ir.Expr:
    """``x * y + z`` of three pairs; see :func:`add2`."""
    return _pairs("fma2", x, y, z)


def max2(x: Any, y: Any) -> ir.Expr:
    """The larger lanes of two pairs; see :func:`add2`."""
    return _pairs("max2", x, y)


def min2(x: Any, y: Any) -> ir.Expr:
    """The smaller lanes of two pairs; see :func:`add2`."""
    return _pairs("min2", x, y)


def abs2(x: Any) -> ir.Expr:
    """The absolute values of a pair; see :func:`add2`."""
    return _pairs("abs2", x)
