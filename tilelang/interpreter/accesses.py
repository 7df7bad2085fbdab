"""Loads, stores and updates of elements, for all active points at once.

The rules: outside a global tensor a read inside a parallel loop gives the safe value and a write
is dropped; any other access outside a buffer is an error. Reading an element that was never
written is an error. Parallel iterations that touch one element with a write are an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import ir

from tilelang.interpreter.conflicts import Conflict
from tilelang.interpreter.domain import Mask, some
from tilelang.interpreter.machine import Machine, is_per_thread
from tilelang.interpreter.memory import View
from tilelang.interpreter.numbers import to_bits

__all__ = ["load", "spread", "store", "update"]

Index = tuple[Any, ...]


def load(m: Machine, view: View, index: Sequence[Any], span: ir.Span | None) -> Any:
    """The elements at ``index`` (one int or int array a dimension)."""
    view, own = m.place(view)
    index, inside = _inside(m, view, index, span, "read")
    if view.size == 0:
        return np.full(view.dtype.vector_shape, _safe_value(view), view.dtype.carrier)[()]
    where = (*own, *index)
    values = view.gather(where)
    needed = inside & m.active
    _check_written(m, view, where, needed, span)
    if view.storage in m.touched:
        _record(m, view, index, needed, span, write=False)
    if inside is np.True_:
        return values
    keep = np.asarray(inside)[..., None] if view.dtype.lanes > 1 else inside
    return np.where(keep, values, _safe_value(view))[()]


def store(m: Machine, view: View, index: Sequence[Any], value: Any, span: ir.Span | None) -> None:
    """Write ``value`` at ``index`` for the active points."""
    if not some(m.active):
        return
    uniform = bool(m.domain.shape) and all(np.ndim(i) == 0 for i in index)
    view, own = m.place(view, uniform_write=uniform)
    index, inside = _inside(m, view, index, span, "write")
    if view.size == 0:
        return
    if view.storage in m.touched:
        _record(m, view, index, inside & m.active, span, write=True)
    lanes = 1 if view.dtype.lanes > 1 else 0
    where = (*own, *index)
    if m.domain.shape:
        where, (value,) = spread(m, where, [value], inside, lanes)
    elif not inside:
        return
    view.scatter(where, value)
    if m.domain.kind == "threads" and not own and m.options.check_conflicts:
        same = to_bits(view.gather(where), view.dtype) == to_bits(value, view.dtype)
        if not np.all(same):
            raise m.error(
                f"threads write different values to one element of {view.name} in one statement; "
                "use an atomic, or let one thread write",
                span,
            )


def update(
    m: Machine,
    view: View,
    index: Sequence[Any],
    value: Any,
    combine: Callable[[Any, Any], Any],
    span: ir.Span | None,
    needs_old: bool = True,
) -> Any:
    """Atomically replace elements by ``combine(old, value)``, in the order of the points.

    Returns the element each point found before its own update.
    """
    view, own = m.place(view)
    index, inside = _inside(m, view, index, span, "update")
    previous = np.zeros(m.domain.shape, view.dtype.carrier)
    acting = np.broadcast_to(inside & m.active, m.domain.shape)
    if view.size == 0 or not acting.any():
        return previous[()]
    where, (value,) = spread(m, (*own, *index), [value], inside)
    found = np.zeros(int(acting.sum()), view.dtype.carrier)
    for turn in _turns(where, view):
        spot = tuple(axis[turn] for axis in where)
        if needs_old:
            _check_written(m, view, spot, np.True_, span)
        old = view.gather(spot)
        found[turn] = old
        view.scatter(spot, combine(old, value[turn]))
    previous[acting] = found
    return previous[()]


def spread(
    m: Machine, where: Index, values: list[Any], inside: Mask, lanes: int = 0
) -> tuple[Index, list[Any]]:
    """Index and values of the points that act, as 1-D arrays in the order of the points."""
    shape = m.domain.shape
    acting = np.broadcast_to(inside & m.active, shape)
    index = tuple(np.broadcast_to(i, shape)[acting] for i in where)
    chosen = []
    for value in values:
        value = np.asarray(value)
        vector = value.shape[value.ndim - lanes :]
        chosen.append(np.broadcast_to(value, shape + vector)[acting])
    return index, chosen


def _turns(where: Index, view: View) -> list[np.ndarray]:
    """Split points so that none of a group share an element; earlier points come first."""
    shape = (*view.storage.lead, *view.shape)
    keys: Any = np.ravel_multi_index(where, shape) if shape else np.zeros(1, np.int64)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts: Any = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    rank = np.arange(len(keys)) - np.repeat(starts, np.diff([*starts, len(keys)]))
    return [np.sort(order[rank == turn]) for turn in range(int(rank.max()) + 1)]


def _inside(
    m: Machine, view: View, index: Sequence[Any], span: ir.Span | None, what: str
) -> tuple[list[Any], Mask]:
    """Which points access inside the buffer, and ``index`` with the others moved inside."""
    inside: Any = True
    for i, extent in zip(index, view.shape, strict=True):
        inside = inside & ((i >= 0) & (i < extent))
    if inside is True or np.all(inside):
        return list(index), np.True_
    inside = np.asarray(inside)[()]
    bad = m.active & ~inside
    tolerant = m.domain.in_parallel and view.scope == "global"
    if np.any(bad) and not tolerant:
        raise m.error(_outside(view, index, bad, what), span)
    return [
        np.clip(i, 0, max(extent - 1, 0)) for i, extent in zip(index, view.shape, strict=True)
    ], inside


def _outside(view: View, index: Sequence[Any], bad: Mask, what: str) -> str:
    shape = np.broadcast_shapes(np.shape(bad), *(np.shape(i) for i in index))
    first = np.argwhere(np.broadcast_to(bad, shape))[0]
    at = [int(np.broadcast_to(i, shape)[tuple(first)]) for i in index]
    return (
        f"{what} of {view.name}{at} is outside its shape {list(view.shape)}"
        + ("" if view.scope == "global" else f" (scope {view.scope})")
        + ("; guard it, or use a T.Parallel loop or tile op" if view.scope == "global" else "")
    )


def _check_written(
    m: Machine, view: View, where: Index, needed: Mask, span: ir.Span | None
) -> None:
    if view.storage.written is None or not m.options.check_initialized:
        return
    missing = needed & np.logical_not(view.is_written(where))
    if not some(missing):
        return
    own = len(view.storage.lead)
    first = np.argwhere(missing)[0]
    at = [int(np.broadcast_to(i, missing.shape)[tuple(first)]) for i in where[own:]]
    reason = f": {view.storage.note}" if view.storage.note else ""
    kind = "" if is_per_thread(view.scope) or view.scope == "global" else f" ({view.scope})"
    raise m.error(f"{view.name}{at}{kind} is read before it is written{reason}", span)


def _record(
    m: Machine, view: View, index: Sequence[Any], acting: Mask, span: ir.Span | None, write: bool
) -> None:
    """Tell the log of the nest."""
    if not m.options.check_conflicts:
        return
    log = m.touched[view.storage]
    elements = np.asarray(view.element_numbers(tuple(index)))
    chosen = np.broadcast_to(acting, m.domain.shape)
    elements = np.broadcast_to(elements, m.domain.shape)[chosen]
    iterations = m.domain.number[chosen]
    parts = view.element_bits // log.unit
    if parts > 1:
        elements = (elements[:, None] * parts + np.arange(parts)).reshape(-1)
        iterations = np.repeat(iterations, parts)
    try:
        log.write(elements, iterations) if write else log.read(elements, iterations)
    except Conflict as conflict:
        one, two = (_iteration(m, n) for n in (conflict.first, conflict.second))
        raise m.error(
            f"iterations of T.Parallel touch one element of {view.name}: {one} {conflict.kinds} "
            f"({two}). Their order is not defined; use a reduction or an atomic",
            span,
        ) from None


def _iteration(m: Machine, number: int | None) -> str:
    if number is None:
        return "another iteration"
    at = np.unravel_index(number, m.domain.shape)
    return f"iteration {tuple(int(i) for i in at)}"


def _safe_value(view: View) -> Any:
    return view.dtype.carrier.type(0) if view.safe_value is None else view.safe_value
