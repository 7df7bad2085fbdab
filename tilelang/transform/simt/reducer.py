"""Reducers: private partial results that threads join at the end, or atomics in shared memory.

A reducer in registers is distributed like a fragment, but copies of an element differ: each holds
what its thread has contributed, and finalising folds them. Where the nests that update it deal
their iterations differently, or its elements are read as such, it lies in shared memory.
"""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map

from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.op import ELEMENT_ATOMIC, REDUCER_UPDATE, AtomicAttrs, TileCall
from tilelang.ir.op.reducer import identity
from tilelang.ir.region import region_extents
from tilelang.layout.distribution import COPY, Distribution
from tilelang.transform import elementwise
from tilelang.transform.folds import combine
from tilelang.transform.loops import store
from tilelang.transform.simt.barriers import unit
from tilelang.transform.simt.context import SimtContext
from tilelang.transform.simt.dealt import deal
from tilelang.transform.simt.reduce import across, exchange_lanes, exchange_warps, inside

__all__ = ["contribute", "lower_finalize_reducer", "lower_reducer_init", "update_atomically"]

_KINDS = {"sum": "add", "max": "max", "min": "min", "bitand": "and", "bitor": "or", "bitxor": "xor"}


def contribute(body: T.Stmt) -> T.Stmt:
    """Write contributions to registers as stores.

    Before: ``T.reducer_update(r[0], v)``. After: ``r[0] = r[0] + v``.
    """

    def update(stmt: T.Evaluate) -> Any:
        call = stmt.value
        if not isinstance(call, ir.Call) or not call.op.same_as(REDUCER_UPDATE):
            return stmt
        target, value = call.args
        fold = combine(call.attrs.kind)
        return T.BufferStore(target.source, fold(target, value), list(target.indices), stmt.span)

    return structural_map(body, (T.Evaluate, update))


def update_atomically(body: T.Stmt) -> T.Stmt:
    """Write contributions to shared memory as atomics.

    Before: ``T.reducer_update(r[i], v)``. After: ``T.atomic_add(r[i], v)``.
    """

    def update(call: ir.Call) -> Any:
        if not call.op.same_as(REDUCER_UPDATE):
            return call
        target, value = call.args
        if not str(target.source.scope()).startswith("shared"):
            return call
        attrs = AtomicAttrs(kind=_KINDS[call.attrs.kind])
        return ir.Call(
            ELEMENT_ATOMIC, [target, value], attrs=attrs, ret_ty=dtype_of(target), span=call.span
        )

    return structural_map(body, (ir.Call, update))


def lower_reducer_init(call: TileCall, ctx: SimtContext) -> T.Stmt:
    """The neutral element everywhere; the start value in one copy."""
    region = call.operand("reducer")
    if not ctx.is_tile(region.source):
        return deal(elementwise.lower_reducer_init(call, None), None, ctx)
    tile = ctx.tile(region.source)
    neutral = identity(call.attrs.kind, dtype_of(region))
    r = T.Var("r", "int32")
    start = call.get("start")
    first = _first_copy(tile.distribution, ctx) if start is not None else None
    value = start if start is not None else neutral
    if first is not None:
        value = T.Select(first, value, neutral)
    fill = T.BufferStore(tile.registers, value, [r], call.span)
    return T.For(r, 0, tile.distribution.num_slots, T.ForKind.UNROLLED, fill, span=call.span)


def lower_finalize_reducer(call: TileCall, ctx: SimtContext) -> T.Stmt:
    """Fold the copies by shuffles and shared memory, then write the result."""
    region, dst = call.operand("reducer"), call.get("dst")
    if not ctx.is_tile(region.source):
        if dst is None:
            return T.Evaluate(0)
        wanted = ctx.tile(dst.source).distribution if ctx.is_tile(dst.source) else None
        return deal(elementwise.lower_finalize_reducer(call, None), wanted, ctx)
    tile = ctx.tile(region.source)
    partial, distribution = tile.registers, tile.distribution
    fold = combine(call.attrs.kind)
    lanes, warps = across(distribution, COPY, ctx)
    steps: list[T.Stmt] = [unit(exchange_lanes(partial, part, fold), call.span) for part in lanes]
    if warps:
        steps += exchange_warps(partial, distribution, distribution, warps, fold, COPY, ctx)
    steps.append(unit(_result(call, partial, distribution, ctx), call.span))
    return T.stmt_seq(*steps)


def _first_copy(tile: Distribution, ctx: SimtContext) -> Any | None:
    """Whether the thread holds the first copy of its elements; None if there is only one."""
    found: Any = None
    for part in tile.copies:
        digit = part.of(ctx.thread)
        first = T.EQ(ctx.simplify(digit), T.const(0, "int32"))
        found = first if found is None else T.And(found, first)
    return found


def _result(call: TileCall, partial: ir.Var, tile: Distribution, ctx: SimtContext) -> T.Stmt:
    dst = call.operand("dst")
    if ctx.is_tile(dst.source):
        registers = ctx.tile(dst.source).registers
        r = T.Var("r", "int32")
        value = T.BufferLoad(partial, [r])
        if dtype_of(registers) != dtype_of(partial):
            value = value.astype(dtype_of(registers))
        put: T.Stmt = T.BufferStore(registers, value, [r], call.span)
        return T.For(r, 0, tile.num_slots, T.ForKind.UNROLLED, put, span=call.span)
    values = [T.Var(f"r{n}", "int32") for n in range(len(tile.slots))]
    slot: Any = T.const(0, "int32")
    for part, var in zip(tile.slots, values, strict=True):
        ctx.analyzer.bind(var, ir.Range(0, part.extent), True)
        slot = slot + var * part.stride
    at = [ctx.simplify(_expr(index)) for index in tile.indices_of(ctx.thread, values)]
    value = T.BufferLoad(partial, [ctx.simplify(slot)])
    put = store(dst, _offsets(dst, tile, at), value, call.span)
    conditions = [c for c in (_first_copy(tile, ctx), inside(tile, at, ctx)) if c is not None]
    for condition in conditions:
        put = T.IfThenElse(condition, put, None, call.span)
    for part, var in zip(tile.slots, values, strict=True):
        put = T.For(var, 0, part.extent, T.ForKind.UNROLLED, put)
    return put


def _offsets(dst: ir.TensorRegion, tile: Distribution, at: list[Any]) -> list[Any]:
    """``at`` in the dimensions of ``dst``, which may have further ones of extent 1."""
    extents = region_extents(dst)
    if len(extents) == len(at):
        return at
    moving = [i for i, extent in zip(at, tile.shape, strict=True) if extent != 1]
    rest = iter(moving)
    return [T.const(0, "int32") if const_int(e) == 1 else next(rest) for e in extents]


def _expr(value: Any) -> ir.Expr:
    return value if isinstance(value, ir.Expr) else T.const(int(value), "int32")
