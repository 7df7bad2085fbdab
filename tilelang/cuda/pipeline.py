"""The pass pipeline of CUDA kernels, shared by the CUDA and the CuTe DSL backend."""

from __future__ import annotations

from tilelang.backend.pass_pipeline.pipeline import PassPipeline
from tilelang.backend.unavailable import UnavailablePart

__all__ = ["CUDA_PIPELINE"]

CUDA_PIPELINE = PassPipeline("cuda", UnavailablePart("cuda", "lowering kernels"))
