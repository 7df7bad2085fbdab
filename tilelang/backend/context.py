"""The immutable record of one choice of backends that travels through a compile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.ir import IRModule
from tvm.target import Target

from tilelang.backend.device_compiler import DeviceCompiler
from tilelang.backend.execution_backend import ExecutionBackendSpec
from tilelang.backend.module import BackendModule
from tilelang.backend.source_callback import has_source_callback
from tilelang.errors import BackendError

__all__ = ["BackendContext"]


@dataclass(frozen=True)
class BackendContext:
    """Target backend, targets and execution backend of one compile.

    Made by :func:`tilelang.backend.create_backend_context`, which is the only place where they
    are chosen.

    Raises
    ------
    BackendError
        The parts do not belong together.
    """

    module: BackendModule
    target: Target
    target_host: Target
    execution_backend: ExecutionBackendSpec

    def __post_init__(self) -> None:
        if not self.module.matches(self.target):
            raise BackendError(
                f"backend '{self.module.name}' does not compile for target {self.target}"
            )
        if self.execution_backend not in self.module.execution_backends:
            raise BackendError(
                f"execution backend '{self.execution_backend.name}' is not declared by backend "
                f"'{self.module.name}'"
            )
        if not self.execution_backend.matches(self.target):
            raise BackendError(
                f"execution backend '{self.execution_backend.name}' does not support target "
                f"{self.target}"
            )

    @property
    def name(self) -> str:
        """Name of the target backend."""
        return self.module.name

    @property
    def edits_source(self) -> bool:
        """Whether a callback edits the generated source, so that no cache knows the kernel."""
        return has_source_callback(self.target.kind.name)

    @property
    def device_type(self) -> str:
        """The ``torch.device`` type of the tensors the kernel takes."""
        return self.execution_backend.device_type or self.module.device_type

    @property
    def device_compiler(self) -> DeviceCompiler | None:
        """What compiles device source: the execution backend's own, else the target's if any."""
        if self.execution_backend.compiler is not None:
            return self.execution_backend.compiler
        return self.module.get_device_codegen(self.target).compiler

    def lower(self, mod: IRModule) -> IRModule:
        """Run the backend's pass pipeline."""
        return self.module.lower(mod, self.target)

    def codegen_device(self, mod: IRModule, *, compile_device: bool | None = None) -> Any:
        """Generate device code; by default compiled if the execution backend wants a binary."""
        if compile_device is None:
            compile_device = self.execution_backend.enable_device_compile
        return self.module.codegen_device(mod, self.target, compile_device=compile_device)

    def preprocess_host_codegen(self, mod: IRModule) -> IRModule:
        """Apply the backend's rewrites of host IR."""
        return self.module.preprocess_host_codegen(mod, self.target_host, self.target)

    def codegen_host(self, mod: IRModule) -> Any:
        """Generate host code."""
        return self.module.codegen_host(mod, self.target_host)
