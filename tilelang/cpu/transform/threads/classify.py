"""What a statement of a thread program needs: one thread, or all threads at one point."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import VisitInterrupt, structural_visit, structural_walk

from tilelang.ir.intrin.record import find
from tilelang.ir.op import ELEMENT_ATOMIC, REDUCER_UPDATE, TileCall
from tilelang.transform.thread_use import BARRIERS, lane_intrinsic

__all__ = [
    "INDEX_CALLS",
    "PER_THREAD",
    "is_collective_call",
    "is_per_thread_op",
    "is_tile_print",
    "is_update",
    "leaves_loop",
    "meets",
    "mentions",
]

INDEX_CALLS = frozenset({"get_lane_idx", "get_warp_idx", "get_warp_idx_sync", "get_warp_group_idx"})
PER_THREAD = ("local", "local.var")
"""Scopes of storage that every thread has for itself."""


def is_collective_call(node: Any) -> bool:
    """Whether an expression exchanges values between threads."""
    name = lane_intrinsic(node)
    return name is not None and name not in BARRIERS and name not in INDEX_CALLS


def is_update(value: Any) -> bool:
    """Whether an expression is an atomic on one element, or a contribution to a reducer."""
    is_call = isinstance(value, ir.Call)
    return is_call and (value.op.same_as(ELEMENT_ATOMIC) or value.op.same_as(REDUCER_UPDATE))


def is_per_thread_op(call: TileCall, threads: list[ir.Var]) -> bool:
    """Whether a tile op works on a thread's own storage, or at an index that names the thread."""
    regions = [*call.regions("r"), *call.regions("w")]
    return any(r.source.scope() in PER_THREAD or mentions(r, threads) for r in regions)


def is_tile_print(call: Any) -> bool:
    """Whether a call prints a tile of the block, which happens once."""
    record = find(call) if isinstance(call, ir.Call) else None
    if record is None or record.name != "print" or len(call.args) < 2:
        return False
    value = call.args[1]
    scopes = ("shared", "local.fragment")
    return isinstance(value, ir.TensorRegion) and value.source.scope().startswith(scopes)


def mentions(node: Any, variables: Iterable[ir.Var]) -> bool:
    """Whether ``node`` uses one of ``variables``."""
    wanted = set(variables)

    def check(var: ir.Var) -> Any:
        return VisitInterrupt(True) if var in wanted else None

    return structural_walk(node, (ir.Var, check)) is not None


def meets(stmt: Any, threads: list[ir.Var]) -> bool:
    """Whether threads meet inside ``stmt``: at a barrier, exchange, tile op or parallel loop."""

    def on_for(loop: T.For) -> Any:
        return VisitInterrupt(True) if loop.kind == T.ForKind.PARALLEL else None

    def on_call(call: ir.Call) -> Any:
        name = lane_intrinsic(call)
        if (name is not None and name not in INDEX_CALLS) or is_tile_print(call):
            return VisitInterrupt(True)
        tile = TileCall.of(call)
        return (
            VisitInterrupt(True)
            if tile is not None and not is_per_thread_op(tile, threads)
            else None
        )

    return structural_walk(stmt, [(T.For, on_for), (ir.Call, on_call)]) is not None


def leaves_loop(stmt: Any) -> bool:
    """Whether ``stmt`` breaks or continues a loop around it."""

    def stop(node: Any, visitor: Any) -> Any:
        return VisitInterrupt(True)

    def own(node: Any, visitor: Any) -> Any:
        return None  # a loop inside takes its own jumps

    rules = [(T.For, own), (T.While, own), (T.Break, stop), (T.Continue, stop)]
    return structural_visit(stmt, rules) is not None
