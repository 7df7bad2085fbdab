"""Reductions: registers first, then lanes of a warp, then warps through shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.ir import intrin
from tilelang.ir.expr import const_int, dtype_of, is_float_dtype
from tilelang.ir.op import TileCall
from tilelang.ir.op.reducer import identity
from tilelang.ir.region import region_extents
from tilelang.layout.distribution import Distribution, Part
from tilelang.transform.folds import Combine, combine, working_dtype
from tilelang.transform.loops import load, store
from tilelang.transform.simt.barriers import unit
from tilelang.transform.simt.context import SimtContext, register_array
from tilelang.transform.simt.reduced import dealt, reduced

__all__ = [
    "across",
    "exchange_lanes",
    "exchange_warps",
    "inside",
    "lower_reduce",
]


def lower_reduce(call: TileCall, ctx: SimtContext) -> T.Stmt:
    """Reduce dimension ``dim`` of ``src`` into ``dst``; every owner of a result gets it.

    A source in memory is dealt to the threads first.
    """
    src, dst = call.operand("src"), call.operand("dst")
    dim, span = call.attrs.dim, call.span
    kind = call.attrs.kind.removeprefix("abs")
    nan = call.attrs.nan_propagate and is_float_dtype(dtype_of(src))
    dtype = working_dtype(dtype_of(src), dtype_of(dst))
    shape = [const_int(e) or 0 for e in region_extents(src)]
    fold = combine(kind, nan)

    def element(value: ir.Expr) -> ir.Expr:
        value = value if dtype_of(value) == dtype else value.astype(dtype)
        return T.abs(value) if call.attrs.kind.startswith("abs") else value

    if ctx.is_tile(src.source):
        tile = ctx.tile(src.source)
        source, registers = tile.distribution, tile.registers

        def read(slot: Any, at: Sequence[Any]) -> ir.Expr:
            return element(T.BufferLoad(registers, [slot]))

    else:
        source = dealt(shape, ctx.threads)

        def read(slot: Any, at: Sequence[Any]) -> ir.Expr:
            return element(load(src, list(at)))

    result = reduced(source, dim, [e for a, e in enumerate(shape) if a != dim])
    partial = register_array(f"{dst.source.name}_part", result.num_slots, dtype)
    steps: list[T.Stmt] = [T.AllocBuffer(partial)]
    start = identity(kind, dtype)
    steps.append(_in_registers(source, dim, partial, start, fold, read, ctx))
    lanes, warps = across(source, dim, ctx)
    steps += [exchange_lanes(partial, part, fold) for part in lanes]
    if warps:
        steps += exchange_warps(partial, source, result, warps, fold, dim, ctx)
    steps.append(_finish(call, result, partial, fold, dtype, ctx))
    return T.stmt_seq(*[s if _is_plain(s) else unit(s, span) for s in steps])


def _is_plain(stmt: Any) -> bool:
    return isinstance(stmt, (T.AllocBuffer, T.AttrStmt))


def _in_registers(
    source: Distribution,
    dim: int,
    partial: ir.Var,
    start: ir.Expr,
    fold: Combine,
    read: Callable[[Any, Sequence[Any]], ir.Expr],
    ctx: SimtContext,
) -> T.Stmt:
    """Fold what the thread holds itself: ``partial[r] = fold over the slots along dim``."""
    kept = [p for p in source.slots if p.axis != dim]
    along = [p for p in source.slots if p.axis == dim]
    names = {p: T.Var(f"r{number}", "int32") for number, p in enumerate(source.slots)}
    for part, var in names.items():
        ctx.analyzer.bind(var, ir.Range(0, part.extent), True)
    values = [names[p] for p in source.slots]
    slot: Any = T.const(0, "int32")
    for part, var in zip(source.slots, values, strict=True):
        slot = slot + var * part.stride
    target: Any = T.const(0, "int32")
    stride = 1
    for part in kept:
        target = target + names[part] * stride
        stride *= part.extent
    at = [ctx.simplify(_expr(i)) for i in source.indices_of(ctx.thread, values)]
    slot, target = ctx.simplify(slot), ctx.simplify(target)
    old = T.BufferLoad(partial, [target])
    update: T.Stmt = T.BufferStore(partial, fold(old, read(slot, at)), [target])
    guard = inside(source, at, ctx)
    if guard is not None:
        update = T.IfThenElse(guard, update, None)
    for part in along:
        update = T.For(names[part], 0, part.extent, T.ForKind.UNROLLED, update)
    body = T.SeqStmt([T.BufferStore(partial, start, [target]), update])
    for part in kept:
        body = T.For(names[part], 0, part.extent, T.ForKind.UNROLLED, body)
    return body


def _expr(value: Any) -> ir.Expr:
    return value if isinstance(value, ir.Expr) else T.const(int(value), "int32")


def inside(tile: Distribution, at: Sequence[Any], ctx: SimtContext) -> Any | None:
    """Whether the thread and its slot hold an element at all; None if they always do."""
    guard: Any = None
    conditions = [
        T.LT(index, T.const(extent, "int32"))
        for axis, (index, extent) in enumerate(zip(at, tile.shape, strict=True))
        if tile.covered(axis) > extent
    ]
    if tile.num_threads < ctx.threads:
        conditions.append(T.LT(ctx.thread, T.const(tile.num_threads, "int32")))
    for condition in conditions:
        guard = condition if guard is None else T.And(guard, condition)
    return guard


def across(source: Distribution, dim: int, ctx: SimtContext) -> tuple[list[Part], list[Part]]:
    """The thread digits along ``dim``: those a warp can exchange, and the others."""
    lanes, warps = [], []
    whole_warps = ctx.threads % ctx.warp_size == 0
    for part in source.threads:
        if part.axis != dim:
            continue
        reach = part.stride * part.extent
        powers = part.extent & (part.extent - 1) == 0 and part.stride & (part.stride - 1) == 0
        if powers and reach <= ctx.warp_size and whole_warps:
            lanes.append(part)
        elif powers and part.stride < ctx.warp_size and whole_warps:
            inner = ctx.warp_size // part.stride
            lanes.append(Part(part.axis, part.divisor, inner, part.stride))
            warps.append(Part(part.axis, part.divisor * inner, part.extent // inner, ctx.warp_size))
        else:
            warps.append(part)
    return lanes, warps


def exchange_lanes(partial: ir.Var, part: Part, fold: Combine) -> T.Stmt:
    """A butterfly over one digit of the lane number."""
    steps: list[T.Stmt] = []
    size = const_int(partial.shape[0]) or 1
    shuffle = intrin.get("shfl_xor")
    r = T.Var("r", "int32")
    distance = part.stride
    while distance < part.stride * part.extent:
        own = T.BufferLoad(partial, [r])
        mask = T.const(intrin.FULL_MASK, "uint32")
        other = T.Var(f"other{distance}", own.ty)
        exchanged = ir.Call(
            shuffle.op, [own, T.const(distance, "int32"), T.const(32, "int32"), mask], ret_ty=own.ty
        )
        # Bound, for a fold may name it in a branch that not all lanes take.
        steps.append(T.Bind(other, exchanged))
        steps.append(T.BufferStore(partial, fold(own, other), [r]))
        distance *= 2
    return T.For(r, 0, size, T.ForKind.UNROLLED, T.stmt_seq(*steps))


def exchange_warps(
    partial: ir.Var,
    source: Distribution,
    result: Distribution,
    parts: Sequence[Part],
    fold: Combine,
    dim: int,
    ctx: SimtContext,
) -> list[T.Stmt]:
    """Threads that a shuffle does not reach put their results side by side in shared memory.

    One row for each combination of the exchanged digits; a column for every slot of the other
    digits of the thread number.
    """
    rows = 1
    row: Any = T.const(0, "int32")
    for part in parts:
        row = row + _expr(part.of(ctx.thread)) * rows
        rows *= part.extent
    size = const_int(partial.shape[0]) or 1
    others = _other_digits(source, parts, ctx)
    column: Any = T.const(0, "int32")
    columns = 1
    for stride, extent in others:
        column = column + (ctx.thread // stride if stride > 1 else ctx.thread) % extent * columns
        columns *= extent
    dtype = dtype_of(partial)
    # Padded by nothing: neighbours in a row are neighbours in the thread number.
    space = ctx.shared("exchange", [rows, size, columns], dtype)
    r, q = T.Var("r", "int32"), T.Var("q", "int32")
    row, column = ctx.simplify(row), ctx.simplify(column)
    mine = T.BufferLoad(partial, [r])
    put: T.Stmt = T.BufferStore(space, mine, [row, r, column])
    outside = source.num_threads < ctx.threads
    active = T.LT(ctx.thread, T.const(source.num_threads, "int32"))
    put = T.For(r, 0, size, T.ForKind.UNROLLED, put)
    if outside:
        put = T.IfThenElse(active, put, None)
    first = T.BufferStore(partial, T.BufferLoad(space, [T.const(0, "int32"), r, column]), [r])
    rest = T.For(
        q, 1, rows - 1, T.ForKind.UNROLLED if rows <= 32 else T.ForKind.SERIAL,
        T.BufferStore(partial, fold(mine, T.BufferLoad(space, [q, r, column])), [r]),
    )  # fmt: skip
    take: T.Stmt = T.For(r, 0, size, T.ForKind.UNROLLED, T.SeqStmt([first, rest]))
    if outside:
        take = T.IfThenElse(active, take, None)
    return [unit(put), unit(take)]


def _other_digits(
    source: Distribution, parts: Sequence[Part], ctx: SimtContext
) -> list[tuple[int, int]]:
    """The digits ``(stride, extent)`` of the thread number that are not in ``parts``."""
    found: list[tuple[int, int]] = []
    position = 1
    for part in sorted(parts, key=lambda p: p.stride):
        if part.stride > position:
            found.append((position, part.stride // position))
        position = part.stride * part.extent
    if source.num_threads > position:
        found.append((position, source.num_threads // position))
    return found


def _finish(
    call: TileCall,
    result: Distribution,
    partial: ir.Var,
    fold: Combine,
    dtype: str,
    ctx: SimtContext,
) -> T.Stmt:
    """Write the results, combined with the old value unless ``clear``."""
    dst = call.operand("dst")

    def stored(old: ir.Expr, new: ir.Expr) -> ir.Expr:
        if not call.attrs.clear:
            new = fold(old if dtype_of(old) == dtype else old.astype(dtype), new)
        return new if dtype_of(new) == dtype_of(dst) else new.astype(dtype_of(dst))

    if ctx.is_tile(dst.source):
        registers = ctx.tile(dst.source).registers
        r = T.Var("r", "int32")
        old, new = T.BufferLoad(registers, [r]), T.BufferLoad(partial, [r])
        write = T.BufferStore(registers, stored(old, new), [r], call.span)
        return T.For(r, 0, result.num_slots, T.ForKind.UNROLLED, write)
    return _to_memory(call, result, partial, stored, ctx)


def _to_memory(
    call: TileCall,
    result: Distribution,
    partial: ir.Var,
    stored: Callable[[ir.Expr, ir.Expr], ir.Expr],
    ctx: SimtContext,
) -> T.Stmt:
    dst = call.operand("dst")
    extents = region_extents(dst)
    dim = call.attrs.dim
    values = [T.Var(f"r{n}", "int32") for n in range(len(result.slots))]
    for part, var in zip(result.slots, values, strict=True):
        ctx.analyzer.bind(var, ir.Range(0, part.extent), True)
    at = [ctx.simplify(_expr(i)) for i in result.indices_of(ctx.thread, values)]
    rank = len(region_extents(call.operand("src")))
    offsets: list[Any] = list(at)
    if len(extents) == rank:
        offsets.insert(dim, T.const(0, "int32"))
    while len(offsets) < len(extents):
        offsets.append(T.const(0, "int32"))
    slot: Any = T.const(0, "int32")
    for part, var in zip(result.slots, values, strict=True):
        slot = slot + var * part.stride
    new = T.BufferLoad(partial, [ctx.simplify(slot)])
    write: T.Stmt = store(dst, offsets, stored(load(dst, offsets), new), call.span)
    guard = inside(result, at, ctx)
    for part in result.copies:
        first = T.EQ(_expr(part.of(ctx.thread)), T.const(0, "int32"))
        guard = first if guard is None else T.And(guard, first)
    if guard is not None:
        write = T.IfThenElse(guard, write, None)
    for part, var in zip(result.slots, values, strict=True):
        write = T.For(var, 0, part.extent, T.ForKind.UNROLLED, write)
    return write
