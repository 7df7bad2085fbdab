"""Barriers between the threads of a warp, a block or the whole grid.

Tile operations need none of these; they order memory accesses of explicit thread programs.
"""

from __future__ import annotations

from typing import Any

from tvm import ir

from tilelang.errors import TraceError
from tilelang.ir import intrin
from tilelang.ir.expr import const_int
from tilelang.ir.span import user_span

__all__ = [
    "sync_global",
    "sync_grid",
    "sync_threads",
    "sync_warp",
    "syncthreads_and",
    "syncthreads_count",
    "syncthreads_or",
]


def sync_threads(barrier_id: Any = None, arrive_count: Any = None) -> None:
    """Wait until all threads of the block, or ``arrive_count`` of them, are here.

    Parameters
    ----------
    barrier_id : int32, optional
        A hardware barrier of its own, 0 to 15.
    arrive_count : int32, optional
        How many threads meet there; needs ``barrier_id``.

    Raises
    ------
    TraceError
        Outside of a kernel, or for a count without an id or an id out of range.

    Notes
    -----
    Runs on every backend; with an id or count on CUDA only.
    """
    if arrive_count is not None and barrier_id is None:
        raise TraceError("T.sync_threads: arrive_count needs a barrier_id", user_span())
    number = const_int(barrier_id) if barrier_id is not None else None
    if number is not None and not 0 <= number < 16:
        raise TraceError(f"T.sync_threads: barrier_id must be 0 to 15, found {number}", user_span())
    intrin.get("sync_threads").emit(*(v for v in (barrier_id, arrive_count) if v is not None))


def sync_warp(mask: Any = None) -> None:
    """Wait until the lanes of ``mask`` (default all) of the warp are here."""
    intrin.get("sync_warp").emit(*(() if mask is None else (mask,)))


def sync_grid() -> None:
    """Wait until all threads of the grid are here; all blocks must fit on the device at once."""
    intrin.get("sync_grid").emit()


def sync_global() -> None:
    """:func:`sync_grid` without a cooperative launch, through a counter in global memory."""
    intrin.get("sync_global").emit()


def syncthreads_count(predicate: Any) -> ir.Expr:
    """A block barrier that returns in how many threads the predicate holds (int32).

    Raises
    ------
    TraceTypeError
        If ``predicate`` is neither integer nor bool.
    """
    return intrin.get("syncthreads_count")(predicate)


def syncthreads_and(predicate: Any) -> ir.Expr:
    """A block barrier that returns nonzero (int32) if the predicate holds in all threads."""
    return intrin.get("syncthreads_and")(predicate)


def syncthreads_or(predicate: Any) -> ir.Expr:
    """A block barrier that returns nonzero (int32) if the predicate holds in any thread."""
    return intrin.get("syncthreads_or")(predicate)
