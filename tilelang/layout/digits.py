"""Mixed-radix digits of index spaces: what part of an index a map looks at.

An index ``i < 12`` with digits ``(3, 4)`` is ``i = d0 * 4 + d1``. Layouts of tiles are nearly
always maps between digits, so that the questions "which part of the index is unused by the thread
map" and "what is the inverse" have answers in closed form. Everything found here is checked by
enumeration by its callers, who fall back when it does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelang.layout.index_expr import IntArray

__all__ = ["Digit", "digit_runs", "flatten", "split_digits", "unused_digits"]


@dataclass(frozen=True)
class Digit:
    """The part ``(index[axis] // divisor) % extent`` of a multi-dimensional index."""

    axis: int
    divisor: int
    extent: int

    def of(self, indices: Sequence[Any], shape: Sequence[int]) -> Any:
        """The digit's value as an expression (or array) of ``indices``."""
        value = indices[self.axis]
        if self.divisor > 1:
            value = value // self.divisor
        if self.divisor * self.extent < shape[self.axis]:
            value = value % self.extent
        return value


def split_digits(table: IntArray, axis: int) -> list[Digit]:
    """Split one axis of the domain into the digits that ``table`` distinguishes, lowest first.

    Powers of two are split into bits. Any other extent is split where the map's step along the
    axis changes: a run of equal steps is one digit.

    Parameters
    ----------
    table : int64 array ``(outputs, *domain)``
        The map, tabulated.
    axis : int
        Axis of the domain.
    """
    extent = table.shape[axis + 1]
    if extent & (extent - 1) == 0:
        return [Digit(axis, 1 << bit, 2) for bit in range(extent.bit_length() - 1)]
    column = np.moveaxis(table, axis + 1, 1).reshape(len(table), extent, -1)[:, :, 0]
    digits, divisor = [], 1
    while divisor < extent:
        run = _run_length(column, divisor)
        digits.append(Digit(axis, divisor, run))
        divisor *= run
    return digits


def _run_length(column: IntArray, divisor: int) -> int:
    """Largest digit extent at ``divisor`` along which ``column`` advances by equal steps."""
    remaining = column.shape[1] // divisor
    steps = column[:, ::divisor] - column[:, :1]
    best = next(d for d in range(2, remaining + 1) if remaining % d == 0)
    for extent in range(best, remaining + 1):
        if remaining % extent == 0:
            ramp = steps[:, 1:2] * np.arange(extent)
            if np.array_equal(steps[:, :extent], ramp):
                best = extent
    return best


def digit_runs(table: IntArray, axis: int) -> list[tuple[Digit, bool]]:
    """The digits of one axis, lowest first, each with whether the map's value depends on it.

    Neighbouring digits of the same kind are merged into one.
    """
    runs: list[tuple[Digit, bool]] = []
    for digit in split_digits(table, axis):
        used = not _is_unused(table, digit)
        if runs and runs[-1][1] == used:
            low = runs.pop()[0]
            digit = Digit(axis, low.divisor, low.extent * digit.extent)
        runs.append((digit, used))
    return runs


def unused_digits(table: IntArray) -> list[Digit]:
    """The digits of the domain that never change the map's value.

    ``table`` is ``(outputs, *domain)``. The result is ordered by axis, then from the highest
    digit down, as row-major order counts them.
    """
    return [
        digit
        for axis in range(table.ndim - 1)
        for digit, used in reversed(digit_runs(table, axis))
        if not used
    ]


def _is_unused(table: IntArray, digit: Digit) -> bool:
    axis = digit.axis + 1
    shape = table.shape
    split = (*shape[:axis], -1, digit.extent, digit.divisor, *shape[axis + 1 :])
    parts = table.reshape(split)
    first = parts.take([0], axis=axis + 1)
    return bool((parts == first).all())


def flatten(values: Iterable[tuple[Any, int]]) -> Any:
    """Row-major number of ``(value, extent)`` pairs, highest first; 0 when there are none."""
    total: Any = 0
    for value, extent in values:
        total = value if isinstance(total, int) and total == 0 else total * extent + value
    return total
