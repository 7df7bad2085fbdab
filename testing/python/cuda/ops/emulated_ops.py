"""Kernels of one op on the emulator, beside the interpreter, and through the device compiler."""

from __future__ import annotations

import tilelang
from tilelang.cuda.compile.driver import validate_source
from tilelang.interpreter import interpret

TARGET = {"kind": "cuda", "arch": "sm_90a"}


def emulate(program, *args, out_idx=-1, arch=None, **options):
    """Compile for the emulator and call."""
    target = TARGET if arch is None else {"kind": "cuda", "arch": arch}
    kernel = tilelang.compile(
        program, out_idx=out_idx, target=target, execution_backend="emulator", **options
    )
    return kernel(*args)


def interpreted(program, *args, out_idx=-1, **options):
    """The reference."""
    return interpret(program, *args, out_idx=out_idx, **options)


def source_of(program, arch="sm_90a"):
    """CUDA source."""
    return tilelang.lower(program, target={"kind": "cuda", "arch": arch}).kernel_source


def compiles(program, arch="sm_90a"):
    """Let NVRTC read the source; raises if it refuses."""
    validate_source(source_of(program, arch), arch)
