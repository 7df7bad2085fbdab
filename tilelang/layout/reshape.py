"""Seeing the elements of a tile under another logical shape or element size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelang.errors import LayoutError
from tilelang.layout.digits import flatten
from tilelang.layout.index_expr import IntArray

__all__ = ["Reshape"]


@dataclass(frozen=True)
class Reshape:
    """From logical indices of ``new`` to those of ``old``, both counted in row-major order.

    The new tile has ``num / den`` times the old number of elements: with ``num > den`` each old
    element is seen as several narrower ones, with ``den > num`` several old ones as one.

    Raises
    ------
    LayoutError
        If the numbers of elements do not fit.
    """

    old: tuple[int, ...]
    new: tuple[int, ...]
    num: int = 1
    den: int = 1

    def __post_init__(self) -> None:
        if self.num < 1 or self.den < 1 or (self.num % self.den and self.den % self.num):
            raise LayoutError(f"reshape: {self.num}/{self.den} is not a ratio of element sizes")
        count = int(np.prod(self.old))
        if int(np.prod(self.new)) * self.den != count * self.num:
            raise LayoutError(
                f"reshape: {list(self.old)} has {count} elements; times {self.num}/{self.den} "
                f"that is not the number of elements of {list(self.new)}"
            )

    @property
    def split(self) -> int:
        """Into how many new elements an old one is split."""
        return max(self.num // self.den, 1)

    @property
    def joined(self) -> int:
        """How many old elements a new one joins."""
        return max(self.den // self.num, 1)

    def source(self, indices: Sequence[Any]) -> list[Any]:
        """The old index of the (first) old element behind the new element at ``indices``."""
        position = self._position(indices)
        position = position * self.joined if self.joined > 1 else position
        position = position // self.split if self.split > 1 else position
        found, divisor = [], 1
        for axis in reversed(range(len(self.old))):
            digit = position // divisor if divisor > 1 else position
            found.append(digit % self.old[axis] if axis else digit)
            divisor *= self.old[axis]
        return found[::-1]

    def rescaled(self, physical: Sequence[Any], indices: Sequence[Any]) -> list[Any]:
        """The physical index of a new element, given that of its old one."""
        *outer, last = physical
        if self.split > 1:
            last = last * self.split + self._position(indices) % self.split
        if self.joined > 1:
            last = last // self.joined
        return [*outer, last]

    def _position(self, indices: Sequence[Any]) -> Any:
        return flatten(zip(indices, self.new, strict=True))

    def require_side_by_side(self, table: IntArray) -> None:
        """Refuse to join elements that do not lie side by side.

        ``table`` holds the old physical indices, ``(physical dimensions, *old)``.
        """
        flat = table.reshape(len(table), -1, self.joined)
        steps = flat - flat[..., :1]
        expected = np.zeros_like(steps)
        expected[-1] = np.arange(self.joined)
        if (steps != expected).any() or (flat[-1, :, 0] % self.joined).any():
            raise LayoutError(
                f"reshape: groups of {self.joined} neighbouring elements do not lie side by side"
            )

    def require_same_owner(self, threads: IntArray) -> None:
        """Refuse to join elements with different owners; ``threads`` is ``(copies, *old)``."""
        groups = threads.reshape(len(threads), -1, self.joined)
        if (groups != groups[..., :1]).any():
            raise LayoutError(f"reshape: groups of {self.joined} elements span several threads")
