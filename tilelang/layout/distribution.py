"""Distributions: how the elements of a tile are dealt to the threads of a block, in closed form.

A distribution is made of digits of the tile's indices. Each digit is either a digit of the thread
number or a digit of the slot in the thread's registers, so that both directions are sums and
remainders by constants. An axis may be covered past its extent (a tile of 100 columns on 32
threads of 4): indices outside the tile have slots but no element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilelang.errors import LayoutError
from tilelang.layout.fragment import Fragment

__all__ = ["COPY", "Distribution", "Part", "dense", "from_fragment"]

#: Axis of a digit of the thread number that does not depend on the index: its threads hold copies.
COPY = -1


@dataclass(frozen=True)
class Part:
    """The digit ``(index[axis] // divisor) % extent`` and its weight in the number it belongs to.

    Parameters
    ----------
    axis : int
        Axis of the tile, or :data:`COPY`.
    divisor : int
        Weight of the digit in the index (for a copy: in the number of the copy).
    extent : int
    stride : int
        Weight in the thread number, or in the slot number.
    """

    axis: int
    divisor: int
    extent: int
    stride: int

    def of(self, number: Any) -> Any:
        """The digit's value in a thread or slot number."""
        shifted = number // self.stride if self.stride > 1 else number
        return shifted % self.extent


def dense(digits: Iterable[tuple[int, int, int]]) -> tuple[Part, ...]:
    """Parts of ``(axis, divisor, extent)`` digits, lowest first, numbered without gaps."""
    parts, stride = [], 1
    for axis, divisor, extent in digits:
        if extent > 1:
            parts.append(Part(axis, divisor, extent, stride))
            stride *= extent
    return tuple(parts)


@dataclass(frozen=True)
class Distribution:
    """Where the elements of a tile live: ``index -> (thread, slot)`` and back.

    Parameters
    ----------
    shape : tuple of int
        Extents of the tile.
    threads, slots : tuple of Part
        Digits of the thread number and of the slot number, lowest first and without gaps. For
        every axis the digits in both together cover the extent.

    Raises
    ------
    LayoutError
        If the digits of an axis leave gaps or do not reach its extent.
    """

    shape: tuple[int, ...]
    threads: tuple[Part, ...]
    slots: tuple[Part, ...]

    def __post_init__(self) -> None:
        for parts in (self.threads, self.slots):
            stride = 1
            for part in parts:
                if part.stride != stride:
                    raise LayoutError(f"digits of {self} leave gaps")
                stride *= part.extent
        for axis, extent in enumerate(self.shape):
            reach = 1
            for part in self._digits(axis):
                if part.divisor != reach:
                    raise LayoutError(f"axis {axis} of {self} is not covered without overlap")
                reach *= part.extent
            if reach < extent:
                raise LayoutError(f"axis {axis} of {self} is covered up to {reach} of {extent}")

    def _digits(self, axis: int) -> list[Part]:
        found = [p for p in (*self.threads, *self.slots) if p.axis == axis]
        return sorted(found, key=lambda part: part.divisor)

    # -- sizes ---------------------------------------------------------------------------------
    @cached_property
    def num_threads(self) -> int:
        """Threads that take part: those from this number on hold nothing."""
        return int(np.prod([p.extent for p in self.threads], dtype=np.int64))

    @cached_property
    def num_slots(self) -> int:
        """Registers (in elements) a thread needs."""
        return int(np.prod([p.extent for p in self.slots], dtype=np.int64))

    @cached_property
    def copies(self) -> tuple[Part, ...]:
        """The digits of the thread number that tell copies of an element apart."""
        return tuple(p for p in self.threads if p.axis == COPY)

    def covered(self, axis: int) -> int:
        """How far the digits of ``axis`` reach; at least its extent."""
        return int(np.prod([p.extent for p in self._digits(axis)], dtype=np.int64))

    # -- the map and its inverse ---------------------------------------------------------------
    def thread_of(self, indices: Sequence[Any]) -> Any:
        """The first thread that holds the element at ``indices``."""
        return self._number(self.threads, indices)

    def slot_of(self, indices: Sequence[Any]) -> Any:
        """The slot of the element at ``indices``, the same in every owner."""
        return self._number(self.slots, indices)

    def _number(self, parts: Sequence[Part], indices: Sequence[Any]) -> Any:
        total: Any = 0
        for part in parts:
            if part.axis == COPY:
                continue
            digit = indices[part.axis]
            if part.divisor > 1:
                digit = digit // part.divisor
            if part.divisor * part.extent < self.covered(part.axis):
                digit = digit % part.extent
            total = total + digit * part.stride if part.stride > 1 else total + digit
        return total

    def indices_of(self, thread: Any, slot_digits: Sequence[Any]) -> list[Any]:
        """The indices of the element in a slot of ``thread``.

        Parameters
        ----------
        thread : int or expression
        slot_digits : sequence
            The value of each of :attr:`slots`, as loop variables of that extent.
        """
        result: list[Any] = [0] * len(self.shape)
        last = self.threads[-1] if self.threads else None
        for part in self.threads:
            if part.axis == COPY:
                continue
            digit = thread // part.stride if part.stride > 1 else thread
            digit = digit % part.extent if part is not last else digit
            result[part.axis] = result[part.axis] + digit * part.divisor
        for part, value in zip(self.slots, slot_digits, strict=True):
            result[part.axis] = result[part.axis] + value * part.divisor
        return result

    # -- derived distributions -----------------------------------------------------------------
    def onto(self, axes: Mapping[int, int], shape: Sequence[int]) -> Distribution:
        """The distribution of a tile whose axis ``axes[a]`` is our axis ``a``.

        Axes that are not mapped disappear: their digits of the thread number become copies, their
        slots are left out.
        """

        def renamed(parts: Sequence[Part]) -> list[tuple[int, int, int]]:
            out = []
            for part in parts:
                if part.axis != COPY and part.axis in axes:
                    out.append((axes[part.axis], part.divisor, part.extent))
                elif parts is self.threads:
                    out.append((COPY, 1, part.extent))
            return out

        return Distribution(tuple(shape), dense(renamed(self.threads)), dense(renamed(self.slots)))

    @cached_property
    def owners(self) -> tuple[tuple[int, int, int, int], ...]:
        """The thread digits in their finest form."""
        return tuple(atom for part in self.threads for atom in _atoms(part))

    def holds_for(self, loop: Distribution) -> bool:
        """Whether the thread that runs an iteration of ``loop`` holds the element read there.

        ``loop`` is a loop's distribution mapped onto this tile by :meth:`onto`.
        """
        if self.shape != loop.shape or loop.num_threads > self.num_threads:
            return False
        return {atom for atom in self.owners if atom[0] != COPY} <= set(loop.owners)

    def written_by(self, loop: Distribution) -> bool:
        """Whether every owner of an element runs the iteration of ``loop`` that writes it."""
        return self.shape == loop.shape and _coarsest(self.threads) == _coarsest(loop.threads)

    def same_as(self, other: Distribution) -> bool:
        """Whether every element has the same owners and the same slot in both."""
        return self.written_by(other) and _coarsest(self.slots) == _coarsest(other.slots)

    def is_replicated(self, threads: int) -> bool:
        """Whether each of ``threads`` threads holds the whole tile."""
        return all(p.axis == COPY for p in self.threads) and self.num_threads >= threads

    def fragment(self) -> Fragment:
        """The same distribution as a public :class:`~tilelang.layout.Fragment`."""
        copies = int(np.prod([p.extent for p in self.copies], dtype=np.int64))
        rank = len(self.shape)

        def thread(*indices: Any) -> Any:
            total, rest = self.thread_of(indices), indices[rank] if copies > 1 else 0
            for part in self.copies:
                total, rest = total + rest % part.extent * part.stride, rest // part.extent
            return total

        return Fragment(
            list(self.shape),
            forward_thread_fn=thread,
            replicate=copies,
            forward_index_fn=lambda *indices: self.slot_of(indices),
        )


def _coarsest(parts: Sequence[Part]) -> list[Part]:
    """The parts with neighbours joined; which copy is which does not matter."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        copy = part.axis == COPY
        follows = last is not None and part.axis == last.axis
        if last is not None and follows and (copy or part.divisor == last.divisor * last.extent):
            joined[-1] = Part(last.axis, last.divisor, last.extent * part.extent, last.stride)
        else:
            joined.append(Part(COPY, 1, part.extent, part.stride) if copy else part)
    return joined


def _atoms(part: Part) -> list[tuple[int, int, int, int]]:
    """Split a digit by the prime factors of its extent, lowest first."""
    atoms, extent, scale = [], part.extent, 1
    for prime in _primes(extent):
        atoms.append((part.axis, part.divisor * scale, prime, part.stride * scale))
        scale *= prime
    return atoms


def _primes(number: int) -> list[int]:
    found, factor = [], 2
    while number > 1:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return found


def from_fragment(fragment: Fragment) -> Distribution:
    """Read the digits of a user's fragment.

    Raises
    ------
    LayoutError
        If its maps are no sums of index digits.
    """
    shape = tuple(fragment.get_input_shape())
    owners = fragment.thread_table()  # (copies, *shape)
    slots = fragment.table()
    flat = np.zeros(shape, dtype=np.int64)
    for row, extent in zip(slots, fragment.get_output_shape(), strict=True):
        flat = flat * extent + row
    sets = np.sort(owners, axis=0)
    threads, held = _digits_of(sets[0], shape), _digits_of(flat, shape)
    offsets = sets - sets[:1]
    copies = _digits_of(offsets.reshape(len(owners), -1)[:, 0], (len(owners),))
    alike = (offsets == offsets.reshape(len(owners), -1)[:, 0].reshape(-1, *[1] * len(shape))).all()
    if threads is None or copies is None or held is None or not alike:
        raise LayoutError(f"{fragment} is no sum of index digits")
    threads += [(COPY, divisor, extent, stride) for _, divisor, extent, stride in copies]
    return Distribution(shape, _placed(threads, True), _placed(held, False))


def _digits_of(table: np.ndarray, shape: tuple[int, ...]) -> list[tuple[int, int, int, int]] | None:
    """The digits ``(axis, divisor, extent, weight)`` whose weighted sum is ``table``."""
    if table.reshape(-1)[0] != 0:
        return None
    found: list[tuple[int, int, int, int]] = []
    total = np.zeros(shape, dtype=np.int64)
    for axis, extent in enumerate(shape):
        line = np.moveaxis(table, axis, 0).reshape(extent, -1)[:, 0]
        index, divisor = np.arange(extent), 1
        part = np.zeros(extent, dtype=np.int64)
        while divisor < extent:
            heads = line[::divisor]
            weight = int(heads[1])
            run = heads == np.arange(len(heads)) * weight
            size = len(heads) if run.all() else int(np.argmin(run))
            if weight:
                found.append((axis, divisor, size, weight))
                part += index // divisor % size * weight
            divisor *= size
        reach = [1] * len(shape)
        reach[axis] = extent
        total = total + part.reshape(reach)
    return found if np.array_equal(total, table) else None


def _placed(digits: Sequence[tuple[int, int, int, int]], fill: bool) -> tuple[Part, ...]:
    """Order digits by weight; gaps in the thread number are copies, in the slots an error."""
    parts, stride = [], 1
    for axis, divisor, extent, weight in sorted(digits, key=lambda d: d[3]):
        if weight != stride:
            if not fill or weight % stride:
                raise LayoutError("the digits of a fragment overlap or leave gaps")
            parts.append(Part(COPY, 1, weight // stride, stride))
        parts.append(Part(axis, divisor, extent, weight))
        stride = weight * extent
    return tuple(parts)
