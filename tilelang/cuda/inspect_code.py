"""What can be read off compiled CUDA kernels: PTX, machine code, resources."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tvm.target import Target

from tilelang.backend.device_compiler import DeviceBinaries
from tilelang.cuda.compile import show_ptx
from tilelang.cuda.compile.disassemble import disassemble as disassemble_binary
from tilelang.cuda.device_code import BINARY, RESOURCES
from tilelang.cuda.limits import limits_of
from tilelang.cuda.occupancy import occupancy
from tilelang.cuda.target import target_arch
from tilelang.engine.launch_plan import KernelLaunch, LaunchPlan

__all__ = ["describe", "disassemble", "resource_usage"]

_REGISTERS = 65536  # of a multiprocessor, on every architecture since sm_75
_WARP = 32
_MAX_THREADS = 1024
_SPILL_BYTES = 4


def disassemble(
    form: str, source: str, binaries: DeviceBinaries, target: Target, flags: Sequence[str]
) -> str | None:
    """Text of a kernel as ``"ptx"`` or ``"sass"``; None for any other form.

    Raises
    ------
    DeviceCompileError
        If the disassembler is missing, or the source does not compile.
    """
    if form == "sass":
        return disassemble_binary(binaries[BINARY])
    return show_ptx(source, target_arch(target), flags) if form == "ptx" else None


def resource_usage(binaries: DeviceBinaries) -> Mapping[str, Any]:
    """What the kernels of a function take, the largest of each.

    Returns
    -------
    mapping
        ``n_regs`` registers a thread, ``n_spills`` of them kept in memory, ``n_max_threads`` of a
        block that the registers allow, and ``kernels``, which maps entry names to all that the
        compiler reports, in the names of :class:`tilelang.cuda.compile.Resources`.
    """
    kernels = json.loads(binaries.get(RESOURCES, b"{}"))
    registers = max((kernel["registers"] for kernel in kernels.values()), default=0)
    spilled = max((kernel["spill_store_bytes"] for kernel in kernels.values()), default=0)
    return {
        "n_regs": registers,
        "n_spills": spilled // _SPILL_BYTES,
        "n_max_threads": _max_threads(registers),
        "kernels": kernels,
    }


def describe(
    plan: LaunchPlan, binaries: DeviceBinaries, target: Target
) -> Mapping[str, Sequence[str]]:
    """Threads, registers, shared memory and occupancy of every kernel, by entry name."""
    kernels = json.loads(binaries.get(RESOURCES, b"{}"))
    arch = limits_of(target).arch
    return {
        launch.entry: _lines(launch, kernels[launch.entry], arch)
        for launch in plan.kernels
        if launch.entry in kernels
    }


def _lines(launch: KernelLaunch, used: Mapping[str, int], arch: int) -> list[str]:
    static, dynamic = used["shared_bytes"], launch.dyn_smem
    shape = [f"block {launch.block}"]
    if launch.cluster != (1, 1, 1):
        shape.append(f"cluster {launch.cluster}")
    spilled = used["spill_store_bytes"] // _SPILL_BYTES
    lines = [
        ", ".join([*shape, *launch.flags]),
        f"{used['registers']} registers a thread, {spilled} of them spilled; "
        f"{used['stack_bytes']} bytes of local memory",
        f"{static} bytes of static shared memory, {dynamic} bytes of dynamic",
    ]
    threads = [extent for extent in launch.block if isinstance(extent, int)]
    if len(threads) == len(launch.block) and isinstance(dynamic, int):
        found = occupancy(arch, math.prod(threads), used["registers"], static + dynamic)
        share = f"{found.warps} of {found.max_warps} warps"
        lines.append(
            f"{found.blocks} blocks on a multiprocessor ({share}), limited by {found.limit}"
        )
    return lines


def _max_threads(registers: int) -> int:
    """Threads of the largest block; registers are handed out to warps, eight at a time each."""
    each = max(8, -(-registers // 8) * 8)
    return min(_MAX_THREADS, _REGISTERS // (each * _WARP) * _WARP)
