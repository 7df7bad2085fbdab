"""The emulator as a device compiler: from CUDA source and a launch plan to a callable."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tvm import DataType
from tvm.target import Target

from tilelang._native import BoundCall, BoundKernel, make_binder
from tilelang.backend.device_compiler import DeviceBinaries
from tilelang.contrib.host_compiler import compiler_stamp, cxx_compiler
from tilelang.cuda.emulator.checks import (
    Counters,
    checks_from_environment,
    needs_instrumentation,
)
from tilelang.cuda.emulator.library import EmulatedLibrary, Memory
from tilelang.cuda.emulator.toolchain import build_library, support_digest
from tilelang.engine.expr_program import evaluate
from tilelang.engine.launch_plan import KernelLaunch, LaunchPlan, Param
from tilelang.errors import EmulatorError

__all__ = ["BINARY", "EmulatedLauncher", "compile_source", "fingerprint", "make_launcher"]

BINARY = "kernel.emulated.so"
_SOURCE = "kernel.emulated.cu"
_CHECKS = "kernel.emulated.checks"
_CLUSTER_HEADER = "<tl/cluster.h>"


def compile_source(
    source: str, target: Target, flags: Sequence[str], lines: Mapping[str, Any]
) -> DeviceBinaries:
    """Compile CUDA source for this machine, with the checks that the environment asks for.

    Flags of the device compiler mean nothing here and are left out.

    Raises
    ------
    DeviceCompileError
        If there is no C++ compiler or it rejects the source.
    """
    checks = checks_from_environment()
    library = build_library(source, instrument=needs_instrumentation(checks))
    return {BINARY: library, _SOURCE: source.encode(), _CHECKS: ",".join(checks).encode()}


def fingerprint() -> Mapping[str, str]:
    """The C++ compiler, the emulator and the checks."""
    return {
        "cxx": compiler_stamp(cxx_compiler()),
        "emulator": support_digest(),
        "checks": ",".join(checks_from_environment()),
    }


class EmulatedLauncher:
    """The callable of emulated kernels: it takes CPU tensors and returns the outputs."""

    def __init__(self, plan: LaunchPlan, library: EmulatedLibrary) -> None:
        self._plan = plan
        self._library = library
        self._bind = make_binder(plan)
        # What a bare address leads to is not known.
        self._open_memory = any(param.kind == "pointer" for param in plan.params)

    def __call__(self, *args: Any) -> Any:
        """Check the arguments and run every launch.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If the arguments are wrong; nothing has been written then.
        EmulatorError
            If a kernel breaks a rule of the device or fails a check.
        """
        call = self._bind(*args)
        for kernel, bound in zip(self._plan.kernels, call.kernels, strict=True):
            if min(bound.grid) == 0:
                continue
            self._library.launch(
                bound.entry,
                bound.slots,
                grid=bound.grid,
                block=bound.block,
                dyn_smem=bound.dyn_smem,
                memory=tuple(_memory(self._plan, kernel, call, bound)),
                open_memory=self._open_memory,
            )
        return call.result

    def counters(self) -> list[Counters]:
        """What checks ``banks`` and ``coalesce`` counted in the last launch, by source line."""
        return self._library.counters()


def make_launcher(
    plan: LaunchPlan, binaries: DeviceBinaries, lines: Mapping[str, Any]
) -> EmulatedLauncher:
    """Load emulated kernels, with the checks they were compiled for.

    Raises
    ------
    EmulatorError
        If a kernel uses the barrier of a cluster of several blocks.
    """
    source = binaries[_SOURCE].decode()
    for kernel in plan.kernels:
        if kernel.cluster != (1, 1, 1) and _CLUSTER_HEADER in source:
            raise EmulatorError(
                f"kernel '{kernel.entry}' runs in clusters of {kernel.cluster} blocks that work "
                "together; the emulator runs every block by itself. Run it on a GPU of sm_90"
            )
    checks = tuple(name for name in binaries[_CHECKS].decode().split(",") if name)
    library = EmulatedLibrary(binaries[BINARY], source, checks)
    return EmulatedLauncher(plan, library)


def _memory(
    plan: LaunchPlan, kernel: KernelLaunch, call: BoundCall, bound: BoundKernel
) -> Iterator[Memory]:
    for slot, (ref, address) in enumerate(zip(kernel.args, bound.slots, strict=True)):
        if ref.source == "workspace":
            workspace = plan.workspaces[ref.index]
            shape = [evaluate(extent, call.symbols) for extent in workspace.shape]
            size = _bytes_of(math.prod(shape), workspace.dtype)
            yield Memory(slot, f"workspace {ref.index}", address, size)
        elif ref.source == "param" and plan.params[ref.index].kind == "tensor" and address:
            param = plan.params[ref.index]
            yield Memory(slot, param.name, address, _span_bytes(param, call.symbols))


def _span_bytes(param: Param, symbols: Sequence[int]) -> int:
    """Bytes from the first to behind the last element."""
    shape = [evaluate(extent, symbols) for extent in param.shape]
    if 0 in shape:
        return 0
    if param.strides is None:
        strides = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
    else:
        strides = [evaluate(stride, symbols) for stride in param.strides]
    last = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    return _bytes_of(last + 1, param.dtype)


def _bytes_of(elements: int, name: str) -> int:
    dtype = DataType(name)
    return (elements * int(dtype.bits) * int(dtype.lanes) + 7) // 8
