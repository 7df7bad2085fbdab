"""The manifest of the Metal backend."""

from __future__ import annotations

from tilelang.backend.device_codegen import DeviceCodegen
from tilelang.backend.host_codegen import STANDARD_HOST_CODEGENS, HostCodegenHook
from tilelang.backend.module import BackendModule
from tilelang.backend.registry import register_backend
from tilelang.backend.target import register_target_detector, register_target_normalizer
from tilelang.backend.unavailable import UnavailablePart
from tilelang.metal.execution_backend import EXECUTION_BACKENDS
from tilelang.metal.pipeline import METAL_PIPELINE
from tilelang.metal.target import detect_metal_target, normalize_metal_target

__all__ = ["METAL_BACKEND"]

_CODEGEN = UnavailablePart("metal", "generating device code")

register_target_normalizer("metal", normalize_metal_target)
register_target_detector("metal", detect_metal_target, device_type="mps", rank=30)

METAL_BACKEND = register_backend(
    BackendModule(
        name="metal",
        device_type="mps",
        target_kinds=("metal",),
        pipelines={"metal": METAL_PIPELINE},
        device_codegens={"metal": DeviceCodegen("metal", _CODEGEN, _CODEGEN)},
        execution_backends=EXECUTION_BACKENDS,
        host_codegens=STANDARD_HOST_CODEGENS,
        host_codegen_hooks={
            "metal": (
                HostCodegenHook(
                    "metal_context", UnavailablePart("metal", "marking Metal host functions")
                ),
            )
        },
    )
)
