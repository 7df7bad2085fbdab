"""Local arrays of block programs that work as tiles: one array for the block.

A program that names no thread describes a block, so a local array of it has one value for each
element. Scalar code gives all threads the same values, and a copy in every thread serves. An array
that a parallel nest writes at its iteration, or that a tile op works on, gets different elements
from different threads: it moves to shared memory.
"""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_mutate

from tilelang.ir.op import TileCall
from tilelang.transform.simt.access_map import mentions
from tilelang.transform.simt.nest import accesses_of, nest_of
from tilelang.transform.simt.sites import view_of

__all__ = ["in_shared_memory", "share_block_arrays"]


def share_block_arrays(body: T.Stmt) -> tuple[T.Stmt, dict[ir.Var, str]]:
    """Move the local arrays of a block program that threads fill together to shared memory.

    Returns
    -------
    The new body, and the arrays that moved, each with the reason.
    """
    found: dict[ir.Var, str] = {}
    declared: list[ir.Var] = []
    views: list[tuple[ir.Var, ir.Var]] = []

    def on_for(loop: T.For, mutator: Any) -> Any:
        nest = nest_of(loop)
        if nest is None:
            return mutator.default_mutate(loop)
        for access in accesses_of(nest.body):
            filled = access.is_write and mentions(list(access.indices), nest.variables)
            if filled and access.scope == "local":
                found.setdefault(access.buffer, "the iterations of a parallel loop fill it")
        return loop  # what is declared inside belongs to an iteration

    def on_evaluate(stmt: T.Evaluate, mutator: Any) -> Any:
        call = TileCall.of(stmt)
        if call is None:
            return mutator.default_mutate(stmt)
        for region in call.operands.values():
            if isinstance(region, ir.TensorRegion) and str(region.source.scope()) == "local":
                found.setdefault(region.source, f"T.{call.name} works on it")
        return stmt

    def on_alloc(stmt: T.AllocBuffer, mutator: Any) -> Any:
        declared.append(stmt.buffer)
        return stmt

    def on_declare(stmt: T.DeclBuffer, mutator: Any) -> Any:
        source = view_of(stmt)
        if source is not None:
            views.append((stmt.buffer, source))
        return mutator.default_mutate(stmt)

    structural_mutate(
        body,
        [
            (T.For, on_for),
            (T.Evaluate, on_evaluate),
            (T.AllocBuffer, on_alloc),
            (T.DeclBuffer, on_declare),
        ],
    )
    _spread_to_views(found, views)
    arrays = {buffer for buffer in declared if buffer in found}
    named = arrays | {view for view, _ in views if view in found}
    moved = {old: in_shared_memory(old) for old in named}
    if moved:
        body = structural_map(body, (ir.Var, lambda v: moved.get(v, v)))
    return body, {old: found[old] for old in arrays}


def _spread_to_views(found: dict[ir.Var, str], views: list[tuple[ir.Var, ir.Var]]) -> None:
    """All names of one storage move together."""
    for view, source in (*reversed(views), *views):  # to the array, then to its other names
        if view in found:
            found.setdefault(source, found[view])
        if source in found:
            found.setdefault(view, found[source])


def in_shared_memory(tile: ir.Var) -> ir.Var:
    """A shared buffer of the shape of ``tile``."""
    return T.decl_buffer(
        list(tile.shape), tile.ty.dtype, str(tile.name), scope="shared.dyn", layout=None,
        data_alignment=16, span=tile.span,
    )  # fmt: skip
