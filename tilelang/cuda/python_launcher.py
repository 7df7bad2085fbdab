"""Launching CUDA kernels from Python, with the driver bindings of cuda-python."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import torch
import tvm_ffi

from tilelang._native import BoundKernel, make_binder
from tilelang.backend.device_compiler import DeviceBinaries
from tilelang.cuda.device_code import native_arguments
from tilelang.engine.launch_plan import KernelLaunch, LaunchPlan
from tilelang.env import env

__all__ = ["PythonLauncher"]


class PythonLauncher:
    """The callable of compiled CUDA kernels; see :func:`tilelang.cuda.device_code.make_launcher`.

    It takes the same arguments, returns the same results and raises the same errors.
    """

    def __init__(
        self, plan: LaunchPlan, binaries: DeviceBinaries, lines: Mapping[str, Any]
    ) -> None:
        self.plan = plan
        driver = env.TILELANG_CUDA_DRIVER
        current_device = tvm_ffi.get_global_func("tl.cuda.current_device")
        self._bind = make_binder(plan, lambda: current_device(driver))
        # Loads code, checks launches against the device and explains failures.
        self._prepare = tvm_ffi.get_global_func("tl.cuda.make_preparer")(
            *native_arguments(plan, binaries, lines)
        )

    def __call__(self, *args: Any) -> Any:
        """Check the arguments, allocate, queue the launches and return the outputs."""
        self._prepare()  # without a driver, that is the error to see
        call = self._bind(*args)
        device = call.device[1]
        stream = _stream(device, args)
        # Whatever can be refused is refused before anything is queued.
        ready = [
            (index, kernel, self._prepare(device, index, _extents(kernel), stream))
            for index, kernel in enumerate(call.kernels)
            if 0 not in kernel.grid
        ]
        for index, kernel, (context, function) in ready:
            code = _launch(self.plan.kernels[index], kernel, context, function, stream)
            if code != 0:
                self._prepare(device, index, _extents(kernel), stream, code)
        return call.result


def _extents(kernel: BoundKernel) -> tuple[int, ...]:
    return *kernel.grid, *kernel.block, kernel.dyn_smem


def _stream(device: int, args: tuple[Any, ...]) -> int:
    """The stream of the tensors; a call without tensors takes torch's current one."""
    if not any(isinstance(arg, torch.Tensor) for arg in args):
        stream = tvm_ffi.get_raw_stream(tvm_ffi.device("cuda", device))
        foreign = any(isinstance(arg, tvm_ffi.Tensor) for arg in args)
        if stream or foreign or not torch.cuda.is_available():
            return stream
    return int(torch.cuda.current_stream(device).cuda_stream)


def _launch(
    launch: KernelLaunch, bound: BoundKernel, context: int, function: int, stream: int
) -> int:
    """Queue one launch; returns the driver's result code."""
    from cuda.bindings import driver  # optional, and looks for the driver

    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = bound.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = bound.block
    config.sharedMemBytes = bound.dyn_smem
    config.hStream = driver.CUstream(stream)
    config.attrs = _attributes(driver, launch)
    config.numAttrs = len(config.attrs)
    # The driver copies as many of a slot's low bytes as the parameter has.
    slots = (ctypes.c_uint64 * len(bound.slots))(*bound.slots)
    start, size = ctypes.addressof(slots), ctypes.sizeof(ctypes.c_uint64)
    params = (ctypes.c_void_p * len(slots))(*(start + size * i for i in range(len(slots))))
    (code,) = driver.cuCtxPushCurrent(driver.CUcontext(context))
    if code != driver.CUresult.CUDA_SUCCESS:
        return int(code)
    (code,) = driver.cuLaunchKernelEx(
        config, driver.CUfunction(function), ctypes.addressof(params), 0
    )
    driver.cuCtxPopCurrent()
    return int(code)


def _attributes(driver: Any, launch: KernelLaunch) -> list[Any]:
    names = driver.CUlaunchAttributeID
    attributes = []

    def add(name: Any) -> Any:
        attribute = driver.CUlaunchAttribute()
        attribute.id = name
        attributes.append(attribute)
        return attribute.value

    if launch.cluster != (1, 1, 1):
        shape = add(names.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim
        shape.x, shape.y, shape.z = launch.cluster
    if "cooperative" in launch.flags:
        add(names.CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1
    if "pdl" in launch.flags:
        value = add(names.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
        value.programmaticStreamSerializationAllowed = 1
    return attributes
