"""Launching CUDA kernels through the driver bindings of cuda-python."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from tilelang.backend.device_compiler import DeviceBinaries
from tilelang.cuda.device_code import make_launcher
from tilelang.engine.launch_plan import LaunchPlan

__all__ = ["make_python_launcher"]


def make_python_launcher(
    plan: LaunchPlan, binaries: DeviceBinaries, lines: Mapping[str, Any]
) -> Callable[..., Any]:
    """The callable of compiled CUDA kernels; see :func:`tilelang.cuda.device_code.make_launcher`.

    The native launcher binds the arguments, checks and prepares the launch, and explains failures;
    cuda-python queues it.
    """
    return make_launcher(plan, binaries, lines, queue=_queue)


@functools.cache
def _driver() -> Any:
    from cuda.bindings import driver  # optional, and looks for the driver

    return driver


def _queue(config: int, function: int, arguments: int) -> int:
    """Queue one launch from the addresses of what describes it; returns the driver's code."""
    driver = _driver()
    launch = driver.CUlaunchConfig(_ptr=config)
    (code,) = driver.cuLaunchKernelEx(launch, driver.CUfunction(function), arguments, 0)
    return int(code)
