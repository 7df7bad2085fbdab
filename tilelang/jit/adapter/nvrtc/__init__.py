"""Execution backend ``nvrtc``: CUDA text compiled in-process, launched by ``cuda-python``.

Arguments are checked, launches prepared, and results and errors made, by the same native code as in
the other execution backends; the driver bindings of ``cuda-python`` queue the launches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tilelang.backend import find_device_compiler
from tilelang.errors import UnsupportedError
from tilelang.jit.adapter.base import KernelAdapter, KernelBundle
from tilelang.jit.adapter.launcher import code_fingerprint, with_fast_calls

if TYPE_CHECKING:
    from tilelang.backend import BackendContext
    from tilelang.engine.artifact import CompiledArtifact

__all__ = ["ADAPTER", "NVRTCAdapter"]


class NVRTCAdapter(KernelAdapter):
    """Launches CUDA kernels through cuda-python."""

    name: ClassVar[str] = "nvrtc"

    @classmethod
    def fingerprint(cls, context: BackendContext) -> Mapping[str, str]:
        """The device compiler."""
        return code_fingerprint(context)

    @classmethod
    def build(cls, artifact: CompiledArtifact, compile_flags: Sequence[str]) -> KernelBundle:
        """Compile the text for the device."""
        return KernelBundle(
            plan=artifact.plan,
            kernel_source=artifact.kernel_source,
            binaries=artifact.device_code(compile_flags) or {},
            line_table=artifact.line_table,
        )

    def load(self, bundle: KernelBundle) -> Callable[..., Any]:
        """Make the launcher; nothing of CUDA is needed before it is called."""
        compiler = find_device_compiler(bundle.binaries)
        if compiler is None or compiler.load_in_python is None:
            raise UnsupportedError("the backend of this kernel has no launcher in Python")
        launcher = compiler.load_in_python(bundle.plan, bundle.binaries, bundle.line_table)
        return with_fast_calls(launcher, bundle.plan)


ADAPTER = NVRTCAdapter
