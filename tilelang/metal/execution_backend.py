"""Execution backends of Metal, in the order ``auto`` tries them."""

from __future__ import annotations

from tilelang.backend.execution_backend import ExecutionBackendSpec

__all__ = ["EXECUTION_BACKENDS"]


EXECUTION_BACKENDS = (
    ExecutionBackendSpec("torch"),
    ExecutionBackendSpec("tvm_ffi", enable_host_codegen=True, enable_device_compile=True),
)
