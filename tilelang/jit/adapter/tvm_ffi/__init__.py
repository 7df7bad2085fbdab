"""Execution backend ``tvm_ffi``: object code loaded in-process, launched by the native launcher.

The same object file serves a kernel just compiled and one from the cache: it is linked in memory
(``apache-tvm-ffi-orcjit``), with no linker and no second code generation. Where that package is
missing, the module in memory is run as it is and nothing is stored.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tilelang.cache.key import host_cpu
from tilelang.jit.adapter.base import KernelAdapter, KernelBundle

if TYPE_CHECKING:
    from tilelang.backend import BackendContext
    from tilelang.engine import CompiledArtifact

__all__ = ["ADAPTER", "TVMFFIAdapter"]

_OBJECT = "kernel.o"


class TVMFFIAdapter(KernelAdapter):
    """Runs the workers of a compiled module through tvm-ffi."""

    name: ClassVar[str] = "tvm_ffi"

    @classmethod
    def fingerprint(cls, context: BackendContext) -> Mapping[str, str]:
        """The CPU: the object file holds its machine code."""
        return {"cpu": host_cpu()}

    @classmethod
    def build(cls, artifact: CompiledArtifact, compile_flags: Sequence[str]) -> KernelBundle:
        """Take the object code of the lowering result."""
        code = artifact.object_code() if _has_object_loader() else None
        return KernelBundle(
            plan=artifact.plan,
            kernel_source=artifact.kernel_source,
            binaries={} if code is None else {_OBJECT: code},
            line_table=artifact.line_table,
            runtime_module=artifact.rt_mod if code is None else None,
        )

    def load(self, bundle: KernelBundle) -> Callable[..., Any]:
        """Link the object in memory and make the launcher."""
        module = bundle.runtime_module
        if module is None:
            module = _load_object(bundle.binaries[_OBJECT])
        return cpu_launcher(bundle.plan, module)


def _has_object_loader() -> bool:
    return importlib.util.find_spec("tvm_ffi_orcjit") is not None


def _load_object(code: bytes) -> Any:
    from tvm_ffi_orcjit import default_session  # 5 ms, and only a kernel needs it

    return default_session().load_module(code)


ADAPTER = TVMFFIAdapter
