"""The pass pipeline of Metal kernels."""

from __future__ import annotations

from tilelang.backend.pass_pipeline.pipeline import PassPipeline
from tilelang.backend.unavailable import UnavailablePart

__all__ = ["METAL_PIPELINE"]

METAL_PIPELINE = PassPipeline("metal", UnavailablePart("metal", "lowering kernels"))
