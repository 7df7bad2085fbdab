"""Thread-block clusters, launch control, dependent launches, and what threads of a warp agree on.

Cluster and dependent-launch functions need sm_90, launch control sm_100. Where a function is also
available on another backend it says so.
"""

from __future__ import annotations

from typing import Any

from tvm import ir

from tilelang.ir import intrin
from tilelang.ir.intrin import FULL_MASK

__all__ = [
    "__ffs",
    "__fns",
    "block_rank_in_cluster",
    "clc_get_first_ctaid_x",
    "clc_get_first_ctaid_y",
    "clc_get_first_ctaid_z",
    "clc_is_canceled",
    "clc_try_cancel",
    "clc_try_cancel_multicast",
    "cluster_arrive",
    "cluster_arrive_relaxed",
    "cluster_sync",
    "cluster_wait",
    "get_warp_group_idx",
    "match_all_sync",
    "match_any_sync",
    "named_barrier_arrive",
    "pdl_sync",
    "pdl_trigger",
    "shuffle_elect",
]


def cluster_arrive_relaxed() -> None:
    """Arrive at the barrier of the cluster without ordering memory."""
    intrin.get("cluster_arrive_relaxed").emit()


def cluster_arrive() -> None:
    """Arrive at the barrier of the cluster."""
    intrin.get("cluster_arrive").emit()


def cluster_wait() -> None:
    """Wait until all threads of the cluster have arrived."""
    intrin.get("cluster_wait").emit()


def cluster_sync() -> None:
    """Arrive at the barrier of the cluster and wait there."""
    intrin.get("cluster_sync").emit()


def block_rank_in_cluster() -> ir.Expr:
    """The number of this block in its cluster, as int32."""
    return intrin.get("block_rank_in_cluster")()


def clc_try_cancel(result: Any, mbarrier: Any) -> None:
    """Ask for the work of a block that was not launched yet; the answer arrives at ``mbarrier``.

    Parameters
    ----------
    result : pointer, buffer or element
        16 bytes of shared memory for the answer.
    mbarrier : element or buffer of ``T.alloc_barrier``
    """
    intrin.get("clc_try_cancel").emit(result, mbarrier)


def clc_try_cancel_multicast(result: Any, mbarrier: Any) -> None:
    """:func:`clc_try_cancel` with the answer sent to all blocks of the cluster."""
    intrin.get("clc_try_cancel_multicast").emit(result, mbarrier)


def clc_is_canceled(result: Any) -> ir.Expr:
    """Whether the answer hands over a block."""
    return intrin.get("clc_is_canceled")(result)


def clc_get_first_ctaid_x(result: Any) -> ir.Expr:
    """``blockIdx.x`` of the block handed over, as int32."""
    return intrin.get("clc_get_first_ctaid_x")(result)


def clc_get_first_ctaid_y(result: Any) -> ir.Expr:
    """``blockIdx.y`` of the block handed over, as int32."""
    return intrin.get("clc_get_first_ctaid_y")(result)


def clc_get_first_ctaid_z(result: Any) -> ir.Expr:
    """``blockIdx.z`` of the block handed over, as int32."""
    return intrin.get("clc_get_first_ctaid_z")(result)


def pdl_trigger() -> None:
    """Let the next kernel of the stream start."""
    intrin.get("pdl_trigger").emit()


def pdl_sync() -> None:
    """Wait until the results of the previous kernel of the stream are visible."""
    intrin.get("pdl_sync").emit()


def named_barrier_arrive(barrier_id: Any, thread_count: Any) -> None:
    """Arrive at a numbered barrier of ``thread_count`` threads without waiting."""
    intrin.get("named_barrier_arrive").emit(barrier_id, thread_count)


def match_any_sync(value: Any, mask: Any = FULL_MASK) -> ir.Expr:
    """The lanes of ``mask`` that have the same ``value``, as uint32; also on the CPU."""
    return intrin.get("match_any_sync")(value, mask)


def match_all_sync(value: Any, mask: Any = FULL_MASK) -> ir.Expr:
    """``mask`` if all its lanes have the same ``value``, else 0, as uint32; also on the CPU."""
    return intrin.get("match_all_sync")(value, mask)


def get_warp_group_idx(warp_size: int | None = None, warps_per_group: int | None = None) -> ir.Expr:
    """The group of four warps (or ``warps_per_group``) of the thread, as int32."""
    if warps_per_group is not None and warp_size is None:
        warp_size = 32
    given = [value for value in (warp_size, warps_per_group) if value is not None]
    return intrin.get("get_warp_group_idx")(*given)


def shuffle_elect(thread_extent: int) -> ir.Expr:
    """True in one thread of each group of ``thread_extent``; 0 is the whole block."""
    return intrin.get("shuffle_elect")(thread_extent)


def __ffs(v: Any) -> ir.Expr:
    """The position of the lowest set bit counted from 1, or 0, as int32; on every backend."""
    return intrin.get("__ffs")(v)


def __fns(mask: Any, base: Any, offset: Any) -> ir.Expr:
    """The position of the ``offset``-th set bit of ``mask`` from bit ``base`` on, or -1.

    A negative ``offset`` searches downward, 0 asks about the bit ``base`` itself. Also on the CPU.
    """
    return intrin.get("__fns")(mask, base, offset)
