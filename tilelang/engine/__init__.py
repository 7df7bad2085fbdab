"""The compile driver: lowering a traced program to a launchable artifact."""

from tilelang.engine.artifact import CompiledArtifact
from tilelang.engine.launch_plan import LaunchPlan
from tilelang.engine.lower import lower_with_context
from tilelang.engine.param import KernelParam

__all__ = ["CompiledArtifact", "KernelParam", "LaunchPlan", "lower_with_context"]
