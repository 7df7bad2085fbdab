"""The compile driver: lowering a traced program to a launchable artifact."""

from tilelang.engine.artifact import CompiledArtifact
from tilelang.engine.callback import (
    register_c_postproc,
    register_c_postproc_callback,
    register_cuda_postproc,
    register_cuda_postproc_callback,
    register_hip_postproc,
    register_hip_postproc_callback,
    register_metal_postproc,
    register_metal_postproc_callback,
)
from tilelang.engine.launch_plan import LaunchPlan
from tilelang.engine.lower import lower_with_context
from tilelang.engine.param import KernelParam

__all__ = [
    "CompiledArtifact",
    "KernelParam",
    "LaunchPlan",
    "lower_with_context",
    "register_c_postproc",
    "register_c_postproc_callback",
    "register_cuda_postproc",
    "register_cuda_postproc_callback",
    "register_hip_postproc",
    "register_hip_postproc_callback",
    "register_metal_postproc",
    "register_metal_postproc_callback",
]
