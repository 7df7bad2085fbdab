"""Execution backend ``tvm_ffi``: compiled code loaded in-process, launched by the native launcher.

A target that compiles in-process gives an object file. The same file serves a kernel just compiled
and one from the cache: it is linked in memory (``apache-tvm-ffi-orcjit``), with no linker and no
second code generation. Where that package is missing, the module in memory is run as it is and
nothing is stored. Source text goes through the device compiler of its backend; C text, which has
none, through the machine's C compiler.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import tvm_ffi

from tilelang.jit.adapter.base import KernelAdapter, KernelBundle
from tilelang.jit.adapter.c_library import compile_c, link_library, load_library
from tilelang.jit.adapter.launcher import code_fingerprint, cpu_launcher, device_launcher

if TYPE_CHECKING:
    from tilelang.backend import BackendContext
    from tilelang.engine.artifact import CompiledArtifact

__all__ = ["ADAPTER", "TVMFFIAdapter"]

_OBJECT = "kernel.o"
_LIBRARY = "kernel.so"


class TVMFFIAdapter(KernelAdapter):
    """Runs the workers of a compiled module through tvm-ffi."""

    name: ClassVar[str] = "tvm_ffi"

    @classmethod
    def fingerprint(cls, context: BackendContext) -> Mapping[str, str]:
        """The device compiler, or else the CPU and the C compiler; nothing that is not used."""
        return code_fingerprint(context)

    @classmethod
    def build(cls, artifact: CompiledArtifact, compile_flags: Sequence[str]) -> KernelBundle:
        """Take the object code of the lowering result, or compile its text."""
        binaries: dict[str, bytes] = {}
        runtime_module = None
        code = artifact.object_code() if _has_object_loader() else None
        if (device := artifact.device_code(compile_flags)) is not None:
            binaries.update(device)
        elif code is not None:
            binaries[_OBJECT] = code
        elif hasattr(artifact.rt_mod, "__getitem__"):
            runtime_module = artifact.rt_mod
        else:
            binaries[_LIBRARY] = compile_c(artifact.kernel_source, compile_flags)
        return KernelBundle(
            plan=artifact.plan,
            kernel_source=artifact.kernel_source,
            binaries=binaries,
            line_table=artifact.line_table,
            runtime_module=runtime_module,
        )

    def load(self, bundle: KernelBundle) -> Callable[..., Any]:
        """Load the code and make the launcher."""
        if (launcher := device_launcher(bundle)) is not None:
            return launcher
        module = bundle.runtime_module
        if _OBJECT in bundle.binaries:
            module = _load_object(bundle.binaries[_OBJECT])
        elif _LIBRARY in bundle.binaries:
            module = load_library(bundle.binaries[_LIBRARY], bundle.directory, _LIBRARY)
        return cpu_launcher(bundle.plan, module)

    def export_library(self, path: Path) -> bool:
        """Write the workers as a shared library: ``__tvm_ffi_<entry>`` for every launch."""
        if _LIBRARY in self.bundle.binaries:
            path.write_bytes(self.bundle.binaries[_LIBRARY])
        elif _OBJECT in self.bundle.binaries:
            link_library(self.bundle.binaries[_OBJECT], path)
        else:
            return False
        return True


def _has_object_loader() -> bool:
    return importlib.util.find_spec("tvm_ffi_orcjit") is not None


def _load_object(code: bytes) -> Any:
    from tvm_ffi_orcjit import default_session  # 5 ms, and only a kernel needs it

    # ``load_module`` of the session first asks the C++ compiler, twice, where its runtime is. Our
    # objects are plain C, so they are loaded with none.
    load = tvm_ffi.get_global_func("tvm_ffi_orcjit.SessionLoadModule")
    return load(default_session(), [code], "", None, None)


ADAPTER = TVMFFIAdapter
