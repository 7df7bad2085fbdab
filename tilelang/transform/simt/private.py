"""Accesses that stay within their thread: no other thread touches the element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tvm import ir
from tvm_ffi import structural_walk

from tilelang.errors import TraceTypeError
from tilelang.layout.check import row_major_keys
from tilelang.layout.index_expr import evaluate

__all__ = ["Ranges", "stay_in_thread"]

_MAX_POINTS = 1 << 16
#: ``(first, extent)`` of variables.
Ranges = Mapping[ir.Var, tuple[int, int]]


def stay_in_thread(
    a: Sequence[ir.Expr], b: Sequence[ir.Expr], threads: Ranges, loops: Ranges
) -> bool:
    """Whether an element that both ``a`` and ``b`` index is indexed by one thread alone.

    Parameters
    ----------
    a, b : sequence of Expr
        Indices of two accesses of one buffer.
    threads, loops : mapping of Var to (first, extent)
        What thread indices and loop variables range over. An index with any other variable is not
        judged.

    Found by enumeration: every thread with every value of the loop variables.
    """
    tables = [_table(indices, threads, loops) for indices in (a, b)]
    if tables[0] is None or tables[1] is None:
        return False
    (places, owners), (others, other_owners) = tables
    first, second = row_major_keys(places, others)
    keys = np.concatenate([first, second])
    who = np.concatenate([owners, other_owners])
    meeting = np.intersect1d(first, second)
    order = np.argsort(keys, kind="stable")
    keys, who = keys[order], who[order]
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    alone = np.minimum.reduceat(who, starts) == np.maximum.reduceat(who, starts)
    return bool(alone[np.isin(keys[starts], meeting)].all())


def _table(indices: Sequence[ir.Expr], threads: Ranges, loops: Ranges) -> Any | None:
    """The indices at every point, and the thread of the point; None if they cannot be listed."""
    used: list[ir.Var] = []
    for index in indices:
        structural_walk(index, (ir.Var, used.append))
    inner = [var for var in dict.fromkeys(used) if var not in threads]
    if any(var not in loops for var in inner):
        return None
    axes = [*threads.values(), *[loops[var] for var in inner]]
    extents = [extent for _, extent in axes]
    if int(np.prod(extents, dtype=object)) > _MAX_POINTS:
        return None
    grids = np.ogrid[tuple(slice(first, first + extent) for first, extent in axes)]
    values = dict(zip([*threads, *inner], grids, strict=True))
    try:
        rows = [np.broadcast_to(evaluate(index, values), extents).ravel() for index in indices]
    except TraceTypeError:  # an index read from memory, say
        return None
    owner, scale = np.zeros((), dtype=np.int64), 1
    for (first, extent), grid in zip(threads.values(), grids, strict=False):
        owner, scale = owner + (grid - first) * scale, scale * extent
    return np.stack(rows), np.broadcast_to(owner, extents).ravel()
