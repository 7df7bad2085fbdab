"""Execution backends of CUDA and CuTe DSL, in the order ``auto`` tries them."""

from __future__ import annotations

from importlib.util import find_spec

from tilelang.backend.device_compiler import DeviceCompiler
from tilelang.backend.execution_backend import ExecutionBackendSpec
from tilelang.backend.lazy import LazyFunction

__all__ = ["CUTEDSL_EXECUTION_BACKENDS", "EXECUTION_BACKENDS"]


def _has_cuda_python() -> bool:
    return find_spec("cuda") is not None and find_spec("cuda.bindings") is not None


def _has_cutedsl() -> bool:
    return find_spec("cutlass") is not None and find_spec("cutlass.cute") is not None


EXECUTION_BACKENDS = (
    ExecutionBackendSpec("tvm_ffi", enable_host_codegen=True, enable_device_compile=True),
    ExecutionBackendSpec(
        "nvrtc", is_available=_has_cuda_python, requires="the package cuda-python"
    ),
    ExecutionBackendSpec("cython"),
    ExecutionBackendSpec(
        "emulator",
        is_available=LazyFunction("tilelang.contrib.host_compiler:has_cxx_compiler"),
        requires="a C++ compiler",
        default_target="cuda",
        device_type="cpu",
        compiler=DeviceCompiler(
            binary="kernel.emulated.so",
            compile=LazyFunction("tilelang.cuda.emulator:compile_source"),
            load=LazyFunction("tilelang.cuda.emulator:make_launcher"),
            fingerprint=LazyFunction("tilelang.cuda.emulator:fingerprint"),
        ),
        pass_configs=LazyFunction("tilelang.cuda.emulator:wanted_pass_configs"),
    ),
)

CUTEDSL_EXECUTION_BACKENDS = (
    ExecutionBackendSpec(
        "cutedsl", is_available=_has_cutedsl, requires="the package nvidia-cutlass-dsl"
    ),
)
