"""The manifest of the WebGPU backend."""

from __future__ import annotations

from tilelang.backend.device_codegen import DeviceCodegen
from tilelang.backend.host_codegen import STANDARD_HOST_CODEGENS
from tilelang.backend.module import BackendModule
from tilelang.backend.registry import register_backend
from tilelang.backend.unavailable import UnavailablePart
from tilelang.webgpu.execution_backend import EXECUTION_BACKENDS
from tilelang.webgpu.pipeline import WEBGPU_PIPELINE

__all__ = ["WEBGPU_BACKEND"]

_CODEGEN = UnavailablePart("webgpu", "generating device code")

WEBGPU_BACKEND = register_backend(
    BackendModule(
        name="webgpu",
        target_kinds=("webgpu",),
        pipelines={"webgpu": WEBGPU_PIPELINE},
        device_codegens={"webgpu": DeviceCodegen("webgpu", _CODEGEN, _CODEGEN)},
        execution_backends=EXECUTION_BACKENDS,
        host_codegens=STANDARD_HOST_CODEGENS,
    )
)
