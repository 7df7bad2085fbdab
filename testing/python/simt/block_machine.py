"""A machine that runs one lowered block at a time and proves that its threads do not race.

All threads of a block take every statement together, each with its own registers. That is one of
the orders a device may choose; that any other gives the same result follows from two checks, made
for every byte of memory: between two barriers, what one thread writes no other touches, and what
an asynchronous copy has in flight nobody touches. Registers begin as NaN (integers: a pattern), so
that a thread which reads an element of a tile that it does not hold shows in the result.

Besides it checks that accesses stay inside their buffer, that wide ones are aligned, and that
barriers and warp instructions are met by all threads they need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from block_code import BlockCode
from block_memory import Fault, Memory, Race

__all__ = ["BlockMachine"]


@dataclass(frozen=True)
class _Flight:
    target: Memory
    at: np.ndarray
    threads: np.ndarray
    data: np.ndarray
    source: Memory
    origin: np.ndarray
    wanted: np.ndarray


class BlockMachine:
    """One block of a lowered kernel.

    Parameters
    ----------
    func : PrimFunc
        What :func:`tilelang.lower` makes of a kernel.
    tensors : mapping of str to array
        The kernel's tensors by name, C-contiguous; changed in place.
    scalars : mapping of str to int
    """

    def __init__(self, func, tensors, scalars=None) -> None:
        self.block = tuple(int(e) for e in func.attrs["tl.block"])
        self.threads = self.block[0] * self.block[1] * self.block[2]
        self.number = np.arange(self.threads, dtype=np.int32)
        self.tensors = {
            name: Memory(name, array.reshape(-1).view(np.uint8)) for name, array in tensors.items()
        }
        self.arena_bytes = int(func.attrs["tl.dyn_smem"])
        self.scalars = dict(scalars or {})
        self.barriers = 0
        self.code = BlockCode(func, self)

    def run(self, *index: int) -> None:
        """Run the block at ``index`` (x, y, z) of the grid."""
        self.index = (*index, 0, 0, 0)[:3]
        self.arena = Memory("shared memory", np.full(self.arena_bytes, 0xFF, np.uint8))
        for memory in self.tensors.values():
            memory.barrier()
        self.open: list[_Flight] = []
        self.groups: list[list[_Flight]] = []
        self.barriers = 0
        with np.errstate(all="ignore"):
            self.code.run(np.ones(self.threads, np.bool_))
        if self.open or any(self.groups):
            raise Fault("a block ends while copies are in flight")

    def run_grid(self, grid) -> None:
        """Run all blocks, one after the other."""
        for z in range(grid[2]):
            for y in range(grid[1]):
                for x in range(grid[0]):
                    self.run(x, y, z)

    def thread_index(self, axis: str) -> np.ndarray:
        x, y, _ = self.block
        return {"x": self.number % x, "y": self.number // x % y, "z": self.number // (x * y)}[axis]

    # -- what threads do together ----------------------------------------------------------------
    def barrier(self, mask: np.ndarray) -> None:
        if not mask.all():
            raise Fault("a barrier that only some threads meet")
        self.barriers += 1
        self.arena.barrier()
        for memory in self.tensors.values():
            memory.barrier()

    def need_warps(self, mask: np.ndarray, what: str) -> np.ndarray:
        """The numbers of the warps in ``mask``, all of whose lanes must be there."""
        if self.threads % 32:
            raise Fault(f"{what} in a block of {self.threads} threads")
        warps = mask.reshape(-1, 32)
        if (warps.any(1) != warps.all(1)).any():
            raise Fault(f"{what} that only some lanes of a warp meet")
        return np.flatnonzero(warps.all(1))

    def start_copy(self, target, at, source, origin, threads, wanted) -> None:
        """An asynchronous copy of lanes; those not ``wanted`` get zeros."""
        data = np.zeros(at.shape, np.uint8)
        data[wanted] = source.read(origin[wanted], threads[wanted])
        target.write(at, threads, np.full(at.shape, 0xFF, np.uint8))
        target.flight[at] = True
        self.open.append(_Flight(target, at, threads, data, source, origin, wanted))

    def commit(self, mask: np.ndarray) -> None:
        if not mask.all():
            raise Fault("a group of copies that only some threads close")
        self.groups.append(self.open)
        self.open = []

    def wait(self, pending: int, mask: np.ndarray) -> None:
        if not mask.all():
            raise Fault("a wait for copies that only some threads meet")
        while len(self.groups) > pending:
            for flight in self.groups.pop(0):
                read = flight.source.raw[flight.origin[flight.wanted]]
                if (read != flight.data[flight.wanted]).any():
                    raise Race(f"{flight.source.name} changes while a copy reads it")
                flight.target.flight[flight.at] = False
                flight.target.write(flight.at, flight.threads, flight.data)
