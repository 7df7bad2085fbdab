"""What the numeric passes ask about dtypes of expressions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from tvm import ir
from tvm.ir import prim
from tvm_ffi import structural_walk

from tilelang.transform.numerics.ops import prim_type

__all__ = [
    "NARROW_FLOATS",
    "cast",
    "element",
    "is_float",
    "is_int",
    "is_narrow_float",
    "is_plain_index",
    "is_sub_byte_int",
    "lanes_of",
    "lanes_of_type",
    "packs",
    "retyped",
    "value_type",
    "variables",
    "width",
]

#: Floats of 16 bits and less.
NARROW_FLOATS = frozenset(
    {
        "bfloat16", "float16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
        "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn",
        "float6_e3m2fn", "float4_e2m1fn",
    }
)  # fmt: skip
_SUB_BYTE_INTS = frozenset({"int4", "uint4"})
_DIVISIONS = (prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod)
#: Types of which memory holds two elements a byte, the first one in the low bits.
_PACKED = _SUB_BYTE_INTS | {"float4_e2m1fn"}


@lru_cache(maxsize=512)
def _split(name: str) -> tuple[str, int]:
    head, separator, lanes = name.rpartition("x")
    return (head, int(lanes)) if separator and lanes.isdigit() else (name, 1)


def element(value: Any) -> str:
    """Element dtype of an expression (``float32`` of a vector of float32), "" if it has none."""
    ty = value.ty
    return _split(str(ty.dtype))[0] if isinstance(ty, ir.PrimType) else ""


def lanes_of(value: Any) -> int:
    """Lanes of an expression."""
    return _split(str(value.ty.dtype))[1]


def lanes_of_type(ty: ir.PrimType) -> int:
    """Lanes of values of a type."""
    return _split(str(ty.dtype))[1]


def value_type(dtype: str, like: Any) -> ir.PrimType:
    """The type of ``dtype`` with the lanes of ``like``."""
    return prim_type(dtype, lanes_of(like))


def retyped(ty: ir.PrimType, dtype: str) -> ir.PrimType:
    """The type of ``dtype`` with the lanes of ``ty``."""
    return prim_type(dtype, _split(str(ty.dtype))[1])


def cast(value: ir.Expr, dtype: str) -> ir.Expr:
    """``value`` converted to ``dtype``; itself if that is its dtype."""
    return (
        value if element(value) == dtype else prim.Cast(value_type(dtype, value), value, value.span)
    )


def is_float(dtype: str) -> bool:
    """Whether this is a float dtype of any width."""
    return dtype.startswith(("float", "bfloat"))


def is_int(dtype: str) -> bool:
    """Whether this is a signed or unsigned integer dtype; bool is none."""
    return dtype.startswith(("int", "uint"))


def width(dtype: str) -> int:
    """Bits of an integer dtype."""
    return int(dtype.removeprefix("u").removeprefix("int"))


def is_narrow_float(dtype: str) -> bool:
    """Whether this is a float of 16 bits or less."""
    return dtype in NARROW_FLOATS


def is_sub_byte_int(dtype: str) -> bool:
    """Whether this is an integer dtype below a byte."""
    return dtype in _SUB_BYTE_INTS


def variables(expr: Any) -> Iterator[ir.Var]:
    """The variables in an index expression, buffers left out; cheaper than a structural walk."""
    while isinstance(expr, prim.BinaryOpExpr):
        yield from variables(expr.b)
        expr = expr.a
    if isinstance(expr, ir.Var):
        yield expr
    elif isinstance(expr, prim.Cast):
        yield from variables(expr.value)
    elif not isinstance(expr, prim.IntImm):
        found: list[ir.Var] = []
        structural_walk(expr, (ir.Var, found.append))
        yield from (var for var in found if isinstance(var.ty, ir.PrimType))


def is_plain_index(expr: Any) -> bool:
    """Whether ``expr`` is arithmetic on variables and constants, with constant divisors."""
    while isinstance(expr, prim.BinaryOpExpr):
        if isinstance(expr, _DIVISIONS) and not isinstance(expr.b, prim.IntImm):
            return False
        if not is_plain_index(expr.b):
            return False
        expr = expr.a
    return isinstance(expr, (ir.Var, prim.IntImm)) or (
        isinstance(expr, prim.Cast) and is_plain_index(expr.value)
    )


def packs(dtype: str) -> bool:
    """Whether two elements share a byte in memory."""
    return dtype in _PACKED
