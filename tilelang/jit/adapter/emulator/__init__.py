"""Execution backend ``emulator``: generated device source, run on the host and on CPU tensors.

The target's manifest names the emulator as the device compiler of this execution backend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tilelang.backend import find_device_compiler
from tilelang.errors import BackendError
from tilelang.jit.adapter.base import KernelAdapter, KernelBundle

if TYPE_CHECKING:
    from tilelang.backend import BackendContext
    from tilelang.engine.artifact import CompiledArtifact

__all__ = ["ADAPTER", "EmulatorAdapter"]


class EmulatorAdapter(KernelAdapter):
    """Runs device source that was compiled for the host."""

    name: ClassVar[str] = "emulator"

    @classmethod
    def fingerprint(cls, context: BackendContext) -> Mapping[str, str]:
        """The host compiler, the emulator and its checks."""
        compiler = context.device_compiler
        return {} if compiler is None else compiler.fingerprint()

    @classmethod
    def build(cls, artifact: CompiledArtifact, compile_flags: Sequence[str]) -> KernelBundle:
        """Compile the device source for the host."""
        return KernelBundle(
            plan=artifact.plan,
            kernel_source=artifact.kernel_source,
            binaries=artifact.device_code(compile_flags) or {},
            line_table=artifact.line_table,
        )

    def load(self, bundle: KernelBundle) -> Callable[..., Any]:
        """Load the library and make the launcher."""
        compiler = find_device_compiler(bundle.binaries)
        if compiler is None:
            raise BackendError("these kernels were not compiled for an emulator")
        self._binary = compiler.binary
        return compiler.load(bundle.plan, bundle.binaries, bundle.line_table)

    def counters(self) -> list[Any]:
        """What the checks of memory traffic counted in the last launch, by source line."""
        counted: list[Any] = self.func.counters()  # type: ignore[attr-defined]
        return counted

    def export_library(self, path: Path) -> bool:
        """Write the shared library with the emulated kernels."""
        path.write_bytes(self.bundle.binaries[self._binary])
        return True


ADAPTER = EmulatorAdapter
