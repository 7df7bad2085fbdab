"""Conversions, each with the rounding, saturation and NaN of the numeric contract."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm_ffi import structural_map

from tilelang.transform.numerics import ops
from tilelang.transform.numerics.dtypes import (
    cast,
    element,
    is_float,
    is_int,
    is_narrow_float,
    is_sub_byte_int,
    value_type,
    width,
)

__all__ = ["legalize_conversions"]


def legalize_conversions(func: T.PrimFunc) -> T.PrimFunc:
    """Write the conversions that hardware leaves undefined, or would round twice, as operators.

    Afterwards casts to a short float or 4-bit integer come from float32 and int32 only, and
    remaining casts are exact, round to nearest, or cut integers.

    Before: ``B[i] = int8(A[i])`` of float64. After: ``B[i] = tl.num.float_to_int(A[i])``.
    """
    return structural_map(func, (prim.Cast, _on_cast))


def _on_cast(node: Any) -> ir.Expr:
    value, target = node.value, element(node)
    source = element(value)
    if is_narrow_float(target):
        return prim.Cast(node.ty, _to_float32(value, target), node.span)
    if is_sub_byte_int(target):
        wide = (
            value
            if is_int(source)
            else ops.call("float_to_nibble." + target, "int32", cast_up(value))
        )
        return prim.Cast(node.ty, cast(wide, "int32"), node.span)
    if is_float(source):
        if target == "bool":
            return ops.call("ne", "bool", value, _zero(value), span=node.span)
        if is_int(target):
            return ops.call("float_to_int", target, value, span=node.span)
    return node


def cast_up(value: ir.Expr) -> ir.Expr:
    """A narrow float in float32, other floats as they are."""
    return cast(value, "float32") if is_narrow_float(element(value)) else value


def _zero(like: ir.Expr) -> ir.Expr:
    node = prim.FloatImm(ir.PrimType(element(like)), 0.0)
    lanes = int(like.ty.dtype.lanes)
    return node if lanes == 1 else prim.Broadcast(node, T.IntImm("int32", lanes))


def _to_float32(value: ir.Expr, target: str) -> ir.Expr:
    """``value`` as the float32 from which rounding to ``target`` rounds only once in all."""
    source = element(value)
    if source == "float64":
        return ops.call("odd_float32", "float32", value, span=value.span)
    exact = not is_int(source) or is_sub_byte_int(source) or width(source) <= 16
    if exact or target not in ("bfloat16", "float8_e8m0fnu"):  # others overflow long before 2^24
        return cast(value, "float32")
    if width(source) == 64:
        wide: ir.Expr = ops.call("sticky_float64", "float64", value, span=value.span)
    else:
        wide = prim.Cast(value_type("float64", value), value, value.span)
    return ops.call("odd_float32", "float32", wide, span=value.span)
