"""Execution backend ``cython``: generated text, compiled and called through a Cython extension.

The extension hands torch tensors to the native launcher as borrowed views, which costs less per
argument than a tvm-ffi call. Without the extension the plain call is used; arguments, results and
errors are the same. Text of a backend with a device compiler goes through that one, C text through
the machine's C compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tilelang.jit.adapter.base import KernelAdapter, KernelBundle
from tilelang.jit.adapter.c_library import compile_c, load_library
from tilelang.jit.adapter.launcher import code_fingerprint, cpu_launcher, device_launcher

if TYPE_CHECKING:
    from tilelang.backend import BackendContext
    from tilelang.engine.artifact import CompiledArtifact

__all__ = ["ADAPTER", "CythonAdapter"]

_LIBRARY = "kernel.so"


class CythonAdapter(KernelAdapter):
    """Runs workers compiled from C text."""

    name: ClassVar[str] = "cython"

    @classmethod
    def fingerprint(cls, context: BackendContext) -> Mapping[str, str]:
        """The device compiler, or the C compiler and the CPU it compiles for."""
        return code_fingerprint(context)

    @classmethod
    def build(cls, artifact: CompiledArtifact, compile_flags: Sequence[str]) -> KernelBundle:
        """Compile the text for the device, or to a shared library."""
        binaries = artifact.device_code(compile_flags)
        if binaries is None:
            binaries = {_LIBRARY: compile_c(artifact.kernel_source, compile_flags)}
        return KernelBundle(
            plan=artifact.plan,
            kernel_source=artifact.kernel_source,
            binaries=binaries,
            line_table=artifact.line_table,
        )

    def load(self, bundle: KernelBundle) -> Callable[..., Any]:
        """Load the code and make the launcher."""
        if (launcher := device_launcher(bundle)) is not None:
            return launcher
        module = load_library(bundle.binaries[_LIBRARY], bundle.directory, _LIBRARY)
        return cpu_launcher(bundle.plan, module)

    def export_library(self, path: Path) -> bool:
        """Write the shared library; there is none of device code."""
        if _LIBRARY not in self.bundle.binaries:
            return False
        path.write_bytes(self.bundle.binaries[_LIBRARY])
        return True


ADAPTER = CythonAdapter
