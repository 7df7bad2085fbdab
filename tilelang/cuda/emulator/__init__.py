"""Running generated CUDA source on the host: its C++ compiler, and a runtime of fibers.

The source is compiled unchanged against headers that stand in for the device
(``src/cuda/emulator``). Every thread is a fiber; blocks run one after another.
"""

from __future__ import annotations

from tilelang.cuda.emulator.checks import CHECKS, Counters, wanted_pass_configs
from tilelang.cuda.emulator.launcher import BINARY, compile_source, fingerprint, make_launcher
from tilelang.cuda.emulator.library import EmulatedLibrary, Memory

__all__ = [
    "BINARY",
    "CHECKS",
    "Counters",
    "EmulatedLibrary",
    "Memory",
    "compile_source",
    "fingerprint",
    "make_launcher",
    "wanted_pass_configs",
]
