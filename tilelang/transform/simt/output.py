"""``T.print`` of tiles: one thread of the block prints element after element."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.intrin import simt
from tilelang.ir.region import region_extents, region_mins
from tilelang.transform.loops import nest
from tilelang.transform.simt.barriers import unit
from tilelang.transform.simt.context import SimtContext
from tilelang.transform.simt.dealt import deal

__all__ = ["lower_print", "prints_tile"]

_WARPS_OF_GROUP = 4


def prints_tile(stmt: Any) -> bool:
    """Whether a statement is ``T.print`` of a buffer or a slice."""
    call: Any = stmt.value if isinstance(stmt, T.Evaluate) else None
    named = isinstance(call, ir.Call) and isinstance(call.op, ir.Op) and call.op.name == "tl.print"
    return named and len(call.args) > 1 and isinstance(call.args[1], ir.TensorRegion)


def lower_print(stmt: T.Evaluate, ctx: SimtContext, block_program: bool) -> T.Stmt:
    """The loop that prints a region.

    Shared tiles and fragments are printed by the first lane of the warp asked for; other buffers
    by every thread, or by the first in a program of blocks.

    Before: ``T.print(S)``. After: ``if tx == 0: for i in range(64): T.print_element("", "S", i,
    S[i])``.
    """
    call: Any = stmt.value
    message, region, group, warp = call.args
    source, shown, before = region.source, region.source, []
    if ctx.is_tile(source):
        shown, copy = _gathered(source, ctx)
        before.append(copy)
    of_block = not _is_own(source)
    printing = unit(_loop(message, region, shown, ctx), stmt.span)
    if of_block or block_program:
        number = (const_int(group) or 0) * _WARPS_OF_GROUP + (const_int(warp) or 0)
        printer = number * ctx.warp_size if of_block else 0
        first = T.EQ(ctx.thread, T.const(printer, "int32"))
        printing = unit(T.IfThenElse(first, printing, None, stmt.span), stmt.span)
    return T.stmt_seq(*before, printing)


def _is_own(buffer: ir.Var) -> bool:
    """Whether the buffer is a thread's own, or one of the whole grid."""
    scope = str(buffer.scope())
    return scope == "global" or scope in ("local", "local.var")


def _gathered(tile: ir.Var, ctx: SimtContext) -> tuple[ir.Var, T.Stmt]:
    """A copy of a distributed tile in shared memory, and the statement that makes it."""
    space = ctx.shared(str(tile.name), [int(e) for e in tile.shape], dtype_of(tile))

    def put(at: list[ir.Expr]) -> T.Stmt:
        return T.BufferStore(space, T.BufferLoad(tile, at), at)

    copy = nest(list(tile.shape), put, None)
    return space, deal(copy, ctx.tile(tile).distribution, ctx)


def _loop(message: ir.Expr, region: ir.TensorRegion, shown: ir.Var, ctx: SimtContext) -> T.Stmt:
    """``print_element`` for every element; the index counts in row-major order."""
    extents = region_extents(region)
    variables = [T.Var("ijklmnop"[n % 8], "int32") for n in range(len(extents))]
    at = [m + v for m, v in zip(region_mins(region), variables, strict=True)]
    number: Any = T.const(0, "int32")
    for index, extent in zip(at, region.source.shape, strict=True):
        number = number * extent + index
    value = T.BufferLoad(shown, at)
    name = str(region.source.name)
    body: T.Stmt = simt.call("print_element", message, name, ctx.simplify(number), value)
    for var, extent in reversed(list(zip(variables, extents, strict=True))):
        body = T.For(var, 0, extent, T.ForKind.SERIAL, body)
    return body
