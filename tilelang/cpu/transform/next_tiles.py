"""Which parts of tensors the next iteration of a pipelined loop copies to tiles."""

from __future__ import annotations

from typing import Any

from tvm import DataType, ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_walk

from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.op import TileCall
from tilelang.ir.region import region_extents, region_mins

__all__ = ["next_tiles"]


def next_tiles(loop: T.For) -> tuple[ir.TensorRegion, ...]:
    """The regions of tensors that the iteration after the current one copies.

    Only of a loop that the author wants pipelined (``num_stages`` of at least 2), and only regions
    of constant size whose place depends on nothing but loop variables and parameters.

    Before: ``for k in T.Pipelined(8, num_stages=3): T.copy(A[0, k * 32], tile)``. Result:
    ``A[0:64, (k + 1) * 32:+32]``.
    """
    if (const_int(loop.annotations.get("num_stages", 0)) or 0) < 2:
        return ()
    found: list[ir.TensorRegion] = []
    bound: list[ir.Var] = []

    def on_statement(stmt: T.Evaluate) -> None:
        call = TileCall.of(stmt)
        if call is None or call.name != "copy":
            return
        source = call.operand("src")
        if source.source.scope() == "global" and _is_matrix(source):
            found.append(source)

    structural_walk(
        loop.body,
        [
            (T.Evaluate, on_statement),
            (T.Bind, lambda bind: bound.append(bind.var)),
            (T.For, lambda inner: bound.append(inner.loop_var)),
        ],
    )
    return tuple(_shifted(source, loop.loop_var) for source in found if _moves(source, loop, bound))


def _is_matrix(region: ir.TensorRegion) -> bool:
    *lead, rows, cols = (const_int(extent) for extent in (1, *region_extents(region)))
    constant = rows is not None and cols is not None
    whole_bytes = DataType(dtype_of(region)).bits % 8 == 0
    return constant and whole_bytes and len(lead) > 0 and all(extent == 1 for extent in lead)


def _moves(region: ir.TensorRegion, loop: T.For, bound: list[ir.Var]) -> bool:
    """Whether the place follows the loop variable, and is known before the iteration."""
    uses: list[bool] = []
    blocked: list[Any] = []

    def on_var(var: ir.Var) -> None:
        uses.append(var.same_as(loop.loop_var))
        if any(var.same_as(other) for other in bound):
            blocked.append(var)

    structural_walk(list(region_mins(region)), [(ir.TensorLoad, blocked.append), (ir.Var, on_var)])
    return any(uses) and not blocked


def _shifted(region: ir.TensorRegion, var: ir.Var) -> ir.TensorRegion:
    step = T.const(1, dtype_of(var))
    return structural_map(region, (ir.Var, lambda v: v + step if v.same_as(var) else v))
