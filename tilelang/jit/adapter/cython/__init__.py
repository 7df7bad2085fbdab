"""Execution backend ``cython``: C text through the C compiler, called through a Cython extension.

The extension hands torch tensors to the native launcher as borrowed views, which costs less per
argument than a tvm-ffi call. Without the extension the plain call is used; arguments, results and
errors are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tilelang.cache.key import host_cpu
from tilelang.jit.adapter.base import KernelAdapter, KernelBundle
from tilelang.jit.adapter.c_library import c_compiler_stamp, compile_c, load_library
from tilelang.jit.adapter.launcher import cpu_launcher

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
        """The compiler and the CPU it compiles for."""
        return {"cpu": host_cpu(), "cc": c_compiler_stamp()}

    @classmethod
    def build(cls, artifact: CompiledArtifact, compile_flags: Sequence[str]) -> KernelBundle:
        """Compile the C text to a shared library."""
        return KernelBundle(
            plan=artifact.plan,
            kernel_source=artifact.kernel_source,
            binaries={_LIBRARY: compile_c(artifact.kernel_source, compile_flags)},
            line_table=artifact.line_table,
        )

    def load(self, bundle: KernelBundle) -> Callable[..., Any]:
        """Load the library and make the launcher."""
        module = load_library(bundle.binaries[_LIBRARY], bundle.directory, _LIBRARY)
        return cpu_launcher(bundle.plan, module)

    def export_library(self, path: Path) -> bool:
        """Write the shared library."""
        path.write_bytes(self.bundle.binaries[_LIBRARY])
        return True


ADAPTER = CythonAdapter
