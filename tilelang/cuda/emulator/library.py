"""A compiled emulated kernel in this process: launching it, and what it reports."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilelang.contrib.files import temporary_folder
from tilelang.cuda.emulator.checks import Counters, check_bits, needs_instrumentation
from tilelang.cuda.emulator.reports import Lines, raise_reports
from tilelang.cuda.emulator.toolchain import build_library
from tilelang.errors import LaunchError

__all__ = ["EmulatedLibrary", "Memory"]

_MAX_THREADS = 1024
_MAX_SHARED_BYTES = 227 * 1024
_LIBRARY = "kernel.so"


@dataclass(frozen=True)
class Memory:
    """A tensor that a launch may access: argument number ``slot``, its name and its extent."""

    slot: int
    name: str
    address: int
    bytes: int


class _Region(ctypes.Structure):
    _fields_ = (
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("slot", ctypes.c_int64),
        ("name", ctypes.c_char_p),
    )


class _Launch(ctypes.Structure):
    """``struct Launch`` of ``src/cuda/emulator/tl/emulator/runtime.h``."""

    _fields_ = (
        ("slots", ctypes.POINTER(ctypes.c_uint64)),
        ("num_slots", ctypes.c_int64),
        ("grid", ctypes.c_int64 * 3),
        ("block", ctypes.c_int64 * 3),
        ("dynamic_shared", ctypes.c_int64),
        ("regions", ctypes.POINTER(_Region)),
        ("num_regions", ctypes.c_int64),
        ("checks", ctypes.c_uint32),
        ("open_memory", ctypes.c_uint32),
    )


class EmulatedLibrary:
    """The kernels of one CUDA source, compiled for the host.

    Parameters
    ----------
    contents : bytes
        What :func:`~tilelang.cuda.emulator.toolchain.build_library` made.
    source : str
        The CUDA source, shown in reports.
    checks : sequence of str
        Checks that launches make; those that see memory accesses need instrumented contents.
    """

    def __init__(self, contents: bytes, source: str, checks: Sequence[str] = ()) -> None:
        self._contents = contents
        self._source = source
        self._checks = check_bits(checks)
        # A mapped library outlives its file.
        with temporary_folder() as folder:
            path = folder / _LIBRARY
            path.write_bytes(contents)
            self._library = ctypes.CDLL(str(path))

    @classmethod
    def compile(
        cls, source: str, *, checks: Sequence[str] = (), flags: Sequence[str] = ()
    ) -> EmulatedLibrary:
        """Compile and load ``source``.

        Raises
        ------
        DeviceCompileError
            If there is no C++ compiler or it rejects the source.
        """
        contents = build_library(source, instrument=needs_instrumentation(checks), flags=flags)
        return cls(contents, source, checks)

    def launch(
        self,
        kernel: str,
        slots: Sequence[int],
        *,
        grid: Sequence[int] = (1, 1, 1),
        block: Sequence[int] = (1, 1, 1),
        dyn_smem: int = 0,
        memory: Sequence[Memory] = (),
        open_memory: bool = True,
    ) -> None:
        """Run all blocks of a launch.

        Parameters
        ----------
        kernel : str
            Name of the ``__global__`` function.
        slots : sequence of int
            Its arguments as 64-bit patterns: addresses, extended integers, bits of floats.
        grid, block : sequence of int
            Extents (x, y, z).
        dyn_smem : int
            Dynamic shared memory in bytes.
        memory : sequence of Memory
            The tensors, for check ``bounds``.
        open_memory : bool
            Whether memory outside of ``memory`` may be accessed too.

        Raises
        ------
        LaunchError
            If no device takes such a launch.
        EmulatorError
            If the kernel hangs, breaks a rule of the device, or a check finds something.
        KernelAssertionError
            If an assertion in the kernel does not hold.
        """
        _check_extents(kernel, grid, block, dyn_smem)
        entry = getattr(self._library, f"tl_emulate_{kernel}")
        words = (ctypes.c_uint64 * max(len(slots), 1))(*slots)
        regions = (_Region * max(len(memory), 1))(
            *(_Region(m.address, m.bytes, m.slot, m.name.encode()) for m in memory)
        )
        launch = _Launch(
            words, len(slots), tuple(grid), tuple(block), dyn_smem, regions, len(memory),
            self._checks, open_memory,
        )  # fmt: skip
        if entry(ctypes.byref(launch)) != 0:
            raise_reports(kernel, self._text("tl_emulator_reports"), self._lines())

    def counters(self) -> list[Counters]:
        """What checks ``banks`` and ``coalesce`` counted in the last launch, by source line."""
        return self._lines().counters(self._text("tl_emulator_counters"))

    def write(self, path: Path) -> None:
        """Write the shared library to a file."""
        path.write_bytes(self._contents)

    def _lines(self) -> Lines:
        return Lines(self._contents, self._source)

    def _text(self, function: str) -> str:
        call = getattr(self._library, function)
        call.restype = ctypes.c_size_t
        call.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        size = call(None, 0)
        buffer = ctypes.create_string_buffer(size)
        call(buffer, size)
        return buffer.raw.decode(errors="replace")


def _check_extents(kernel: str, grid: Sequence[int], block: Sequence[int], dyn_smem: int) -> None:
    threads = block[0] * block[1] * block[2]
    if not 1 <= threads <= _MAX_THREADS:
        raise LaunchError(
            f"{kernel}: a block of {tuple(block)} has {threads} threads, allowed are 1 to "
            f"{_MAX_THREADS}"
        )
    if not 0 <= dyn_smem <= _MAX_SHARED_BYTES:
        raise LaunchError(
            f"{kernel}: {dyn_smem} bytes of shared memory are needed, a block has at most "
            f"{_MAX_SHARED_BYTES}"
        )
    if min(grid) < 0:
        raise LaunchError(f"{kernel}: the grid {tuple(grid)} has a negative extent")
