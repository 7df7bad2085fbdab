"""Iteration domains: the axes over which one statement is evaluated at once.

Statements run one after another, but each is evaluated for all points of the current domain: for
all threads of a block (where a kernel uses them) or for all iterations of a ``T.Parallel`` nest.
A value is a number, or an array with one axis for each axis of the domain (extent 1 where it does
not vary). A vector value has its lanes as one more axis at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

__all__ = ["Divergent", "Domain", "Mask", "some"]

Mask = Any  # np.bool_ or a bool array over the axes of a domain


def some(mask: Mask) -> bool:
    """Whether any point is in ``mask``."""
    return mask is np.True_ or (mask is not np.False_ and bool(mask.any()))


class Divergent(Exception):
    """A value was needed that differs between threads where one value is needed for all."""


@dataclass(frozen=True, eq=False)
class Domain:
    """One level of iteration.

    ``block`` and ``threads`` are outermost: one point, or one for each thread. ``parallel`` is a
    T.Parallel nest, or (without axes) a tile op run once by all threads; ``entered`` are the
    points of the parent that take part. ``point`` is a single point ``chosen`` from the parent.
    """

    kind: Literal["block", "threads", "parallel", "point"]
    shape: tuple[int, ...] = ()
    parent: Domain | None = None
    entered: Mask = field(default=np.True_)
    chosen: tuple[int, ...] = ()

    def nest(self, extents: tuple[int, ...], entered: Mask) -> Domain:
        """The domain of a parallel nest, or of a collective tile op if there are no extents."""
        outer = self.shape if self.kind == "parallel" else ()
        return Domain("parallel", (*outer, *extents), self, entered)

    def points(self, active: Mask) -> Iterator[Domain]:
        """A single-point domain for each active point, in order."""
        for index in np.argwhere(np.broadcast_to(active, self.shape)):
            yield Domain("point", (), self, np.True_, tuple(int(i) for i in index))

    @cached_property
    def grids(self) -> tuple[np.ndarray, ...]:
        """The coordinates along each axis, shaped to broadcast."""
        return np.ix_(*(np.arange(extent) for extent in self.shape)) if self.shape else ()

    @cached_property
    def number(self) -> np.ndarray:
        """A different number for each point."""
        return np.arange(int(np.prod(self.shape)), dtype=np.int32).reshape(self.shape)

    @property
    def in_parallel(self) -> bool:
        """Whether this lies in a T.Parallel nest or tile op."""
        return self.kind == "parallel" or (self.parent is not None and self.parent.in_parallel)

    def path_from(self, home: Domain) -> list[Domain]:
        """The domains below ``home`` down to this one, outermost first."""
        path: list[Domain] = []
        domain: Domain | None = self
        while domain is not home:
            assert domain is not None, "value used outside the domain it was made in"
            path.append(domain)
            domain = domain.parent
        return path[::-1]

    def seen(self, value: Any, home: Domain, lanes: int = 0) -> Any:
        """``value`` of domain ``home``, as a value of this domain (an inner one).

        ``lanes`` is 1 for vectors. Raises Divergent if a value that differs between threads is
        seen from a construct that all threads run together.
        """
        if home is self or np.ndim(value) == lanes:
            return value
        for domain in self.path_from(home):
            if np.ndim(value) == lanes:
                break
            value = domain._step(value, lanes)
        return value

    def _step(self, value: np.ndarray, lanes: int) -> Any:
        assert self.parent is not None
        axes = value.shape[: value.ndim - lanes]
        if self.kind == "point":
            return value[
                tuple(0 if size == 1 else i for size, i in zip(axes, self.chosen, strict=True))
            ]
        if self.parent.kind == "threads":
            return self._agreed(value)
        missing = len(self.shape) - len(axes)
        return value.reshape(axes + (1,) * missing + value.shape[value.ndim - lanes :])

    def _agreed(self, value: np.ndarray) -> Any:
        if len(value) == 1:
            return value[0]
        seen = value if self.entered.all() else value[self.entered]
        raw = np.ascontiguousarray(seen).view(np.uint8).reshape(len(seen), -1)
        if (raw != raw[0]).any():
            raise Divergent
        return seen[0]
