"""Native launchers: of CPU kernels, whose workers run on the host, and of device code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilelang._native import make_cpu_launcher
from tilelang.backend import BackendContext, find_device_compiler
from tilelang.cache.key import host_cpu
from tilelang.engine.launch_plan import LaunchPlan
from tilelang.jit.adapter.base import KernelBundle
from tilelang.jit.adapter.c_library import c_compiler_stamp

__all__ = ["code_fingerprint", "cpu_launcher", "device_launcher", "with_fast_calls"]


def cpu_launcher(plan: LaunchPlan, module: Any) -> Callable[..., Any]:
    """The callable of ``plan`` over the workers of a loaded module (``module[entry]``)."""
    workers = [module[kernel.entry] for kernel in plan.kernels]
    launcher: Callable[..., Any] = make_cpu_launcher(plan, workers)
    return with_fast_calls(launcher, plan)


def code_fingerprint(context: BackendContext) -> Mapping[str, str]:
    """What compiled files depend on: the device compiler, or the CPU and the C compiler."""
    if context.device_compiler is not None:
        return context.device_compiler.fingerprint()
    return {"cpu": host_cpu(), "cc": c_compiler_stamp()}


def device_launcher(bundle: KernelBundle) -> Callable[..., Any] | None:
    """The callable of a bundle that holds device code; None for any other."""
    compiler = find_device_compiler(bundle.binaries)
    if compiler is None:
        return None
    launcher = compiler.load(bundle.plan, bundle.binaries, bundle.line_table)
    return with_fast_calls(launcher, bundle.plan)


def with_fast_calls(launcher: Callable[..., Any], plan: LaunchPlan) -> Callable[..., Any]:
    """Let the Cython extension make the calls, where it is built: in about half the time."""
    try:
        from tilelang.jit._launcher import KernelLauncher  # optional
    except ImportError:  # a Python without the stable ABI
        return launcher
    wrapped: Callable[..., Any] = KernelLauncher(launcher, plan)
    return wrapped
