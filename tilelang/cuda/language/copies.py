"""Bulk asynchronous copies and the barriers and fences that go with them (sm_90)."""

from __future__ import annotations

from typing import Any

from tvm import ir

from tilelang.ir import intrin

__all__ = [
    "cp_async_barrier_noinc",
    "create_tma_descriptor",
    "fence_proxy_async",
    "ptx_arrive_cluster_barrier",
    "ptx_cp_async_bulk",
    "ptx_fence_barrier_init",
    "ptx_wait_barrier",
    "tma_load",
    "tma_load_2sm",
    "tma_store_arrive",
    "tma_store_wait",
]


def create_tma_descriptor(*args: Any) -> ir.Expr:
    """A descriptor for bulk copies of tiles, from the arguments of ``cuTensorMapEncodeTiled``."""
    return intrin.get("create_tma_descriptor")(*args)


def tma_load(*args: Any) -> None:
    """Start a bulk load: descriptor, barrier, shared address, coordinates."""
    intrin.get("tma_load").emit(*args)


def tma_load_2sm(*args: Any) -> None:
    """:func:`tma_load` for a pair of blocks that share a matrix product (sm_100)."""
    intrin.get("tma_load_2sm").emit(*args)


def tma_store_arrive() -> None:
    """Close the group of bulk stores started so far."""
    intrin.get("tma_store_arrive").emit()


def tma_store_wait(count: int = 0, read: bool = True) -> None:
    """Wait until at most ``count`` groups of bulk stores are pending.

    Parameters
    ----------
    count : int
    read : bool
        Only until their source may be written again, not until the data is in global memory.
    """
    intrin.get("tma_store_wait").emit(count, read)


def ptx_cp_async_bulk(*args: Any) -> None:
    """``cp.async.bulk``: destination, source, bytes, barrier."""
    intrin.get("ptx_cp_async_bulk").emit(*args)


def fence_proxy_async() -> None:
    """Make ordinary writes to shared memory visible to bulk copies and matrix units."""
    intrin.get("fence_proxy_async").emit()


def cp_async_barrier_noinc(barrier: Any) -> None:
    """Arrive at a barrier when the thread's ``cp.async`` copies are complete, counted already."""
    intrin.get("cp_async_barrier_noinc").emit(barrier)


def ptx_arrive_cluster_barrier(mbarrier: Any, cta_id: Any) -> None:
    """Arrive at a barrier of block ``cta_id`` of the cluster."""
    intrin.get("ptx_arrive_cluster_barrier").emit(mbarrier, cta_id)


def ptx_wait_barrier(barrier: Any, parity: Any = None) -> None:
    """Wait for a barrier, or for its phase of ``parity``."""
    intrin.get("ptx_wait_barrier").emit(barrier, *(() if parity is None else (parity,)))


def ptx_fence_barrier_init() -> None:
    """Make initialised barriers visible to the cluster."""
    intrin.get("ptx_fence_barrier_init").emit()
