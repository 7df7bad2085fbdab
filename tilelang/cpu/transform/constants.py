"""Fold reinterpretations of constants: TVM's LLVM generator refuses those of zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm_ffi import structural_map

__all__ = ["fold_constant_bits"]

_NUMBERS = (prim.IntImm, prim.FloatImm)


def fold_constant_bits(func: T.PrimFunc) -> T.PrimFunc:
    """Replace the bits of a constant by the constant they are.

    Before: ``x & T.reinterpret("int32", T.uint32(0))``. After: ``x & 0``.
    """
    return func.with_body(structural_map(func.body, (ir.Call, _fold)))


def _fold(call: ir.Call) -> ir.Expr:
    name = call.op.name if isinstance(call.op, ir.Op) else ""
    if name != "tirx.reinterpret" or not isinstance(call.ty, ir.PrimType):
        return call
    inner = call.args[0]
    spread = inner if isinstance(inner, prim.Broadcast) else None
    number = inner if spread is None else spread.value
    if not isinstance(number, _NUMBERS) or call.ty.dtype.lanes != inner.ty.dtype.lanes:
        return call
    scalar = call.ty.dtype.with_lanes(1)
    constant = _same_bits(number, str(scalar), call.span)
    if constant is None:
        return call
    if spread is None:
        return constant
    return prim.Broadcast(constant, spread.lanes, call.span)


def _same_bits(number: Any, target: str, span: ir.Span | None) -> ir.Expr | None:
    try:
        source, kind = np.dtype(str(number.ty.dtype)), np.dtype(target)
    except TypeError:  # a dtype numpy does not have
        return None
    if source.itemsize != kind.itemsize or "b" in (source.kind, kind.kind):
        return None
    value = number.value
    if source.kind in "iu":
        value = int(value) % 2 ** (8 * source.itemsize)
        array = np.asarray(value, f"u{source.itemsize}")
    else:
        array = np.asarray(float(value), source)
    return T.const(array.view(kind).item(), target, span)
