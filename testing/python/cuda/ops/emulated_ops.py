"""Kernels of one op on the emulator, beside the interpreter, and through the device compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from devices import on_gpu

import tilelang
from tilelang.cuda.compile.driver import validate_source
from tilelang.interpreter import interpret

TARGET = {"kind": "cuda", "arch": "sm_90a"}

ends_the_context = pytest.mark.skipif(
    on_gpu(), reason="a kernel that traps ends the CUDA context of the process"
)


def emulate(program, *args, out_idx=-1, arch=None, **options):
    """Compile for the emulator and call; with ``TILELANG_TEST_DEVICE=cuda`` on the GPU instead.

    A GPU has the architecture it has: ``arch`` is for the emulator. Tensors are of the CPU.
    """
    if on_gpu():
        kernel = tilelang.compile(program, out_idx=out_idx, target="cuda", **options)
        return _call_on("cuda", kernel, args)
    target = TARGET if arch is None else {"kind": "cuda", "arch": arch}
    kernel = tilelang.compile(
        program, out_idx=out_idx, target=target, execution_backend="emulator", **options
    )
    return kernel(*args)


def _call_on(device: str, kernel: Any, args: Sequence[Any]) -> Any:
    """Call with copies of the memory behind the tensors, and copy it back."""
    copies: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def moved(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        storage = value.untyped_storage()
        if storage.data_ptr() not in copies:
            memory = torch.empty(0, dtype=torch.uint8).set_(storage)
            copies[storage.data_ptr()] = memory, memory.to(device, copy=True)
        copy = copies[storage.data_ptr()][1]
        empty = torch.empty(0, dtype=value.dtype, device=device)
        return empty.set_(
            copy.untyped_storage(), value.storage_offset(), value.size(), value.stride()
        )

    result = kernel(*map(moved, args))
    for memory, copy in copies.values():
        memory.copy_(copy)
    if isinstance(result, torch.Tensor):
        return result.cpu()
    return None if result is None else [part.cpu() for part in result]


def interpreted(program, *args, out_idx=-1, **options):
    """The reference."""
    return interpret(program, *args, out_idx=out_idx, **options)


def source_of(program, arch="sm_90a"):
    """CUDA source."""
    return tilelang.lower(program, target={"kind": "cuda", "arch": arch}).kernel_source


def compiles(program, arch="sm_90a"):
    """Let NVRTC read the source; raises if it refuses."""
    validate_source(source_of(program, arch), arch)
