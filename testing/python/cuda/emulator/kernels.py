"""Launching hand-written CUDA source on numpy arrays and numbers."""

from __future__ import annotations

import functools
import struct

import numpy as np

from tilelang.cuda.emulator import EmulatedLibrary, Memory


@functools.cache
def library(source, checks=()):
    return EmulatedLibrary.compile(source, checks=checks)


def slot(value):
    if isinstance(value, np.ndarray):
        return value.ctypes.data
    if isinstance(value, float):
        return struct.unpack("<I", struct.pack("<f", value))[0]
    return value & 0xFFFF_FFFF_FFFF_FFFF


def run(source, *args, block=32, grid=1, dyn_smem=0, checks=(), kernel="kernel"):
    """Launch ``kernel`` of ``source``; arrays are passed by address and may be written."""
    memory = [
        Memory(i, f"argument {i}", a.ctypes.data, a.nbytes)
        for i, a in enumerate(args)
        if isinstance(a, np.ndarray)
    ]
    loaded = library(source, tuple(checks))
    loaded.launch(
        kernel,
        [slot(value) for value in args],
        grid=_extents(grid),
        block=_extents(block),
        dyn_smem=dyn_smem,
        memory=memory,
        open_memory=False,
    )
    return loaded


def _extents(value):
    return (*((value,) if isinstance(value, int) else value), 1, 1)[:3]
