"""The pass pipeline of WebGPU kernels."""

from __future__ import annotations

from tilelang.backend.pass_pipeline.pipeline import PassPipeline
from tilelang.backend.unavailable import UnavailablePart

__all__ = ["WEBGPU_PIPELINE"]

WEBGPU_PIPELINE = PassPipeline("webgpu", UnavailablePart("webgpu", "lowering kernels"))
