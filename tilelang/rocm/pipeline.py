"""The pass pipeline of HIP kernels."""

from __future__ import annotations

from tilelang.backend.pass_pipeline.pipeline import PassPipeline
from tilelang.backend.unavailable import UnavailablePart

__all__ = ["ROCM_PIPELINE"]

ROCM_PIPELINE = PassPipeline("hip", UnavailablePart("rocm", "lowering kernels"))
