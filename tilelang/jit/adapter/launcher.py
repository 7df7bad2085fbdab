"""The native launcher of CPU kernels, for adapters whose workers run on the host."""

from __future__ import annotations

from typing import Any

import tvm_ffi

from tilelang._native import make_cpu_launcher
from tilelang.engine.launch_plan import LaunchPlan

__all__ = ["cpu_launcher"]


def cpu_launcher(plan: LaunchPlan, module: Any) -> tvm_ffi.Function:
    """The callable of ``plan`` over the workers of a loaded module (``module[entry]``)."""
    return make_cpu_launcher(plan, [module[kernel.entry] for kernel in plan.kernels])
