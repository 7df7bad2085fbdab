"""Bodies of the ops that treat every element alike, such as copy, fill, im2col and atomics."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.ir.expr import dtype_of
from tilelang.ir.op import ELEMENT_ATOMIC, AtomicAttrs, TileCall
from tilelang.ir.op.reducer import identity
from tilelang.ir.region import region_extents
from tilelang.transform.loops import load, moving_extents, nest, store

__all__ = [
    "lower_atomic",
    "lower_copy",
    "lower_fill",
    "lower_finalize_reducer",
    "lower_im2col",
    "lower_reducer_init",
    "lower_transpose",
]


def _copy(src: ir.TensorRegion, dst: ir.TensorRegion, span: ir.Span | None) -> T.Stmt:
    def body(at: list[ir.Expr]) -> T.Stmt:
        return store(dst, at, load(src, at, dtype_of(dst)), span)

    return nest(moving_extents(dst), body, span)


def lower_copy(call: TileCall, ctx: Any) -> T.Stmt:
    """Element by element, cast to the destination's dtype."""
    return _copy(call.operand("src"), call.operand("dst"), call.span)


def lower_fill(call: TileCall, ctx: Any) -> T.Stmt:
    """Store one value everywhere; an expression is evaluated once before."""
    dst, value = call.operand("dst"), call.operand("value")
    if isinstance(value, (T.IntImm, T.FloatImm)):
        return nest(moving_extents(dst), lambda at: store(dst, at, value, call.span), call.span)
    once = T.Var("value", value.ty)
    loop = nest(moving_extents(dst), lambda at: store(dst, at, once, call.span), call.span)
    return T.SeqStmt([T.Bind(once, value, call.span), loop])


def lower_transpose(call: TileCall, ctx: Any) -> T.Stmt:
    """Element by element with the last two dimensions swapped."""
    src, dst = call.operand("src"), call.operand("dst")

    def body(at: list[ir.Expr]) -> T.Stmt:
        return store(dst, at, load(src, [*at[:-2], at[-1], at[-2]], dtype_of(dst)), call.span)

    return nest(region_extents(dst), body, call.span)


def lower_im2col(call: TileCall, ctx: Any) -> T.Stmt:
    """Element by element; outside the image 0. Geometry as in :mod:`tilelang.ir.op.im2col`."""
    attrs, img, col = call.attrs, call.operand("img"), call.operand("col")
    batch, height, width, channels = region_extents(img)
    reach = attrs.dilation * (attrs.kernel - 1) + 1
    out_h = (height + 2 * attrs.pad - reach) // attrs.stride + 1
    out_w = (width + 2 * attrs.pad - reach) // attrs.stride + 1
    rows, cols = region_extents(col)[-2:]

    def body(at: list[ir.Expr]) -> T.Stmt:
        m = call.operand("nhw_step") * rows + at[-2]
        k = call.operand("c_step") * cols + at[-1]
        n, c = m // (out_h * out_w), k % channels
        y = (
            m // out_w % out_h * attrs.stride
            + k // channels // attrs.kernel * attrs.dilation
            - attrs.pad
        )
        x = m % out_w * attrs.stride + k // channels % attrs.kernel * attrs.dilation - attrs.pad
        inside = T.all(
            n < batch, k < attrs.kernel**2 * channels, y >= 0, y < height, x >= 0, x < width
        )
        dtype = dtype_of(col)
        value = T.if_then_else(inside, load(img, [n, y, x, c], dtype), T.const(0, dtype))
        return store(col, at, value, call.span)

    return nest(region_extents(col), body, call.span)


def lower_atomic(call: TileCall, ctx: Any) -> T.Stmt:
    """One element atomic an element."""
    dst, value = call.operand("dst"), call.operand("value")

    def body(at: list[ir.Expr]) -> T.Stmt:
        dtype = dtype_of(dst)
        target = load(dst, at)
        update = load(value, at, dtype) if isinstance(value, ir.TensorRegion) else value
        attrs = AtomicAttrs(kind=call.attrs.kind, order=call.attrs.order)
        return T.Evaluate(
            ir.Call(ELEMENT_ATOMIC, [target, update], attrs=attrs, ret_ty=dtype), call.span
        )

    return nest(moving_extents(dst), body, call.span)


def lower_reducer_init(call: TileCall, ctx: Any) -> T.Stmt:
    """Fill with the start value, or the neutral element."""
    reducer, start = call.operand("reducer"), call.get("start")
    value = identity(call.attrs.kind, dtype_of(reducer)) if start is None else start
    once = T.Var("start", value.ty)
    loop = nest(moving_extents(reducer), lambda at: store(reducer, at, once, call.span), call.span)
    return T.SeqStmt([T.Bind(once, value, call.span), loop])


def lower_finalize_reducer(call: TileCall, ctx: Any) -> T.Stmt:
    """One thread has seen every contribution, so only the result moves."""
    dst = call.get("dst")
    if dst is None:
        return T.Evaluate(0)
    return _copy(call.operand("reducer"), dst, call.span)
