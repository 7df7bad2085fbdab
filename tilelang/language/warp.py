"""The threads of a warp together: shuffles, votes, reductions, and the index of a thread.

A warp is 32 consecutive threads of the block-linear order (64 on AMD CDNA). These functions return
expressions; they belong into explicit thread programs, where all lanes named by ``mask`` run them
at the same time. They run in the interpreter, on the CPU, CUDA and ROCm::

    total = x
    for step in T.unroll(5):
        total = total + T.shfl_xor(total, 16 >> step)
"""

from __future__ import annotations

from typing import Any

from tvm import ir

from tilelang.ir import intrin
from tilelang.ir.intrin import FULL_MASK

__all__ = [
    "activemask",
    "all_sync",
    "any_sync",
    "ballot",
    "ballot_sync",
    "get_lane_idx",
    "get_warp_idx",
    "get_warp_idx_sync",
    "shfl_down",
    "shfl_sync",
    "shfl_up",
    "shfl_xor",
    "warp_reduce_bitand",
    "warp_reduce_bitor",
    "warp_reduce_max",
    "warp_reduce_min",
    "warp_reduce_sum",
]


def shfl_sync(value: Any, srcLane: Any, width: int = 32, mask: Any = FULL_MASK) -> ir.Expr:
    """The ``value`` of lane ``srcLane`` of the same group of ``width`` lanes.

    Parameters
    ----------
    value : number expression
        What each lane offers.
    srcLane : int32 expression
        Lane to read, modulo ``width``.
    width : int
        Lanes in a group, a power of two up to the warp size.
    mask : uint32 expression
        The lanes that take part.

    Raises
    ------
    TraceTypeError
        If ``value`` is no number or another argument no integer.
    """
    return intrin.get("shfl_sync")(value, srcLane, width, mask)


def shfl_xor(value: Any, delta: Any, width: int = 32, mask: Any = FULL_MASK) -> ir.Expr:
    """The ``value`` of lane ``lane ^ delta``; see :func:`shfl_sync`."""
    return intrin.get("shfl_xor")(value, delta, width, mask)


def shfl_up(value: Any, delta: Any, width: int = 32, mask: Any = FULL_MASK) -> ir.Expr:
    """The ``value`` of lane ``lane - delta``; the first ``delta`` lanes of a group keep theirs."""
    return intrin.get("shfl_up")(value, delta, width, mask)


def shfl_down(value: Any, delta: Any, width: int = 32, mask: Any = FULL_MASK) -> ir.Expr:
    """The ``value`` of lane ``lane + delta``; the last ``delta`` lanes of a group keep theirs."""
    return intrin.get("shfl_down")(value, delta, width, mask)


def any_sync(predicate: Any, mask: Any = FULL_MASK) -> ir.Expr:
    """Nonzero (int32) in every lane if the predicate holds in one of the lanes of ``mask``.

    Raises
    ------
    TraceTypeError
        If ``predicate`` is neither integer nor bool.
    """
    return intrin.get("any_sync")(predicate, mask)


def all_sync(predicate: Any, mask: Any = FULL_MASK) -> ir.Expr:
    """Nonzero (int32) in every lane if the predicate holds in all lanes of ``mask``."""
    return intrin.get("all_sync")(predicate, mask)


def ballot_sync(predicate: Any, mask: Any = FULL_MASK) -> ir.Expr:
    """The lanes of ``mask`` in which the predicate holds, one bit a lane, as uint64."""
    return intrin.get("ballot_sync")(predicate, mask)


def ballot(predicate: Any) -> ir.Expr:
    """:func:`ballot_sync` of all lanes."""
    return intrin.get("ballot_sync")(predicate, FULL_MASK)


def activemask() -> ir.Expr:
    """The lanes that are running, one bit a lane, as uint64."""
    return intrin.get("activemask")()


def warp_reduce_sum(value: Any) -> ir.Expr:
    """The sum over the lanes of the warp, in every lane."""
    return intrin.get("warp_reduce_sum")(value)


def warp_reduce_max(value: Any) -> ir.Expr:
    """The maximum over the lanes of the warp, in every lane."""
    return intrin.get("warp_reduce_max")(value)


def warp_reduce_min(value: Any) -> ir.Expr:
    """The minimum over the lanes of the warp, in every lane."""
    return intrin.get("warp_reduce_min")(value)


def warp_reduce_bitand(value: Any) -> ir.Expr:
    """The bitwise and over the lanes of the warp (integers), in every lane."""
    return intrin.get("warp_reduce_bitand")(value)


def warp_reduce_bitor(value: Any) -> ir.Expr:
    """The bitwise or over the lanes of the warp (integers), in every lane."""
    return intrin.get("warp_reduce_bitor")(value)


def _present(*values: Any) -> tuple[Any, ...]:
    return tuple(value for value in values if value is not None)


def get_lane_idx(warp_size: int | None = None) -> ir.Expr:
    """The lane of the thread in its warp (int32); ``warp_size`` defaults to the target's."""
    return intrin.get("get_lane_idx")(*_present(warp_size))


def get_warp_idx(warp_size: int | None = None) -> ir.Expr:
    """The warp of the thread in its block (int32); ``warp_size`` defaults to the target's."""
    return intrin.get("get_warp_idx")(*_present(warp_size))


def get_warp_idx_sync(warp_size: int | None = None) -> ir.Expr:
    """:func:`get_warp_idx` known to be the same in all lanes; the whole warp must run it."""
    return intrin.get("get_warp_idx_sync")(*_present(warp_size))
