"""The result of lowering: modules, source text and the launch plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilelang.backend.device_compiler import DeviceBinaries, DeviceCompiler
from tilelang.engine.launch_plan import LaunchPlan
from tilelang.engine.param import KernelParam

__all__ = ["CompiledArtifact"]


@dataclass
class CompiledArtifact:
    """What the compile driver hands to an execution adapter.

    Parameters
    ----------
    host_mod, device_mod : tvm.IRModule
        The lowered IR. A backend whose workers are called directly has an empty host module.
    params : sequence of KernelParam
        The user-visible parameters, outputs included, in order.
    kernel_source : str
        Readable text of the device code.
    rt_mod : runtime module, optional
        Runnable code; ``rt_mod[entry]`` is a kernel of the plan.
    target, target_host : tvm.target.Target
    plan : LaunchPlan
        How to bind arguments and launch.
    line_table : dict
        Entry name to ``(file, line)`` of the user's ``T.Kernel``.
    notes : dict
        Entry name to remarks of the lowering: why something fell off the fast path.
    device_compiler : DeviceCompiler, optional
        What compiles ``kernel_source``, for backends with a compiler of their own.
    """

    host_mod: Any
    device_mod: Any
    params: Sequence[KernelParam]
    kernel_source: str
    rt_mod: Any = None
    target: Any = None
    target_host: Any = None
    plan: LaunchPlan = field(default_factory=lambda: LaunchPlan("empty"))
    line_table: dict[str, tuple[str, int]] = field(default_factory=dict)
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    device_compiler: DeviceCompiler | None = None

    def object_code(self) -> bytes | None:
        """Relocatable object code of ``rt_mod``, or None if it has no such form."""
        emit = getattr(self.rt_mod, "emit_object", None)
        return emit() if emit is not None else None

    def device_code(self, flags: Sequence[str]) -> DeviceBinaries | None:
        """Run the device compiler on ``kernel_source``; None for a backend without one.

        Raises
        ------
        DeviceCompileError
            With the compiler's first messages.
        """
        if self.device_compiler is None:
            return None
        return self.device_compiler.compile(self.kernel_source, self.target, flags, self.line_table)
