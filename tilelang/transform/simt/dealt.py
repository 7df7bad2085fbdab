"""Element-wise statements that op bodies make, dealt to the threads like the program's nests."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.layout.distribution import Distribution
from tilelang.transform.simt.barriers import unit
from tilelang.transform.simt.context import SimtContext
from tilelang.transform.simt.defaults import default_distribution
from tilelang.transform.simt.nest import nest_of
from tilelang.transform.simt.once import once
from tilelang.transform.simt.parallel import lower_nest

__all__ = ["deal"]


def deal(stmt: Any, wanted: Distribution | None, ctx: SimtContext) -> T.Stmt:
    """Lower a nest, a store of one element, or a sequence of these.

    Parameters
    ----------
    wanted : Distribution, optional
        Of the tile that the statement reads or writes; threads then take their own elements.
    """
    if isinstance(stmt, T.SeqStmt):
        return T.stmt_seq(*[deal(child, wanted, ctx) for child in stmt.seq])
    nest = nest_of(stmt)
    if nest is not None:
        loop = _over_loops(wanted) if wanted is not None else None
        if loop is None:
            loop = default_distribution(nest, ctx.threads, ctx.layouts, ctx.analyzer)
        return unit(lower_nest(nest, loop, ctx), stmt.span)
    if not isinstance(stmt, T.BufferStore):
        return stmt
    zero = [T.const(0, "int32")]
    value: Any = stmt.value
    if isinstance(value, ir.TensorLoad) and ctx.is_tile(value.source):
        value = T.BufferLoad(ctx.tile(value.source).registers, zero)
    if ctx.is_tile(stmt.buffer):
        registers = ctx.tile(stmt.buffer).registers
        return unit(T.BufferStore(registers, value, zero, stmt.span))
    return once(T.BufferStore(stmt.buffer, value, list(stmt.indices), stmt.span), ctx)


def _over_loops(tile: Distribution) -> Distribution:
    """The distribution over the dimensions that are loops: those of extent above 1."""
    moving = [axis for axis, extent in enumerate(tile.shape) if extent != 1]
    axes = {axis: position for position, axis in enumerate(moving)}
    return tile.onto(axes, [tile.shape[axis] for axis in moving])
