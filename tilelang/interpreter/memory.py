"""Memory: storages of raw bytes with a record of what was written, and typed views of them.

A storage keeps bytes, so buffers of different dtypes over one storage (``T.view``) see each
other's bits. Beside the bytes it keeps which were written, two bits a byte (one a nibble).
Per-thread buffers have one copy of the bytes for each point of the domain they were allocated in;
those axes come first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tilelang.interpreter.numbers import Dtype, from_bits, to_bits

__all__ = ["Storage", "View", "strides_of"]

_WRITTEN = 3


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


@dataclass(eq=False)
class Storage:
    """Bytes with ``lead`` copies. ``written`` is None where all bytes count as written."""

    name: str
    scope: str
    data: np.ndarray  # uint8, lead + (bytes,)
    written: np.ndarray | None
    home: Any  # the Domain it was allocated in
    note: str = ""  # why bytes count as unwritten although they were assigned
    origin: tuple[np.ndarray, np.ndarray] | None = None  # of a private copy: what it started from

    @staticmethod
    def allocate(name: str, scope: str, nbytes: int, home: Any, lead: tuple[int, ...]) -> Storage:
        """Uninitialised memory."""
        shape = (*lead, nbytes)
        return Storage(name, scope, np.zeros(shape, np.uint8), np.zeros(shape, np.uint8), home)

    @property
    def record(self) -> np.ndarray:
        """Which bytes were written, of a storage that keeps a record."""
        assert self.written is not None
        return self.written

    @property
    def lead(self) -> tuple[int, ...]:
        """The axes of private copies."""
        return self.data.shape[:-1]


@dataclass(eq=False)
class View:
    """A buffer: ``shape`` elements of ``dtype`` in ``storage``, at ``offset`` and with ``strides``.

    Offset and strides count elements. :attr:`array` and :attr:`written` are numpy arrays over the
    same memory, of shape ``lead + shape`` (and the lanes of a vector dtype).
    """

    name: str
    dtype: Dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    storage: Storage
    safe_value: Any = field(default=None)

    def over(self, storage: Storage) -> View:
        """The same buffer over another storage."""
        return replace(self, storage=storage)

    @cached_property
    def size(self) -> int:
        """How many elements the buffer has."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def scope(self) -> str:
        """The memory scope."""
        return self.storage.scope

    def _typed(self, data: np.ndarray, kind: np.dtype) -> np.ndarray:
        item, lanes = kind.itemsize, self.dtype.lanes
        lead = data.shape[:-1]
        if self.size == 0:
            return np.zeros((*lead, *self.shape, *self.dtype.vector_shape), kind)
        start = self.offset * item * lanes
        stop = data.shape[-1] - (data.shape[-1] - start) % item
        # numpy cannot describe all short floats to as_strided, but it can view them.
        flat = data[..., start:stop].view(f"u{item}")
        step = flat.strides[-1]
        strides = [*flat.strides[:-1], *(s * step * lanes for s in self.strides)]
        extents = [*lead, *self.shape]
        if lanes > 1:
            extents, strides = [*extents, lanes], [*strides, step]
        return np.lib.stride_tricks.as_strided(flat, extents, strides).view(kind)

    @cached_property
    def array(self) -> np.ndarray:
        """The elements (not for packed dtypes)."""
        return self._typed(self.storage.data, self.dtype.carrier)

    @cached_property
    def _written(self) -> Any:
        if self.storage.written is None:
            return None
        return self._typed(self.storage.written, np.dtype(f"u{self.dtype.itemsize}"))

    @cached_property
    def _full(self) -> Any:
        return np.frombuffer(bytes([_WRITTEN] * self.dtype.itemsize), f"u{self.dtype.itemsize}")[0]

    def gather(self, index: tuple[Any, ...]) -> Any:
        """The elements at ``index``: ints, index arrays or slices, one a dimension (lead first)."""
        if self.dtype.packed:
            byte, high = self._nibbles(index)
            low = np.where(high, self.storage.data[byte] >> 4, self.storage.data[byte] & 15)
            return from_bits(low.astype(np.uint8)[()], self.dtype)
        found = self.array[index]
        # One vector would be a window on the memory, which may change.
        return found.copy() if self.dtype.lanes > 1 else found

    def scatter(self, index: tuple[Any, ...], values: Any) -> None:
        """Store ``values`` at ``index`` and record them as written."""
        if self.dtype.packed:
            self._scatter_packed(index, values)
            return
        self.array[index] = values
        if self._written is not None:
            self._written[index] = self._full

    def is_written(self, index: tuple[Any, ...]) -> Any:
        """Whether each element at ``index`` was written."""
        if self.storage.written is None:
            return np.True_
        if self.dtype.packed:
            byte, high = self._nibbles(index)
            found = (self.storage.written[byte] >> np.where(high, 1, 0) & 1) != 0
            return found.all(axis=-1) if self.dtype.lanes > 1 else found
        found = self._written[index] == self._full
        return found.all(axis=-1) if self.dtype.lanes > 1 else found

    @property
    def element_bits(self) -> int:
        """Bits one element takes in memory."""
        return self.dtype.memory_bits * self.dtype.lanes

    def element_numbers(self, index: tuple[Any, ...]) -> Any:
        """Where the elements at ``index`` lie in the storage, in elements."""
        numbers: Any = self.offset
        for position, stride in zip(index, self.strides, strict=True):
            numbers = numbers + position * stride
        return numbers

    def _nibbles(self, index: tuple[Any, ...]) -> tuple[Any, Any]:
        """Byte index (with lead axes) and half of each packed element at ``index``."""
        lead = len(self.storage.lead)
        own = index[:lead]
        if self.dtype.lanes > 1:
            own = tuple(np.asarray(axis)[..., None] for axis in own)
        elements = self._numbers[index[lead:]]
        return (*own, elements >> 1), (elements & 1) == 1

    @cached_property
    def _numbers(self) -> np.ndarray:
        grids = np.ix_(*(np.arange(extent) for extent in self.shape))
        numbers = np.full(self.shape, self.offset, np.int64)
        for grid, stride in zip(grids, self.strides, strict=True):
            numbers = numbers + grid * stride
        if self.dtype.lanes > 1:
            numbers = numbers[..., None] * self.dtype.lanes + np.arange(self.dtype.lanes)
        return numbers

    def _scatter_packed(self, index: tuple[Any, ...], values: Any) -> None:
        byte, high = self._nibbles(index)
        bits = np.broadcast_to(to_bits(values, self.dtype) & np.uint8(15), np.shape(high))
        *lead, numbers = np.broadcast_arrays(*byte)
        for half, shift in ((False, 0), (True, 4)):  # so that no byte occurs twice in one step
            chosen = np.broadcast_to(high == half, numbers.shape)
            where = (*(axis[chosen] for axis in lead), numbers[chosen])
            kept = self.storage.data[where] & np.uint8(0xF0 >> shift)
            self.storage.data[where] = kept | (bits[chosen] << np.uint8(shift))
            if self.storage.written is not None:
                self.storage.written[where] |= np.uint8(1 << (shift // 4))
