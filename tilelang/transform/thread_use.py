"""Whether a program is written for threads, or for a block as a whole."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import VisitInterrupt, structural_walk

from tilelang.ir.intrin.record import find

__all__ = ["BARRIERS", "is_thread_program", "lane_intrinsic", "needs_threads"]

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


def is_thread_program(func: T.PrimFunc) -> bool:
    """Whether a launch of ``func`` runs thread by thread.

    Where the code of such a program runs a statement once for all threads, it checks that they
    agree, with a message that shows the line of the statement.
    """
    threads: list[ir.Var] = []

    def on_loop(loop: T.For) -> None:
        bound = loop.kind == T.ForKind.THREAD_BINDING
        if bound and str(loop.thread_binding.thread_tag).startswith("threadIdx"):
            threads.append(loop.loop_var)

    structural_walk(func.body, (T.For, on_loop))
    return needs_threads(func.body, threads)
