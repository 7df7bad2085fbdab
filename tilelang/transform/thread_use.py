"""Whether a program is written for threads, or for a block as a whole."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm_ffi import VisitInterrupt, structural_walk

from tilelang.ir.intrin.record import find

__all__ = ["BARRIERS", "lane_intrinsic", "needs_threads"]

BARRIERS = frozenset({"sync_threads", "sync_warp"})


def lane_intrinsic(node: Any) -> str | None:
    """Name of the lane intrinsic a call is, or None."""
    if not isinstance(node, ir.Call):
        return None
    record = find(node)
    return record.name if record is not None and record.lanes else None


def needs_threads(body: Any, threads: list[ir.Var]) -> bool:
    """Whether the program names a thread index or uses a lane intrinsic other than barriers.

    Such a program runs once in every thread; any other runs once in the block.
    """
    uses: list[ir.Var] = []
    structural_walk(body, (ir.Var, uses.append))
    # A loop variable is visited once where the loop defines it.
    if any(sum(use.same_as(var) for use in uses) > 1 for var in threads):
        return True

    def check(call: ir.Call) -> Any:
        name = lane_intrinsic(call)
        return VisitInterrupt(True) if name is not None and name not in BARRIERS else None

    return structural_walk(body, (ir.Call, check)) is not None
