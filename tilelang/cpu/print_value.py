"""What ``T.print`` does on the CPU: compiled code calls it with the address of the value."""

from __future__ import annotations

import _thread
import ctypes
import sys
from collections.abc import Sequence

import numpy as np

from tilelang.ir.dtype import dtype

__all__ = ["print_value", "read_region"]

_PACKED = ("int4", "uint4", "float4_e2m1fn")


def print_value(place: str, text: str, label: str, kind: str, address: int, *numbers: int) -> None:
    """Print a message and a value or tile, with the line and the block it comes from.

    Parameters
    ----------
    place : str
        ``"file:line: "``.
    text : str
        The user's message.
    label : str
        ``"name = "`` for a tile.
    kind : str
        Dtype; empty if there is only a message.
    address : int
        Of the value, or of element 0 of the tile.
    *numbers : int
        The rank; for a tile the number of elements before it, its shape, the number of strides
        and the strides (none if it is compact), the first index and the extent in each dimension;
        then the number of block indices and the indices.
    """
    try:
        rank, rest = numbers[0], list(numbers[1:])
        shown = ""
        if kind:
            geometry, rest = _geometry(rank, rest)
            shown = f"{label}{read_region(kind, address, *geometry)}"
        block = tuple(rest[1 : 1 + rest[0]])
        prefix = f"[block {block}] " if block else ""
        message = f"{text}: " if text and shown else text
        # One write, so that lines of other threads do not come between.
        print(f"{prefix}{place}{message}{shown}\n", end="", flush=True)  # noqa: T201
    except KeyboardInterrupt:
        _thread.interrupt_main()  # raised again where the call of the kernel returns
    except (OSError, ValueError) as error:  # the stream is closed or broken: the kernel goes on
        sys.stderr and sys.stderr.write(f"T.print: {error}\n")


Geometry = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int], int]


def _geometry(rank: int, numbers: list[int]) -> tuple[Geometry, list[int]]:
    """Shape, strides, first indices, extents and elements before; and what follows them."""
    if rank == 0:
        return ((), (), (), (), 0), numbers
    before, shape, numbers = numbers[0], numbers[1 : rank + 1], numbers[rank + 1 :]
    strides, numbers = numbers[1 : 1 + numbers[0]], numbers[1 + numbers[0] :]
    if not strides:
        strides = [int(np.prod(shape[d + 1 :], dtype=np.int64)) for d in range(rank)]
    mins, extents = numbers[:rank], numbers[rank : 2 * rank]
    return (shape, strides, mins, extents, before), numbers[2 * rank :]


def read_region(
    kind: str,
    address: int,
    shape: Sequence[int],
    strides: Sequence[int],
    mins: Sequence[int],
    extents: Sequence[int],
    before: int = 0,
) -> np.ndarray:
    """A copy of the part of a buffer that a region names; what lies outside is left out."""
    axes = [
        np.arange(max(0, low), min(size, low + extent))
        for size, low, extent in zip(shape, mins, extents, strict=True)
    ]
    offsets = np.full([axis.size for axis in axes], before, np.int64)
    for axis, (values, stride) in enumerate(zip(axes, strides, strict=True)):
        offsets += (values * stride).reshape([-1 if a == axis else 1 for a in range(len(axes))])
    element = dtype(kind)
    if kind in _PACKED:
        codes = _load(address, offsets // 2, 1) >> (offsets % 2 * 4).astype(np.uint8) & 15
        if kind == "int4":
            return ((codes ^ 8).astype(np.int8) - 8)[()]
        return codes.astype(np.uint8).view(element.as_numpy() if kind != "uint4" else np.uint8)[()]
    return _load(address, offsets, element.storage.itemsize).view(element.as_numpy())[()]


def _load(address: int, offsets: np.ndarray, size: int) -> np.ndarray:
    """Elements of ``size`` bytes at ``address + offsets * size``, as unsigned integers."""
    carrier = np.dtype(f"u{size}")
    if not offsets.size:
        return np.empty(offsets.shape, carrier)
    low, high = int(offsets.min()), int(offsets.max())
    memory = (ctypes.c_char * ((high - low + 1) * size)).from_address(address + low * size)
    return np.frombuffer(memory, carrier)[offsets - low]
