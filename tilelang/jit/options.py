"""The keyword arguments of ``tilelang.jit``, as a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm import tirx as T

from tilelang.backend import BackendContext, create_backend_context
from tilelang.backend.source_callback import callback_revision
from tilelang.backend.target import TargetLike, implicit_target
from tilelang.env import env
from tilelang.jit.request import CompileFlags, CompileRequest, OutIdx

__all__ = ["JITOptions"]


@dataclass(frozen=True)
class JITOptions:
    """How the kernels of one decorated function are compiled; see :func:`tilelang.jit`."""

    out_idx: OutIdx = None
    target: TargetLike | None = None
    target_host: TargetLike | None = None
    execution_backend: str | None = None
    verbose: bool | None = None
    pass_configs: Mapping[Any, Any] | None = None
    debug_root_path: str | Path | None = None
    compile_flags: CompileFlags = None

    def context(self, device_type: str | None = None) -> BackendContext:
        """Choose the backends; ``device_type`` decides when nothing else names a target."""
        return create_backend_context(
            self.target, self.target_host, self.execution_backend, device_type=device_type
        )

    def surroundings(self) -> tuple[str, str, bool, int]:
        """What a kernel depends on besides its arguments and these options.

        The target of the enclosing ``with Target(...)`` or of the environment, where none is
        given; the execution backend of the environment; whether programs are interpreted; the
        callbacks over generated source.
        """
        named = self.target not in (None, "auto")
        target = None if named else implicit_target()
        backend = env.get_default_execution_backend() if self.execution_backend is None else ""
        name = "" if target is None else str(target)
        return name, backend, env.should_interpret(), callback_revision()

    def request(self, func: T.PrimFunc, context: BackendContext) -> CompileRequest:
        """What to compile for ``func``."""
        return CompileRequest.make(
            func,
            context,
            out_idx=self.out_idx,
            pass_configs=self.pass_configs,
            compile_flags=self.compile_flags,
            verbose=self.verbose,
        )
