"""Barriers in shared memory and asynchronous copies, under the names all dialects share.

They exist on GPUs with such units (CUDA from sm_80 or sm_90, some on ROCm) and in the emulator;
compiling one elsewhere is refused by name. A barrier is an element or a one-element buffer of
``T.alloc_barrier``. All functions append a statement and need a traced kernel.
"""

from __future__ import annotations

from typing import Any

from tilelang.ir import intrin

__all__ = [
    "barrier_arrive",
    "barrier_wait",
    "create_barriers",
    "mbarrier_arrive",
    "mbarrier_arrive_expect_tx",
    "mbarrier_expect_tx",
    "mbarrier_wait_parity",
    "ptx_arrive_barrier",
    "ptx_arrive_barrier_expect_tx",
    "ptx_commit_group",
    "ptx_cp_async",
    "ptx_cp_async_barrier",
    "ptx_init_barrier_thread_count",
    "ptx_wait_group",
]


def mbarrier_wait_parity(mbarrier: Any, parity: Any) -> None:
    """Wait until the phase of ``parity`` (0 or 1) of the barrier is complete.

    Parameters
    ----------
    mbarrier : element or buffer of ``T.alloc_barrier``
    parity : int32 expression

    Raises
    ------
    TraceTypeError
        If ``mbarrier`` is no barrier or ``parity`` no integer.
    """
    intrin.get("mbarrier_wait_parity").emit(mbarrier, parity)


def barrier_wait(mbarrier: Any, parity: Any) -> None:
    """The same as :func:`mbarrier_wait_parity`."""
    intrin.get("mbarrier_wait_parity").emit(mbarrier, parity)


def mbarrier_arrive(mbarrier: Any, cta_id: Any = None) -> None:
    """Arrive at a barrier of this block, or of block ``cta_id`` of the cluster."""
    intrin.get("mbarrier_arrive").emit(mbarrier, *(() if cta_id is None else (cta_id,)))


def barrier_arrive(mbarrier: Any) -> None:
    """The same as :func:`mbarrier_arrive`, for this block."""
    intrin.get("mbarrier_arrive").emit(mbarrier)


def mbarrier_expect_tx(mbarrier: Any, tx: Any) -> None:
    """Announce ``tx`` bytes of copies to the current phase."""
    intrin.get("mbarrier_expect_tx").emit(mbarrier, tx)


def mbarrier_arrive_expect_tx(mbarrier: Any, tx: Any) -> None:
    """Announce ``tx`` bytes of copies and arrive."""
    intrin.get("mbarrier_arrive_expect_tx").emit(mbarrier, tx)


def ptx_cp_async(dst_ptr: Any, src_ptr: Any, num_elems: Any, predicate: Any = None) -> None:
    """Start copying ``num_elems`` elements from global to shared memory.

    Parameters
    ----------
    dst_ptr, src_ptr : pointer, buffer or element
    num_elems : int32 expression
        4, 8 or 16 bytes in all.
    predicate : bool expression, optional
        Where it does not hold, zeros are written.
    """
    given = () if predicate is None else (predicate,)
    intrin.get("ptx_cp_async").emit(dst_ptr, src_ptr, num_elems, *given)


def ptx_commit_group() -> None:
    """Close the group of asynchronous copies started so far."""
    intrin.get("ptx_commit_group").emit()


def ptx_wait_group(n: Any) -> None:
    """Wait until at most ``n`` of the latest groups are pending."""
    intrin.get("ptx_wait_group").emit(n)


def create_barriers(barrier_count: int) -> None:
    """Reserve ``barrier_count`` numbered barriers."""
    intrin.get("create_barriers").emit(barrier_count)


def ptx_init_barrier_thread_count(barrier: Any, thread_count: Any) -> None:
    """Set how many threads arrive at a barrier in each phase."""
    intrin.get("ptx_init_barrier_thread_count").emit(barrier, thread_count)


def ptx_arrive_barrier(barrier: Any) -> None:
    """Arrive at a barrier."""
    intrin.get("ptx_arrive_barrier").emit(barrier)


def ptx_arrive_barrier_expect_tx(barrier: Any, byte_count: Any) -> None:
    """Arrive at a barrier and announce ``byte_count`` bytes of copies."""
    intrin.get("ptx_arrive_barrier_expect_tx").emit(barrier, byte_count)


def ptx_cp_async_barrier(barrier: Any) -> None:
    """Arrive at a barrier when the copies started so far are complete."""
    intrin.get("ptx_cp_async_barrier").emit(barrier)
