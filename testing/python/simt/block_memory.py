"""Memory of the block machine: bytes, and which threads touched them since the last barrier."""

from __future__ import annotations

from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

__all__ = ["Fault", "Memory", "Race", "check_alignment", "numpy_dtype"]

_NOBODY, _MANY = -1, -2


class Fault(AssertionError):
    """A thread program does what no device allows, or what its memory does not have."""


class Race(Fault):
    """Two threads touch the same byte, one of them writes, and no barrier is between."""


def numpy_dtype(name: str) -> np.dtype:
    """The dtype of elements in memory."""
    if name == "bool":
        return np.dtype(np.bool_)
    return np.dtype(getattr(ml_dtypes, name, None) or name)


@dataclass
class Memory:
    """Bytes that threads share, and who has touched each since the last barrier."""

    name: str
    raw: np.ndarray
    writer: np.ndarray = field(init=False)
    reader: np.ndarray = field(init=False)
    flight: np.ndarray = field(init=False)
    atomic: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        size = self.raw.size
        self.writer = np.full(size, _NOBODY, np.int32)
        self.reader = np.full(size, _NOBODY, np.int32)
        self.flight = np.zeros(size, np.bool_)
        self.atomic = np.zeros(size, np.bool_)

    def barrier(self) -> None:
        self.writer[:] = _NOBODY
        self.reader[:] = _NOBODY
        self.atomic[:] = False

    def _check(self, at: np.ndarray, what: str, size: int, atomic: bool = False) -> None:
        if at.size and (at.min() < 0 or at.max() >= size):
            outside = at[(at < 0) | (at >= size)][0]
            raise Fault(f"{what} of byte {outside} of {self.name}, which has {size}")
        if self.flight[at].any():
            raise Race(f"{what} of {self.name} while a copy into it is in flight")
        if self.atomic[at].any() and not atomic:
            raise Race(f"{what} of {self.name} that is updated atomically since the last barrier")

    def read(self, at: np.ndarray, threads: np.ndarray, size: int | None = None) -> np.ndarray:
        """The bytes ``at`` (lanes, width), read by ``threads`` (lanes,)."""
        self._check(at, "a read", self.raw.size if size is None else size)
        mine = np.broadcast_to(threads[:, None], at.shape)
        writer = self.writer[at]
        if ((writer != _NOBODY) & (writer != mine)).any():
            raise Race(f"threads read {self.name} that others wrote since the last barrier")
        known = self.reader[at]
        new = np.where((known == _NOBODY) | (known == mine), mine, _MANY)
        self.reader[at] = new
        self.reader[at[self.reader[at] != new]] = _MANY
        return self.raw[at]

    def add(self, at: np.ndarray, data: np.ndarray) -> None:
        """Add ``data`` (lanes,) to the elements at ``at`` (lanes, width) atomically."""
        self._check(at, "an atomic update", self.raw.size, atomic=True)
        if ((self.writer[at] != _NOBODY) | (self.reader[at] != _NOBODY)).any():
            raise Race(f"an atomic update of {self.name} that is used since the last barrier")
        np.add.at(self.raw.view(data.dtype), at[:, 0] // data.itemsize, data)
        self.atomic[at] = True

    def write(
        self, at: np.ndarray, threads: np.ndarray, data: np.ndarray, size: int | None = None
    ) -> None:
        """Store ``data`` (lanes, width); lanes of one statement may agree on a value."""
        self._check(at, "a write", self.raw.size if size is None else size)
        mine = np.broadcast_to(threads[:, None], at.shape)
        reader, writer = self.reader[at], self.writer[at]
        if ((reader != _NOBODY) & (reader != mine)).any():
            raise Race(f"threads write {self.name} that others read since the last barrier")
        if ((writer != _NOBODY) & (writer != mine)).any():
            raise Race(f"threads write {self.name} that others wrote since the last barrier")
        self.raw[at] = data
        if (self.raw[at] != data).any():
            raise Race(f"threads write different values to one place of {self.name}")
        self.writer[at] = mine
        self.writer[at[self.writer[at] != mine]] = _MANY


def check_alignment(at: np.ndarray, size: int, what: str) -> None:
    """Wide accesses start at a multiple of their size."""
    if at.size and (at[:, 0] % size).any():
        raise Fault(f"{what} of {size} bytes at byte {at[:, 0][at[:, 0] % size != 0][0]}")
