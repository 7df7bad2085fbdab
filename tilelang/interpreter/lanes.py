"""Constructs in which threads take part together: barriers, shuffles, votes and thread numbers.

A launch that names its threads is run with a lane axis: one value a thread. The meaning of a warp
intrinsic is the reference of its record over the lanes of each warp. A statement is run for all
threads before the next one starts, so barriers only check who arrives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import ir

from tilelang.errors import UnsupportedError
from tilelang.interpreter.domain import Mask
from tilelang.interpreter.machine import Machine
from tilelang.interpreter.nodes import Fn, dtype_of
from tilelang.interpreter.rules import call_rule, narrow, widen
from tilelang.ir import intrin

__all__ = ["warp_intrinsic"]


def _threads(m: Machine, what: str, span: ir.Span | None) -> np.ndarray:
    """Which threads are active; an error outside of thread code."""
    if m.domain.in_parallel:
        raise m.error(f"{what} cannot be used inside T.Parallel or an operand of a tile op", span)
    return np.broadcast_to(m.active, m.domain.shape or (1,))


def _as_value(m: Machine, by_thread: np.ndarray) -> Any:
    return by_thread if m.domain.shape else by_thread[0]


def _by_warp(value: Any, threads: int, warp: int) -> np.ndarray:
    """Arrange one value a thread as (warps, lanes); the lanes missing at the end are 0."""
    value = np.broadcast_to(value, (threads,))
    padded = np.zeros(-(-threads // warp) * warp, value.dtype)
    padded[:threads] = value
    return padded.reshape(-1, warp)


def warp_intrinsic(c: Any, expr: ir.Call, record: intrin.Intrinsic) -> Fn:
    """The function of a shuffle or vote."""
    result, kinds = dtype_of(expr), [dtype_of(a) for a in expr.args]
    parts, span = [c.value(a) for a in expr.args], expr.span
    names = [result.name, *(kind.name for kind in kinds)]
    reference = record.reference
    assert reference is not None

    def run(m: Machine) -> Any:
        active = _threads(m, f"T.{record.name}", span)
        threads, warp = len(active), m.options.warp_size
        values = [widen(part(m), kind) for part, kind in zip(parts, kinds, strict=True)]
        arranged = [_by_warp(value, threads, warp) for value in (active, *values)]
        found = narrow(reference(names, *arranged), result)
        return _as_value(m, np.asarray(found).reshape(-1)[:threads])

    return run


def _meet(m: Machine, what: str, span: ir.Span | None) -> np.ndarray:
    """A barrier of the block: every thread that has not returned must be there."""
    active = _threads(m, what, span)
    missing = ~(active | np.broadcast_to(m.returned, active.shape))
    if missing.any():
        raise m.error(
            f"{what}: only {int(active.sum())} of {len(active)} threads reach this barrier; "
            f"thread {int(np.argmax(missing))} does not",
            span,
        )
    return active


@call_rule("tl.sync_threads")
def _sync_threads(c: Any, expr: ir.Call) -> Fn:
    """With a thread count, exactly that many threads must arrive."""
    span = expr.span
    count = c.index(expr.args[1]) if len(expr.args) > 1 else None

    def run(m: Machine) -> None:
        if not m.domain.shape:  # threads are not told apart: all arrive together
            return
        if count is None:
            _meet(m, "T.sync_threads", span)
            return
        active = _threads(m, "T.sync_threads", span)
        wanted = np.broadcast_to(count(m), active.shape)
        if (wanted[active] != int(active.sum())).any():
            raise m.error(
                f"T.sync_threads: the barrier waits for {int(wanted[active][0])} threads, but "
                f"{int(active.sum())} reach it",
                span,
            )

    return run


@call_rule("tl.sync_warp")
def _sync_warp(c: Any, expr: ir.Call) -> Fn:
    return lambda m: None


@call_rule("tl.sync_grid", "tl.sync_global")
def _sync_grid(c: Any, expr: ir.Call) -> Fn:
    name = expr.op.name.removeprefix("tl.")
    raise UnsupportedError(
        f"T.{name} needs all blocks at the same time; here they run one after another. "
        "Use two launches",
        expr.span,
    )


@call_rule("tl.syncthreads_count", "tl.syncthreads_and", "tl.syncthreads_or")
def _block_vote(c: Any, expr: ir.Call) -> Fn:
    name, predicate, span = expr.op.name.removeprefix("tl."), c.value(expr.args[0]), expr.span

    def run(m: Machine) -> Any:
        active = _meet(m, f"T.{name}", span)
        held = np.broadcast_to(predicate(m), active.shape) != 0
        if name == "syncthreads_count":
            return np.int32((held & active).sum())
        if name == "syncthreads_and":
            return np.int32((held | ~active).all())
        return np.int32((held & active).any())

    return run


def _number(m: Machine, what: str, span: ir.Span | None) -> np.ndarray:
    return np.arange(len(_threads(m, what, span)), dtype=np.int32)


@call_rule("tl.get_lane_idx", "tl.get_warp_idx", "tl.get_warp_idx_sync", "tl.get_warp_group_idx")
def _thread_number(c: Any, expr: ir.Call) -> Fn:
    name, span = expr.op.name.removeprefix("tl."), expr.span
    sizes = [c.index(a) for a in expr.args]

    def run(m: Machine) -> Any:
        number = _number(m, f"T.{name}", span)
        warp = sizes[0](m) if sizes else m.options.warp_size
        if name == "get_lane_idx":
            found = number % warp
        elif name == "get_warp_group_idx":
            found = number // (warp * (sizes[1](m) if len(sizes) > 1 else 4))
        else:
            found = number // warp
        return _as_value(m, found.astype(np.int32))

    return run


@call_rule("tl.shuffle_elect")
def _elect(c: Any, expr: ir.Call) -> Fn:
    """The first active thread of each group."""
    size, span = c.index(expr.args[0]), expr.span

    def run(m: Machine) -> Mask:
        active = _threads(m, "T.shuffle_elect", span)
        group = np.arange(len(active)) // (int(size(m)) or len(active))
        first = np.full(len(active), -1)
        members = np.flatnonzero(active)[::-1]
        first[group[members]] = members  # the last assignment is the lowest thread
        return _as_value(m, first[group] == np.arange(len(active)))

    return run
