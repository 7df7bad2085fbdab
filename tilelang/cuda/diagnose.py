"""What of CUDA this machine has: driver, devices, compilers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import tvm_ffi

import tilelang._native  # noqa: F401  (the native library talks to the driver)
from tilelang.cuda.compile.nvcc import find_nvcc
from tilelang.cuda.compile.nvrtc import nvrtc_version
from tilelang.env import env
from tilelang.errors import DeviceCompileError, LaunchError

__all__ = ["Part", "diagnose"]


class Part(NamedTuple):
    """One part: its name, whether it is there, and its version or the reason why not."""

    name: str
    found: bool
    detail: str


def diagnose() -> Iterator[Part]:
    """Examine this machine; nothing is compiled and no device is initialised."""
    yield from _driver()
    yield _nvrtc()
    yield _nvcc()


def _driver() -> Iterator[Part]:
    path = env.TILELANG_CUDA_DRIVER
    try:
        version, *devices = tvm_ffi.get_global_func("tl.cuda.describe_driver")(path)
    except LaunchError as error:
        yield Part("CUDA driver", False, str(error))
        return
    yield Part("CUDA driver", True, f"CUDA {_dotted(int(version))}, {path}")
    for index, (name, arch) in enumerate(devices):
        yield Part(f"cuda:{index}", True, f"{name}, {arch}")


def _dotted(version: int) -> str:
    """``13020`` is version 13.2."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _nvrtc() -> Part:
    try:
        return Part("NVRTC", True, "{}.{}".format(*nvrtc_version()))
    except DeviceCompileError as error:
        return Part("NVRTC", False, str(error))


def _nvcc() -> Part:
    try:
        return Part("nvcc", True, str(find_nvcc()))
    except DeviceCompileError as error:
        return Part("nvcc", False, str(error))
