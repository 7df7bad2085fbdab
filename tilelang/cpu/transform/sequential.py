"""Turn tile-language loops into plain ones: a CPU block is one thread."""

from __future__ import annotations

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_walk

__all__ = ["drop_thread_loops", "sequential_loops", "uses_threads"]


def uses_threads(func: T.PrimFunc) -> bool:
    """Whether the program names a thread index explicitly."""
    threads: list[ir.Var] = []
    uses: list[ir.Var] = []

    def on_for(loop: T.For) -> None:
        if _thread_tag(loop) is not None:
            threads.append(loop.loop_var)

    structural_walk(func.body, (T.For, on_for))
    structural_walk(func.body, (ir.Var, uses.append))
    # Each loop variable is visited once where it is defined.
    return any(sum(use.same_as(var) for use in uses) > 1 for var in threads)


def drop_thread_loops(func: T.PrimFunc) -> T.PrimFunc:
    """Remove the thread loops of a launch whose program names no thread index.

    Before: ``for tx in T.thread_binding(128, "threadIdx.x"): body``. After: ``body``.
    """

    def on_for(loop: T.For) -> T.Stmt:
        return loop.body if _thread_tag(loop) is not None else loop

    return func.with_body(structural_map(func.body, (T.For, on_for)))


def sequential_loops(func: T.PrimFunc) -> T.PrimFunc:
    """Make parallel and pipelined loops sequential and drop the annotations that are spent.

    Before: ``for i in T.parallel(64): ...``. After: ``for i in range(64): ...``.
    """

    def on_for(loop: T.For) -> T.Stmt:
        if loop.kind not in (T.ForKind.PARALLEL, T.ForKind.SERIAL):
            return loop
        if loop.kind == T.ForKind.SERIAL and not len(loop.annotations):
            return loop
        return T.For(loop.loop_var, loop.min, loop.extent, T.ForKind.SERIAL, loop.body, step=loop.step, span=loop.span)

    return func.with_body(structural_map(func.body, (T.For, on_for)))


def _thread_tag(loop: T.For) -> str | None:
    if loop.kind != T.ForKind.THREAD_BINDING:
        return None
    tag = str(loop.thread_binding.thread_tag)
    return tag if tag.startswith("threadIdx") else None
