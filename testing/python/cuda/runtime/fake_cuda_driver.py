"""A CUDA driver without a device, and tensors that claim to be on it."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import tvm_ffi

from tilelang.engine.launch_plan import ArgRef, KernelLaunch, LaunchPlan, Param

SOURCE = Path(__file__).with_name("fake_cuda_driver.c")
_CUDA = 2  # device type of DLPack
_DEVICE_OFFSET = 8  # of the device in a DLPack tensor, behind its data pointer


class FakeDriver:
    """The compiled library: its path, what was asked of it, and switches for failures.

    With ``stand_in``, other code of this process that looks for the driver gets it as well.
    """

    def __init__(self, folder: Path, *, stand_in: bool = False) -> None:
        self.path = str(folder / "libcuda.so.1")
        include = tvm_ffi.libinfo.find_dlpack_include_path()
        # A later search for a library of this name finds the one that is loaded.
        name = "-Wl,-soname,libcuda.so.1" if stand_in else "-Wl,-soname,libfake_cuda.so"
        command = [
            "gcc",
            name,
            "-shared",
            "-fPIC",
            "-w",
            f"-I{include}",
            str(SOURCE),
            "-o",
            self.path,
        ]
        subprocess.run(command, check=True)
        self._library = ctypes.CDLL(self.path)
        self._library.fake_log.restype = ctypes.c_char_p
        self._ffi = ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi())

    def reset(self) -> None:
        """Forget what happened, and every switch."""
        self._library.fake_reset()

    @property
    def calls(self) -> list[str]:
        """What was asked since the reset, a line a call."""
        return self._library.fake_log().decode().splitlines()

    def called(self, what: str) -> list[str]:
        """The recorded calls that begin with ``what``."""
        return [line for line in self.calls if line.startswith(what)]

    def fail(self, function: str, code: int) -> None:
        """Make one function of the driver return ``code``."""
        self._library.fake_fail(function.encode(), code)

    def limits(self, *, threads: int = 1024, shared: int = 101376, static: int = 0) -> None:
        """Threads a block, shared bytes a block, static shared bytes of every kernel."""
        self._library.fake_limits(threads, shared, static)

    def capture(self, on: bool) -> None:
        """Say that every stream but the default one is being captured."""
        self._library.fake_capture(int(on))

    def current_device(self) -> int | None:
        """The device whose context is current in this thread."""
        device = ctypes.c_int()
        code = self._library.cuCtxGetDevice(ctypes.byref(device))
        return device.value if code == 0 else None

    @contextlib.contextmanager
    def device(self, index: int) -> Iterator[None]:
        """Make a device current in this thread, as a framework does."""
        context = ctypes.c_void_p()
        self._library.cuDevicePrimaryCtxRetain(ctypes.byref(context), index)
        self._library.cuCtxPushCurrent_v2(context)
        try:
            yield
        finally:
            self._library.cuCtxPopCurrent_v2(ctypes.byref(context))

    @contextlib.contextmanager
    def allocator(self) -> Iterator[None]:
        """Let calls allocate on the device that is not there."""
        exchange = self._ffi.TVMFFIEnvSetDLPackManagedTensorAllocator
        before = ctypes.c_void_p()
        exchange(self._library.fake_allocate, 0, ctypes.byref(before))
        try:
            yield
        finally:
            exchange(before, 0, None)


class _OnDevice:
    """Host memory exported under the name of a CUDA device."""

    def __init__(self, tensor: torch.Tensor, device: int) -> None:
        self._tensor = tensor
        self._device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, self._device

    def __dlpack__(self, **_: Any) -> Any:
        capsule = torch.utils.dlpack.to_dlpack(self._tensor)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        address = pointer(capsule, b"dltensor") + _DEVICE_OFFSET
        ctypes.c_int32.from_address(address).value = _CUDA
        ctypes.c_int32.from_address(address + 4).value = self._device
        return capsule


def on_device(tensor: torch.Tensor, device: int = 0) -> tvm_ffi.Tensor:
    """``tensor`` as a tensor of ``cuda:<device>``; its address stays the same."""
    return tvm_ffi.from_dlpack(_OnDevice(tensor, device))


def cuda_tensor(name: str, *shape: Any, dtype: str = "float32", **options: Any) -> Param:
    """A parameter that is a tensor on a CUDA device."""
    return Param(name, "tensor", dtype, "cuda", shape, **options)


def plan_of(*params: Param, symbols: tuple[str, ...] = ("n",), **options: Any) -> LaunchPlan:
    """A plan whose kernel ``scale`` takes every parameter; ``kernel`` replaces its fields."""
    args = tuple(ArgRef("param", i) for i in range(len(params)))
    fields = {"block": (128, 1, 1), "args": args, **options.pop("kernel", {})}
    outputs = tuple(i for i, p in enumerate(params) if p.role == "out")
    return LaunchPlan(
        "f",
        symbols,
        params,
        kernels=(KernelLaunch("scale", **fields),),
        returns=outputs,
        returns_list=len(outputs) > 1,
        **options,
    )
