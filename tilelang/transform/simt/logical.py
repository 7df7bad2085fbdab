"""``T.any_of`` and ``T.all_of``: every thread looks at its share, then the block agrees."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.ir import intrin
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.op import TileCall
from tilelang.ir.region import region_extents
from tilelang.transform.loops import load, store
from tilelang.transform.simt.barriers import unit
from tilelang.transform.simt.context import SimtContext, register_array
from tilelang.transform.simt.row_major import digits_of

__all__ = ["lower_logical"]

_UNROLL_LIMIT = 16


def lower_logical(call: TileCall, ctx: SimtContext) -> T.Stmt:
    """Whether any or all elements of memory are non-zero, in every thread.

    Before: ``T.any_of(S)`` of 256 elements, 128 threads. After: ``for t in T.unroll(2): mine = mine
    or S[t * 128 + tx] != 0``, then ``result = T.syncthreads_or(mine) != 0``.
    """
    src, dst = call.operand("src"), call.operand("dst")
    any_of = call.attrs.kind == "any"
    zero = T.const(0, "int32")
    mine = register_array("mine", 1, "bool")
    extents = region_extents(src)
    total: Any = T.const(1, "int32")
    for extent in extents:
        total = total * extent
    total = ctx.simplify(total)
    own = str(src.source.scope()).startswith("local")
    turn = T.Var("turn", dtype_of(total))
    thread = ctx.thread if dtype_of(total) == "int32" else ctx.thread.astype(dtype_of(total))
    position = turn if own else turn * ctx.threads + thread
    count = total if own else ctx.simplify((total + (ctx.threads - 1)) // ctx.threads)
    ctx.analyzer.bind(turn, ir.Range.from_min_extent(T.const(0, dtype_of(turn)), count), True)
    at = digits_of(position, extents, ctx)
    element = load(src, at)
    truth = element
    if dtype_of(element) != "bool":
        truth = T.NE(element, T.const(0, dtype_of(element)))
    old = T.BufferLoad(mine, [zero])
    look: T.Stmt = T.BufferStore(
        mine, T.Or(old, truth) if any_of else T.And(old, truth), [zero], call.span
    )
    inside = T.LT(position, total)
    if not ctx.analyzer.can_prove(inside):
        look = T.IfThenElse(inside, look, None, call.span)
    size = const_int(count)
    unroll = size is not None and size <= _UNROLL_LIMIT
    kind = T.ForKind.UNROLLED if unroll else T.ForKind.SERIAL
    vote = intrin.get("syncthreads_or" if any_of else "syncthreads_and")
    agreed = ir.Call(vote.op, [old], ret_ty=ir.PrimType("int32"), span=call.span)
    return T.SeqStmt(
        [
            T.AllocBuffer(mine),
            T.BufferStore(mine, T.const(not any_of, "bool"), [zero]),
            unit(T.For(turn, 0, count, kind, look, span=call.span), call.span),
            store(dst, [zero], T.NE(agreed, zero), call.span),
        ]
    )
