"""Float operators whose results TVM or LLVM would change: min and max, comparisons, differences.

TVM's simplifier takes ``x - x`` for 0, ``x + y - y`` for x, ``x * 0`` for 0, ``x == x`` for true
and ``not x < y`` for ``y <= x``, all wrong for NaN, infinities or rounding. Its ``max`` returns NaN
or the number, depending on the order of the operands.
"""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm_ffi import structural_map

from tilelang.transform.numerics import ops
from tilelang.transform.numerics.dtypes import element
from tilelang.transform.numerics.functions import op_name

__all__ = ["COMPARISONS", "legalize_minmax", "unpack_pairs"]

_WIDE = ("float32", "float64")
#: Comparison nodes and the operator that stands for each.
COMPARISONS: dict[type, str] = {
    prim.EQ: "eq",
    prim.NE: "ne",
    prim.LT: "lt",
    prim.LE: "le",
    prim.GT: "gt",
    prim.GE: "ge",
}
_ARITHMETIC = {prim.Mul: "mul", prim.Div: "div"}
#: Operators of packed pairs and the plain node for each; vectors are computed lane by lane.
_PACKED = {
    "tl.add2": prim.Add,
    "tl.sub2": prim.Sub,
    "tl.mul2": prim.Mul,
    "tl.max2": prim.Max,
    "tl.min2": prim.Min,
}


def legalize_minmax(
    func: T.PrimFunc, *, fast_math: bool = False, floats: tuple[str, ...] = _WIDE
) -> T.PrimFunc:
    """Protect comparisons and differences of floats; ``max`` and ``min`` ignore NaN.

    Concerns the dtypes ``floats``; others are gone (see :func:`promote_narrow`). Plain sums,
    products and quotients stay as they are, so that code generation sees multiply-adds. With
    ``fast_math``, ``max`` and ``min`` stay too.

    Before: ``B[i] = max(A[i], 1.0) - A[i]``. After: ``B[i] = tl.num.sub(tl.num.max(A[i], 1.0),
    A[i])``.
    """
    extremes = {} if fast_math else {prim.Max: "max", prim.Min: "min"}
    always = {prim.Sub: "sub", **extremes}

    def on_binary(node: Any) -> ir.Expr:
        if element(node.a) not in floats:
            return node
        name = COMPARISONS.get(type(node))
        if name is not None:
            return ops.call(name, "bool", node.a, node.b, span=node.span)
        return ops.call(always[type(node)], element(node), node.a, node.b, span=node.span)

    def on_factor(node: Any) -> ir.Expr:
        if element(node) not in floats or not (_is_zero(node.a) or _is_zero(node.b)):
            return node
        return ops.call(_ARITHMETIC[type(node)], element(node), node.a, node.b, span=node.span)

    handlers = [(node, on_binary) for node in (*always, *COMPARISONS)]
    handlers += [(node, on_factor) for node in _ARITHMETIC]
    return structural_map(func, handlers)


def _is_zero(expr: ir.Expr) -> bool:
    expr = expr.value if isinstance(expr, prim.Broadcast) else expr
    return isinstance(expr, prim.FloatImm) and float(expr.value) == 0.0


def unpack_pairs(func: T.PrimFunc, *, dot_products: bool = True) -> T.PrimFunc:
    """Write the operators of packed pairs, and dot products of four bytes, with plain nodes."""

    def on_call(call: ir.Call) -> ir.Expr:
        name, args = op_name(call), call.args
        node = _PACKED.get(name)
        if node is not None:
            return node(args[0], args[1], call.span)
        if name == "tl.fma2":
            return prim.Add(prim.Mul(args[0], args[1], call.span), args[2], call.span)
        if name == "tl.abs2":
            return ir.Call(ir.Op.get("tirx.fabs"), [args[0]], span=call.span, ret_ty=call.ty)
        return _dot_product(call) if dot_products and name == "tirx.dp4a" else call

    return structural_map(func, (ir.Call, on_call))


def _dot_product(call: ir.Call) -> ir.Expr:
    a, b, total = call.args
    lanes = int(a.ty.dtype.lanes)
    for lane in range(lanes):
        position = [T.IntImm("int32", lane)]
        factors = [prim.Cast(ir.PrimType("int32"), prim.Shuffle([v], position)) for v in (a, b)]
        total = prim.Add(total, prim.Mul(*factors, call.span), call.span)
    return total
