"""Device code generation: the last step of a backend, from lowered IR to source or binary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.ir import IRModule
from tvm.target import Target

from tilelang.backend.device_compiler import DeviceCompiler
from tilelang.backend.lazy import GlobalFunction
from tilelang.errors import BackendError, CodegenError, TileLangError

__all__ = ["DeviceBuild", "DeviceCodegen", "global_func_device_codegen", "run_codegen"]

DeviceBuild = Callable[[IRModule, Target], Any]


def run_codegen(name: str, build: DeviceBuild, mod: IRModule, target: Target) -> Any:
    """Call ``build(mod, target)``; whatever fails inside leaves as a :class:`CodegenError`."""
    try:
        return build(mod, target)
    except TileLangError:
        raise
    except Exception as error:
        functions = ", ".join(sorted(gv.name_hint for gv in mod.get_global_vars())) or "nothing"
        reason = str(error).strip() or type(error).__name__
        raise CodegenError(f"code generation '{name}' failed on {functions}: {reason}") from error


def global_func_device_codegen(ffi_name: str) -> DeviceBuild:
    """Return a build step that calls the tvm-ffi global function ``ffi_name``."""
    return GlobalFunction(ffi_name)


@dataclass(frozen=True)
class DeviceCodegen:
    """Turns device IR into a runtime module, compiled or as source only.

    Parameters
    ----------
    name : str
        Shown in messages.
    build : callable, optional
        ``(mod, target) -> module`` that also runs the device compiler.
    build_without_compile : callable, optional
        ``(mod, target) -> module`` that stops at source text.
    compiler : DeviceCompiler, optional
        What execution adapters do with the source text, where the backend has a compiler of its
        own.
    """

    name: str
    build: DeviceBuild | None = None
    build_without_compile: DeviceBuild | None = None
    compiler: DeviceCompiler | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise BackendError("a device codegen needs a name")
        if self.build is None and self.build_without_compile is None:
            raise BackendError(
                f"device codegen '{self.name}' needs build, build_without_compile or both"
            )

    def lower(self, mod: IRModule, target: Target, *, compile_device: bool) -> Any:
        """Generate code for ``mod``.

        Raises
        ------
        BackendError
            This codegen has no such mode.
        CodegenError
            The code generator failed.
        """
        build = self.build if compile_device else self.build_without_compile
        if build is None:
            missing = "compile device code" if compile_device else "stop at source code"
            raise BackendError(f"device codegen '{self.name}' cannot {missing}")
        return run_codegen(self.name, build, mod, target)
