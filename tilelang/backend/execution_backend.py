"""Execution backends: who builds, loads and launches what a target backend generates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tvm.target import Target

from tilelang.backend.device_compiler import DeviceCompiler
from tilelang.errors import BackendError

__all__ = ["ExecutionBackendSpec", "canonical_execution_backend"]

# Names of earlier releases, kept because published kernels spell them.
_ALIASES = {"ctypes": "cython"}


def canonical_execution_backend(name: str | None) -> str:
    """Return the present name of an execution backend; ``None`` is ``"auto"``.

    Example
    -------
    >>> canonical_execution_backend("ctypes")
    'cython'
    """
    return "auto" if name is None else _ALIASES.get(name, name)


def always_available() -> bool:
    """Return true: the execution backend needs nothing beyond what TileLang itself needs."""
    return True


def _no_pass_configs() -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class ExecutionBackendSpec:
    """One line of a manifest: an execution backend and what it asks of the compiler.

    Parameters
    ----------
    name : str
        Name of the adapter, the folder below ``tilelang/jit/adapter``.
    is_available : callable
        Whether this machine can run it; asked when a context is made, never at import.
    supports_target : callable, optional
        Narrows the targets of the manifest; all of them when left out.
    enable_host_codegen : bool
        The compiler has to generate host code.
    enable_device_compile : bool
        The compiler has to compile device code to a binary, not only print it.
    requires : str
        What :attr:`is_available` looks for, in words, for messages.
    default_target : str, optional
        The target meant when this execution backend is asked for by name and no target is given
        anywhere. For backends that need no device of their own, such as an emulator.
    device_type : str, optional
        The ``torch.device`` type of the tensors it takes, where that is not the target's.
    compiler : DeviceCompiler, optional
        What compiles device source for it, where that is not the target's device compiler.
    pass_configs : callable, optional
        The pass configuration it wants where neither program nor caller say anything, asked for
        when a kernel is requested.
    """

    name: str
    is_available: Callable[[], bool] = always_available
    supports_target: Callable[[Target], bool] | None = None
    enable_host_codegen: bool = False
    enable_device_compile: bool = False
    requires: str = ""
    default_target: str | None = None
    device_type: str | None = None
    compiler: DeviceCompiler | None = None
    pass_configs: Callable[[], Mapping[str, Any]] = _no_pass_configs

    def __post_init__(self) -> None:
        if not self.name:
            raise BackendError("an execution backend needs a name")
        if self.name == "auto" or self.name in _ALIASES:
            raise BackendError(f"'{self.name}' is reserved and cannot name an execution backend")
        if not callable(self.is_available):
            raise BackendError(f"execution backend '{self.name}': is_available must be callable")

    def matches(self, target: Target) -> bool:
        """Whether this execution backend can run kernels of ``target``."""
        return self.supports_target is None or bool(self.supports_target(target))
