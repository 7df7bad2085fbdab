"""Arithmetic on narrow types in wider ones: short floats in float32, 4-bit integers in int32.

Each operator or function rounds once: its operands are widened (exactly), the result is rounded to
the narrow type, so that every intermediate value has the precision its dtype says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm_ffi import structural_map

from tilelang.ir.dtype import dtype
from tilelang.transform.numerics import ops
from tilelang.transform.numerics.dtypes import (
    cast,
    element,
    is_narrow_float,
    is_sub_byte_int,
    lanes_of,
    value_type,
)
from tilelang.transform.numerics.functions import is_elementwise, op_name

__all__ = ["promote_narrow"]

_ARITHMETIC = (
    prim.Add, prim.Sub, prim.Mul, prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod,
    prim.Max, prim.Min, prim.LShift, prim.RShift, prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor,
)  # fmt: skip
_COMPARISONS = (prim.EQ, prim.NE, prim.LT, prim.LE, prim.GT, prim.GE)


def promote_narrow(func: T.PrimFunc, *, native: frozenset[str] = frozenset()) -> T.PrimFunc:
    """Compute on narrow floats and sub-byte integers in float32 and int32.

    Parameters
    ----------
    native : frozenset of str
        Narrow types that the backend computes on itself.

    Before: ``C[i] = A[i] * B[i] + A[i]`` on bfloat16. After: ``C[i] = bfloat16(float32(round(
    float32(A[i]) * float32(B[i]))) + float32(A[i]))`` with ``round`` to bfloat16.
    """
    promotion = _Promotion(native)
    handlers: list[tuple[type, Callable[..., Any]]] = [
        *((node, promotion.on_arithmetic) for node in _ARITHMETIC),
        *((node, promotion.on_comparison) for node in _COMPARISONS),
        (prim.BitwiseNot, promotion.on_not),
        (prim.Cast, promotion.on_cast),
        (ir.Call, promotion.on_call),
    ]
    return structural_map(func, handlers)


def _narrow(value: ir.Expr, name: str) -> ir.Expr:
    return prim.Cast(value_type(name, value), value, value.span)


@dataclass(frozen=True)
class _Promotion:
    native: frozenset[str]

    def wide(self, name: str) -> str | None:
        """The type values of dtype ``name`` are computed in, None for their own."""
        if name in self.native:
            return None
        if is_narrow_float(name):
            return "float32"
        return "int32" if is_sub_byte_int(name) else None

    def widen(self, value: ir.Expr) -> ir.Expr:
        """``value`` in its wide type."""
        name = element(value)
        wide = self.wide(name)
        if wide is None:
            return value
        scalar = value.value if isinstance(value, prim.Broadcast) else value
        if isinstance(scalar, prim.FloatImm):
            exact = float(np.float64(scalar.value).astype(dtype(name).as_numpy()))
            node = prim.FloatImm(wide, exact)
            return (
                node
                if scalar is value
                else prim.Broadcast(node, T.IntImm("int32", lanes_of(value)))
            )
        rounded = isinstance(value, prim.Cast) and element(value.value) == "float32"
        if rounded and name != "float16":  # float16 rounds by a pair of conversions
            return ops.call(f"round.{name}", wide, value.value, span=value.span)
        return cast(value, wide)

    def on_arithmetic(self, node: Any) -> ir.Expr:
        name = element(node)
        if self.wide(name) is None:
            return node
        return _narrow(type(node)(self.widen(node.a), self.widen(node.b), node.span), name)

    def on_comparison(self, node: Any) -> ir.Expr:
        if self.wide(element(node.a)) is None:
            return node
        return type(node)(self.widen(node.a), self.widen(node.b), node.span)

    def on_not(self, node: Any) -> ir.Expr:
        name = element(node)
        if self.wide(name) is None:
            return node
        return _narrow(prim.BitwiseNot(self.widen(node.value), node.span), name)

    def on_cast(self, node: Any) -> ir.Expr:
        """A conversion from a narrow type to another passes through its wide type."""
        source, target = element(node.value), element(node)
        if source == target:
            return node.value
        if self.wide(source) is None:
            return node
        return cast(self.widen(node.value), target)

    def on_call(self, call: ir.Call) -> ir.Expr:
        if not is_elementwise(call) or op_name(call) == "tirx.nextafter":
            return call
        if all(self.wide(element(arg)) is None for arg in call.args):
            return call
        name = element(call)
        wide = self.wide(name)
        ty = call.ty if wide is None else value_type(wide, call)
        args = [self.widen(arg) for arg in call.args]
        if op_name(call) == "tl.ieee_fmaf_rn":  # a float32 result would be rounded twice
            return _narrow(ops.call("ieee_fmaf.odd", "float32", *args, span=call.span), name)
        result = ir.Call(call.op, args, attrs=call.attrs, span=call.span, ret_ty=ty)
        return result if wide is None else _narrow(result, name)
