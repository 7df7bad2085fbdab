"""Execution backends of the CPU, in the order ``auto`` tries them."""

from __future__ import annotations

from tvm.target import Target

from tilelang.backend.execution_backend import ExecutionBackendSpec

__all__ = ["EXECUTION_BACKENDS"]


def _is_c_source(target: Target) -> bool:
    return str(target.kind.name) == "c"


EXECUTION_BACKENDS = (
    ExecutionBackendSpec("cython", supports_target=_is_c_source),
    ExecutionBackendSpec(
        "tvm_ffi",
        enable_host_codegen=True,
        enable_device_compile=True,
    ),
)
