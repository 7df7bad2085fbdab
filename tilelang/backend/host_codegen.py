"""Host code generation and the hooks a backend may put before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tvm.ir import IRModule
from tvm.target import Target

from tilelang.backend.device_codegen import run_codegen
from tilelang.backend.lazy import GlobalFunction
from tilelang.errors import BackendError

__all__ = ["STANDARD_HOST_CODEGENS", "HostCodegen", "HostCodegenHook"]


@dataclass(frozen=True)
class HostCodegen:
    """Turns host IR into a runtime module: ``build(mod, target_host) -> module``."""

    name: str
    build: Callable[[IRModule, Target], Any]

    def __post_init__(self) -> None:
        if not self.name:
            raise BackendError("a host codegen needs a name")

    def lower(self, mod: IRModule, target_host: Target) -> Any:
        """Generate host code; failures leave as :class:`~tilelang.errors.CodegenError`."""
        return run_codegen(self.name, self.build, mod, target_host)


@dataclass(frozen=True)
class HostCodegenHook:
    """A rewrite of host IR one target kind needs: ``apply(mod, target_host, target) -> mod``."""

    name: str
    apply: Callable[[IRModule, Target, Target], IRModule]

    def __post_init__(self) -> None:
        if not self.name:
            raise BackendError("a host codegen hook needs a name")


STANDARD_HOST_CODEGENS: Mapping[str, HostCodegen] = MappingProxyType(
    {
        "c": HostCodegen("c", GlobalFunction("target.build.c")),
        "llvm": HostCodegen("llvm", GlobalFunction("target.build.llvm")),
    }
)
