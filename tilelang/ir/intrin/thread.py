"""What the threads of a block do together: barriers, votes, shuffles, indices.

References work on one warp: the last axis of every array is the lane, and ``active`` says which
lanes take part. Barriers have no reference; they order threads and compute nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelang.ir.extremes import larger, smaller
from tilelang.ir.intrin.record import (
    NVIDIA,
    READ,
    UPDATE,
    WARP,
    Array,
    Intrinsic,
    Kind,
    Reference,
    define,
)

__all__ = ["FULL_MASK"]

Dtypes = tuple[str, ...]
_INT32: Kind = "int32"
FULL_MASK = 0xFFFFFFFF


def _lanes(active: Array) -> Array:
    return np.broadcast_to(np.arange(active.shape[-1]), active.shape)


def _participants(active: Array, mask: Array | None) -> Array:
    """Active lanes whose bit is set in the mask; lanes from 32 on follow bit ``lane % 32``."""
    if mask is None:
        return active
    return active & (
        (np.asarray(mask).astype(np.uint64) >> (_lanes(active) % 32).astype(np.uint64)) & 1 > 0
    )


def _any(dtypes: Dtypes, active: Array, predicate: Array, mask: Array | None = None) -> Array:
    held = (np.asarray(predicate) != 0) & _participants(active, mask)
    return np.broadcast_to(held.any(axis=-1, keepdims=True), held.shape).astype(np.int32)


def _all(dtypes: Dtypes, active: Array, predicate: Array, mask: Array | None = None) -> Array:
    held = (np.asarray(predicate) != 0) | ~_participants(active, mask)
    return np.broadcast_to(held.all(axis=-1, keepdims=True), held.shape).astype(np.int32)


def _bits(chosen: Array) -> Array:
    weight = np.uint64(1) << _lanes(chosen).astype(np.uint64)
    total = np.where(chosen, weight, np.uint64(0)).sum(axis=-1, keepdims=True, dtype=np.uint64)
    return np.broadcast_to(total, chosen.shape)


def _ballot(dtypes: Dtypes, active: Array, predicate: Array, mask: Array | None = None) -> Array:
    return _bits((np.asarray(predicate) != 0) & _participants(active, mask))


def _activemask(dtypes: Dtypes, active: Array) -> Array:
    return _bits(active)


def _match_any(dtypes: Dtypes, active: Array, value: Array, mask: Array | None = None) -> Array:
    value = np.broadcast_to(value, active.shape)
    equal = value[..., :, None] == value[..., None, :]
    chosen = equal & _participants(active, mask)[..., None, :]
    weight = np.uint64(1) << np.arange(active.shape[-1]).astype(np.uint64)
    return np.where(chosen, weight, np.uint64(0)).sum(axis=-1, dtype=np.uint64)


def _match_all(dtypes: Dtypes, active: Array, value: Array, mask: Array | None = None) -> Array:
    together = _participants(active, mask)
    groups = _match_any(dtypes, active, value, mask)
    agreed = np.where(together, groups == _bits(together), True).all(axis=-1, keepdims=True)
    return np.where(agreed, _bits(together), np.uint64(0))


def _shuffle(source: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Reference:
    """Read ``value`` from another lane; groups of ``width`` lanes work apart.

    ``source(lane, first, amount, width)`` gives the lane to read and whether it is in reach, where
    ``first`` is the first lane of the group; a lane out of reach keeps its own value.
    """

    def reference(
        dtypes: Dtypes,
        active: Array,
        value: Array,
        amount: Array,
        width: Array,
        mask: Array | None = None,
    ) -> Array:
        value, lane = np.broadcast_to(value, active.shape), _lanes(active)
        width = np.minimum(np.broadcast_to(width, active.shape), active.shape[-1])
        amount = np.broadcast_to(amount, active.shape).astype(np.int64)
        wanted, reachable = source(lane, lane - lane % width, amount, width)
        target = np.where(reachable, wanted, lane)
        return np.take_along_axis(value, target, axis=-1)

    return reference


# An exchange by xor may reach into an earlier group but not into a later one, as on hardware.
_SHUFFLES = {
    "shfl_sync": _shuffle(lambda lane, first, n, width: (first + n % width, lane >= 0)),
    "shfl_xor": _shuffle(lambda lane, first, n, width: (lane ^ n, (lane ^ n) < first + width)),
    "shfl_up": _shuffle(lambda lane, first, n, width: (lane - n, lane - n >= first)),
    "shfl_down": _shuffle(lambda lane, first, n, width: (lane + n, lane + n < first + width)),
}
for _name, _reference in _SHUFFLES.items():
    define(
        Intrinsic(
            _name,
            f"tl.{_name}",
            ("number", "int32", "int32", "uint32"),
            effect=UPDATE,
            reference=_reference,
            lanes=True,
            backends=WARP,
        )
    )

_VOTES: dict[str, tuple[str, Reference]] = {
    "any_sync": ("int32", _any),
    "all_sync": ("int32", _all),
    "ballot_sync": ("uint64", _ballot),
}
for _name, (_result, _function) in _VOTES.items():
    define(
        Intrinsic(
            _name,
            f"tl.{_name}",
            ("predicate", "uint32"),
            result=_result,
            effect=UPDATE,
            reference=_function,
            lanes=True,
            backends=WARP,
        )
    )
define(
    Intrinsic(
        "activemask", "tl.activemask", (), "uint64", UPDATE, _activemask,
        lanes=True, backends=WARP,
    )
)  # fmt: skip
for _name, _function in (("match_any_sync", _match_any), ("match_all_sync", _match_all)):
    define(
        Intrinsic(
            _name,
            f"tl.{_name}",
            ("any", "uint32"),
            result="uint32",
            effect=UPDATE,
            reference=_function,
            lanes=True,
            backends=NVIDIA | {"cpu"},
        )
    )


def _fold(combine: Reference, identity: Any) -> Reference:
    """Combine the values of all active lanes; every lane gets the result."""

    def reference(dtypes: Dtypes, active: Array, value: Array) -> Array:
        value = np.broadcast_to(value, active.shape)
        rows = np.moveaxis(np.where(active, value, identity), -1, 0)
        total = rows[0]
        for row in rows[1:]:
            total = combine(total, row)
        return np.broadcast_to(total[..., None], active.shape)

    return reference


def _fold_present(combine: Reference) -> Reference:
    """:func:`_fold` without a neutral value: absent lanes repeat a present one."""

    def reference(dtypes: Dtypes, active: Array, value: Array) -> Array:
        value = np.broadcast_to(value, active.shape)
        first = np.take_along_axis(value, active.argmax(axis=-1)[..., None], axis=-1)
        return _fold(combine, first)(dtypes, active, value)

    return reference


_REDUCTIONS: dict[str, tuple[Kind, Reference]] = {
    "warp_reduce_sum": ("number", _fold(np.add, 0)),
    "warp_reduce_max": ("number", _fold_present(larger)),
    "warp_reduce_min": ("number", _fold_present(smaller)),
    "warp_reduce_bitand": ("int", _fold_present(np.bitwise_and)),
    "warp_reduce_bitor": ("int", _fold_present(np.bitwise_or)),
}
for _name, (_kind, _function) in _REDUCTIONS.items():
    define(
        Intrinsic(
            _name,
            f"tl.{_name}",
            (_kind,),
            effect=UPDATE,
            reference=_function,
            lanes=True,
            backends=WARP,
        )
    )

# Barriers of a block. With a name and a thread count, only those threads meet.
define(
    Intrinsic(
        "sync_threads", "tl.sync_threads", ("int32", "int32"), "void", UPDATE,
        optional=2, lanes=True,
    )
)  # fmt: skip
define(
    Intrinsic(
        "sync_warp", "tl.sync_warp", ("uint32",), "void", UPDATE,
        optional=1, lanes=True, backends=WARP,
    )
)  # fmt: skip
for _name in ("syncthreads_count", "syncthreads_and", "syncthreads_or"):
    define(
        Intrinsic(
            _name, f"tl.{_name}", ("predicate",), "int32", UPDATE,
            lanes=True, backends=frozenset({"cpu", "cuda", "rocm"}),
        )
    )  # fmt: skip

# Barriers of the grid need all blocks to run at the same time.
define(
    Intrinsic(
        "sync_grid", "tl.sync_grid", (), "void", UPDATE,
        lanes=True, backends=frozenset({"cuda", "cutedsl", "rocm"}),
    )
)  # fmt: skip
define(
    Intrinsic(
        "sync_global", "tl.sync_global", (), "void", UPDATE,
        lanes=True, backends=frozenset({"cuda", "rocm"}),
    )
)  # fmt: skip


def _linear(active: Array) -> Array:
    """Block-linear thread numbers, where the leading axis is the warp."""
    return np.arange(active.size).reshape(active.shape)


def _lane_index(dtypes: Dtypes, active: Array, warp_size: Array | None = None) -> Array:
    return _linear(active) % (active.shape[-1] if warp_size is None else warp_size)


def _warp_index(dtypes: Dtypes, active: Array, warp_size: Array | None = None) -> Array:
    return _linear(active) // (active.shape[-1] if warp_size is None else warp_size)


def _warp_group_index(
    dtypes: Dtypes,
    active: Array,
    warp_size: Array | None = None,
    warps_per_group: Array | None = None,
) -> Array:
    group = 4 if warps_per_group is None else warps_per_group
    return _warp_index(dtypes, active, warp_size) // group


def _elect(dtypes: Dtypes, active: Array, extent: Array) -> Array:
    extent = np.broadcast_to(extent, active.shape)
    return _linear(active) % np.where(extent == 0, active.size, extent) == 0


# Indices from the block-linear thread number. Without a warp size the target's is used.
_INDICES: dict[str, tuple[int, Reference]] = {
    "get_lane_idx": (1, _lane_index),
    "get_warp_idx": (1, _warp_index),
    "get_warp_idx_sync": (1, _warp_index),
    "get_warp_group_idx": (2, _warp_group_index),
}
for _name, (_arity, _function) in _INDICES.items():
    _args = (_INT32,) * _arity
    define(
        Intrinsic(
            _name, f"tl.{_name}", _args, "int32", reference=_function,
            optional=_arity, lanes=True, backends=WARP,
        )
    )  # fmt: skip

# True in exactly one thread of each group of that many threads, 0 meaning the whole block.
define(
    Intrinsic(
        "shuffle_elect", "tl.shuffle_elect", ("int32",), "bool", READ, _elect,
        lanes=True, backends=NVIDIA | {"cpu"},
    )
)  # fmt: skip
