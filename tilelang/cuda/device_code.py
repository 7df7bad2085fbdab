"""Device code of CUDA kernels: made from source without a GPU, loaded at the first call."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm_ffi
from tvm.target import Target

import tilelang._native  # noqa: F401  (the native library holds the launcher)
from tilelang.backend.device_compiler import DeviceBinaries
from tilelang.cuda.compile import compile_source as compile_cuda
from tilelang.cuda.headers import headers_stamp
from tilelang.cuda.target import target_codes
from tilelang.engine.launch_plan import LaunchPlan
from tilelang.env import env

__all__ = [
    "ARCHS",
    "BINARY",
    "RESOURCES",
    "compile_source",
    "fingerprint",
    "make_launcher",
]

BINARY = "kernel.cubin"
ARCHS = "kernel.archs"  # what it was compiled for, for messages
RESOURCES = "kernel.resources"  # by kernel, what the compiler reports


def compile_source(
    source: str,
    target: Target,
    flags: Sequence[str],
    lines: Mapping[str, tuple[str, int]] | None = None,
) -> DeviceBinaries:
    """Compile CUDA source for the architectures of ``target``; no GPU or driver is needed.

    Parameters
    ----------
    lines : mapping, optional
        Entry name to ``(file, line)`` of the user's launch, for messages.

    Raises
    ------
    DeviceCompileError
        With the compiler's first message.
    """
    archs = target_codes(target)
    binary = compile_cuda(source, archs, flags, lines=lines)
    resources = {name: dataclasses.asdict(used) for name, used in binary.resources.items()}
    return {
        BINARY: binary.code,
        ARCHS: ",".join(archs).encode(),
        RESOURCES: json.dumps(resources).encode(),
    }


def fingerprint() -> Mapping[str, str]:
    """What binaries depend on besides source, target and flags."""
    return {"cuda headers": headers_stamp(), "cuda compiler": env.cuda_compiler()}


def make_launcher(
    plan: LaunchPlan,
    binaries: DeviceBinaries,
    lines: Mapping[str, Any],
    queue: Callable[[int, int, int], int] | None = None,
) -> Callable[..., Any]:
    """The native launcher of compiled CUDA kernels.

    Parameters
    ----------
    plan : LaunchPlan
        Kernels may carry the flags ``"cooperative"`` and ``"pdl"`` (programmatic dependent
        launch: the kernel may start before the one ahead of it in the stream has ended).
    binaries : mapping
        File ``kernel.cubin``, and ``kernel.archs``, the architectures it is for.
    lines : mapping
        Entry name to ``(file, line)`` of the user's launch.
    queue : callable, optional
        Called in place of ``cuLaunchKernelEx``, with the addresses of the launch configuration,
        the function and the array of arguments; returns the driver's result code.

    Returns
    -------
    tvm_ffi.Function
        Takes the input arguments in order, on one CUDA device; launches on that device's current
        stream without waiting, and returns the outputs. It raises ``LaunchError`` if there is no
        driver or the device refuses the launch, before anything is allocated or written.
    """
    make = tvm_ffi.get_global_func("tl.cuda.make_launcher")
    where = [":".join(str(part) for part in lines.get(k.entry, ())) for k in plan.kernels]
    archs = binaries.get(ARCHS, b"").decode()
    driver = env.TILELANG_CUDA_DRIVER
    launcher: Callable[..., Any] = make(
        plan.to_json(), binaries[BINARY], archs, where, driver, queue
    )
    return launcher
