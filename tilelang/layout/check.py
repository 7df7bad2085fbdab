"""Proofs about layouts by enumeration, with messages that name the elements at fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilelang.errors import LayoutError
from tilelang.layout.fragment import Fragment
from tilelang.layout.index_expr import IntArray
from tilelang.layout.layout import Layout

__all__ = [
    "check_fragment",
    "check_layout",
    "is_injective",
    "require_injective",
    "row_major_keys",
]


def is_injective(layout: Layout) -> bool:
    """Whether no two elements share a place (for a fragment: a slot of one thread)."""
    return _collision(layout) is None


def require_injective(layout: Layout, what: str, span: Any = None) -> None:
    """Refuse a layout that puts two elements into one place.

    Parameters
    ----------
    layout : Layout
        A layout, or a fragment, whose places are (thread, slot) pairs.
    what : str
        Begins the message, such as ``"layout of 'A_shared'"``.
    span : Span, optional
        The user's line.

    Raises
    ------
    LayoutError
        Naming two elements and the place they share.
    """
    found = _collision(layout)
    if found is None:
        return
    first, second, place = found
    raise LayoutError(
        f"{what}: elements {first} and {second} share {place}; a layout must give every element "
        "a place of its own",
        span,
    )


def check_layout(layout: Layout, shape: Sequence[int], what: str, span: Any = None) -> None:
    """Refuse a layout that cannot hold a buffer of ``shape``.

    Raises
    ------
    LayoutError
        If the shapes differ, an index is negative, or two elements share a place.
    """
    if layout.get_input_shape() != list(shape):
        raise LayoutError(
            f"{what} has shape {tuple(layout.input_shape)}, the buffer has {tuple(shape)}", span
        )
    table = layout.table()
    if (table < 0).any():
        where = tuple(int(x) for x in np.argwhere(table < 0)[0])
        axis, element, value = where[0], where[1:], int(table[where])
        raise LayoutError(
            f"{what}: element {element} has the negative index {value} in dimension {axis}",
            span,
        )
    require_injective(layout, what, span)


def check_fragment(
    fragment: Fragment, shape: Sequence[int], threads: int, what: str, span: Any = None
) -> None:
    """Refuse a fragment that cannot hold a buffer of ``shape`` on ``threads`` threads.

    Raises
    ------
    LayoutError
        As :func:`check_layout`, or if an owner is outside ``range(threads)``.
    """
    check_layout(fragment, shape, what, span)
    owners = fragment.thread_table()
    bad = (owners < 0) | (owners >= threads)
    if bad.any():
        where = tuple(int(x) for x in np.argwhere(bad)[0])
        raise LayoutError(
            f"{what}: element {where[1:]} belongs to thread {int(owners[where])}, "
            f"the block has {threads} threads",
            span,
        )


def _collision(layout: Layout) -> tuple[tuple[int, ...], tuple[int, ...], str] | None:
    """Two different elements in one place and the name of the place, or None."""
    shape = layout.get_input_shape()
    places = layout.table().reshape(len(layout.forward_index), -1)
    count = places.shape[1]
    elements = np.arange(count)
    if isinstance(layout, Fragment):
        owners = layout.thread_table().reshape(layout.replicate_size, -1)
        places = np.concatenate(
            [owners.reshape(1, -1), np.tile(places, (1, layout.replicate_size))]
        )
        elements = np.tile(elements, layout.replicate_size)
    (keys,) = row_major_keys(places)
    order = np.lexsort((elements, keys))
    same = (keys[order][1:] == keys[order][:-1]) & (elements[order][1:] != elements[order][:-1])
    if not same.any():
        return None
    at = int(np.flatnonzero(same)[0])
    first, second = (
        tuple(int(x) for x in np.unravel_index(elements[order[k]], shape)) for k in (at, at + 1)
    )
    place = tuple(int(x) for x in places[:, order[at]])
    if isinstance(layout, Fragment):
        return first, second, f"slot {place[1:]} of thread {place[0]}"
    return first, second, f"place {place}"


def row_major_keys(*tables: IntArray) -> list[IntArray]:
    """One integer per column of each table, equal exactly for equal columns of any of them."""
    low = np.min([table.min(axis=1) for table in tables], axis=0)
    high = np.max([table.max(axis=1) for table in tables], axis=0)
    keys = [np.zeros(table.shape[1], dtype=np.int64) for table in tables]
    for row, (start, end) in enumerate(zip(low, high, strict=True)):
        for number, table in enumerate(tables):
            keys[number] = keys[number] * (end - start + 1) + (table[row] - start)
    return keys
