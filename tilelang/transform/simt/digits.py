"""Slots of tile elements in terms of the loop variables of one thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilelang.layout.distribution import COPY, Distribution

__all__ = ["Digits", "loop_digits"]


@dataclass(frozen=True)
class Digits:
    """The index of one axis of a nest as digits: ``(weight, extent, value)``, lowest first."""

    digits: tuple[tuple[int, int, Any], ...]

    def value(self) -> Any:
        """The whole index."""
        total: Any = 0
        for weight, _, value in self.digits:
            total = total + (value * weight if weight > 1 else value)
        return total

    def part(self, divisor: int, extent: int) -> Any | None:
        """``(index // divisor) % extent`` from the digits alone, None where they do not align."""
        total: Any = 0
        for weight, size, value in self.digits:
            low, high = max(weight, divisor), min(weight * size, divisor * extent)
            if low >= high:
                continue
            if low % weight or high % low or low % divisor:
                return None
            digit = value
            if low > weight:
                digit = digit // (low // weight)
            if high < weight * size:
                digit = digit % (high // low)
            total = total + (digit * (low // divisor) if low > divisor else digit)
        return total


def loop_digits(loop: Distribution, thread: Any, slots: Sequence[Any]) -> list[Digits]:
    """The digits of every axis of ``loop`` in ``thread``, whose slot digits are ``slots``."""
    found: list[list[tuple[int, int, Any]]] = [[] for _ in loop.shape]
    last = loop.threads[-1] if loop.threads else None
    for part in loop.threads:
        if part.axis == COPY:
            continue
        digit = thread // part.stride if part.stride > 1 else thread
        digit = digit if part is last else digit % part.extent
        found[part.axis].append((part.divisor, part.extent, digit))
    for part, value in zip(loop.slots, slots, strict=True):
        found[part.axis].append((part.divisor, part.extent, value))
    return [Digits(tuple(sorted(axis, key=lambda d: d[0]))) for axis in found]
