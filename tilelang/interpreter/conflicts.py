"""Detection of parallel iterations that touch one element with a write."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Conflict", "TouchLog"]

_NONE, _MANY = -1, -2


class Conflict(Exception):
    """Two iterations touch one element; ``first`` and ``second`` are their numbers."""

    def __init__(self, first: int | None, second: int, kinds: str) -> None:
        super().__init__(kinds)
        self.first, self.second, self.kinds = first, second, kinds


class TouchLog:
    """Which iteration read and wrote each element of one storage during a T.Parallel nest.

    Two arrays over the range of elements touched so far hold the iteration number, or "none", or
    (for reads) "several". ``unit`` is the size of the smallest element in bits; a larger one counts
    as several.
    """

    def __init__(self, unit: int = 8) -> None:
        self.unit = unit
        self._low = 0
        self._writer = np.empty(0, np.int32)
        self._reader = np.empty(0, np.int32)

    def _cover(self, low: int, high: int) -> None:
        if not len(self._writer):
            self._low = low
        before = max(0, self._low - low)
        after = max(0, high - self._low - len(self._writer))
        if before or after:
            self._writer = np.pad(self._writer, (before, after), constant_values=_NONE)
            self._reader = np.pad(self._reader, (before, after), constant_values=_NONE)
            self._low -= before

    def _slots(self, elements: np.ndarray) -> np.ndarray:
        self._cover(int(elements.min()), int(elements.max()) + 1)
        return elements - self._low

    def read(self, elements: np.ndarray, iterations: np.ndarray) -> None:
        """Record reads; both arguments are 1-D. Raises Conflict."""
        if not len(elements):
            return
        slots = self._slots(elements)
        self._clash(self._writer[slots], iterations, "writes it and another one reads it")
        before = self._reader[slots]
        self._reader[slots] = iterations
        several = (before != _NONE) & (before != iterations)
        several |= self._reader[slots] != iterations
        self._reader[slots[several]] = _MANY

    def write(self, elements: np.ndarray, iterations: np.ndarray) -> None:
        """Record writes; both arguments are 1-D. Raises Conflict."""
        if not len(elements):
            return
        slots = self._slots(elements)
        self._clash(self._writer[slots], iterations, "writes it and so does another one")
        self._clash(self._reader[slots], iterations, "reads it and another one writes it")
        self._writer[slots] = iterations
        self._clash(self._writer[slots], iterations, "writes it and so does another one")

    @staticmethod
    def _clash(owner: np.ndarray, iterations: np.ndarray, kinds: str) -> None:
        clash: Any = (owner != _NONE) & (owner != iterations)
        if clash.any():
            where = int(np.argmax(clash))
            first = int(owner[where])
            raise Conflict(None if first == _MANY else first, int(iterations[where]), kinds)
