"""The manifest of the CuTe DSL backend: CUDA targets with the key ``cutedsl``."""

from __future__ import annotations

from tilelang.backend.device_codegen import DeviceCodegen
from tilelang.backend.lazy import LazyFunction
from tilelang.backend.module import BackendModule
from tilelang.backend.pass_pipeline import PassPipeline
from tilelang.backend.registry import register_backend
from tilelang.backend.target import register_target_normalizer
from tilelang.backend.unavailable import UnavailablePart
from tilelang.cuda.execution_backend import CUTEDSL_EXECUTION_BACKENDS
from tilelang.cuda.target import is_cutedsl_target, normalize_cutedsl_target

__all__ = ["CUTEDSL_BACKEND"]

_CODEGEN = UnavailablePart("cutedsl", "generating device code")

register_target_normalizer("cutedsl", normalize_cutedsl_target)

CUTEDSL_BACKEND = register_backend(
    BackendModule(
        name="cutedsl",
        device_type="cuda",
        target_kinds=("cuda",),
        pipelines={"cuda": PassPipeline("cuda", LazyFunction("tilelang.cuda.pipeline:lower_cuda"))},
        device_codegens={"cuda": DeviceCodegen("cutedsl", _CODEGEN, _CODEGEN)},
        execution_backends=CUTEDSL_EXECUTION_BACKENDS,
        supports_target=is_cutedsl_target,
    )
)
