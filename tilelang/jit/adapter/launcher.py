"""The native launcher of CPU kernels, for adapters whose workers run on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelang._native import make_cpu_launcher
from tilelang.engine.launch_plan import LaunchPlan

__all__ = ["cpu_launcher"]


def cpu_launcher(plan: LaunchPlan, module: Any) -> Callable[..., Any]:
    """The callable of ``plan`` over the workers of a loaded module (``module[entry]``).

    Where the Cython extension is built it makes the calls, in about half the time.
    """
    workers = [module[kernel.entry] for kernel in plan.kernels]
    launcher: Callable[..., Any] = make_cpu_launcher(plan, workers)
    try:
        from tilelang.jit.adapter.cython._launcher import (  # optional, and slow to import
            KernelLauncher,
        )
    except ImportError:  # a Python without the stable ABI
        return launcher
    wrapped: Callable[..., Any] = KernelLauncher(launcher, plan)
    return wrapped
