"""The manifest of the ROCm backend."""

from __future__ import annotations

from tilelang.backend.device_codegen import DeviceCodegen
from tilelang.backend.host_codegen import STANDARD_HOST_CODEGENS
from tilelang.backend.module import BackendModule
from tilelang.backend.registry import register_backend
from tilelang.backend.target import (
    register_target_detector,
    register_target_kind_alias,
    register_target_normalizer,
)
from tilelang.backend.unavailable import UnavailablePart
from tilelang.rocm.execution_backend import EXECUTION_BACKENDS
from tilelang.rocm.pipeline import ROCM_PIPELINE
from tilelang.rocm.target import detect_hip_target, normalize_hip_target

__all__ = ["ROCM_BACKEND"]

_CODEGEN = UnavailablePart("rocm", "generating device code")

# How a HIP target is held where TVM could not be given kind `hip`.
register_target_kind_alias("rocm", "hip", "hip")
register_target_normalizer("hip", normalize_hip_target)
register_target_detector("hip", detect_hip_target, device_type="cuda", rank=20)

ROCM_BACKEND = register_backend(
    BackendModule(
        name="rocm",
        device_type="cuda",  # as torch calls AMD GPUs
        target_kinds=("hip",),
        pipelines={"hip": ROCM_PIPELINE},
        device_codegens={"hip": DeviceCodegen("hip", _CODEGEN, _CODEGEN)},
        execution_backends=EXECUTION_BACKENDS,
        host_codegens=STANDARD_HOST_CODEGENS,
        callbacks={
            "tilelang_callback_hip_compile": UnavailablePart("rocm", "compiling HIP source")
        },
    )
)
