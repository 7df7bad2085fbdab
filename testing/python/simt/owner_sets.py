"""Who holds what, by enumeration: the meaning of a distribution, apart from its own code."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from tilelang.layout.distribution import COPY, Distribution, dense

__all__ = ["distributions", "elements", "holders", "owners"]


def elements(shape):
    """All indices of a tile."""
    return itertools.product(*map(range, shape))


def owners(tile, index):
    """The threads that hold the element at ``index``."""
    return {
        thread
        for thread in range(tile.num_threads)
        if all(
            thread // p.stride % p.extent == index[p.axis] // p.divisor % p.extent
            for p in tile.threads
            if p.axis != COPY
        )
    }


def holders(tile):
    """``{index: owners}`` of a whole tile."""
    return {index: frozenset(owners(tile, index)) for index in elements(tile.shape)}


@st.composite
def distributions(draw, rank=None, shape=None):
    """Distributions of small tiles: any order of digits, odd extents, padding, copies."""
    if shape is None:
        rank = draw(st.integers(1, 3)) if rank is None else rank
        shape = tuple(draw(st.integers(1, 9)) for _ in range(rank))
    digits = []
    for axis, extent in enumerate(shape):
        reach = 1
        while reach < extent:
            size = draw(st.integers(2, 4))
            digits.append((axis, reach, size))
            reach *= size
    in_threads, in_slots = [], []
    for digit in draw(st.permutations(digits)):
        (in_threads if draw(st.booleans()) else in_slots).append(digit)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(in_threads)))
        in_threads.insert(at, (COPY, 1, draw(st.integers(2, 3))))
    return Distribution(shape, dense(in_threads), dense(in_slots))
