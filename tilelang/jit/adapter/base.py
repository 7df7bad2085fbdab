"""What an execution adapter is: it turns a lowering result into files, and files into a callable.

Both ways to a kernel end in the same place, so a kernel from the cache is the same object as one
just compiled::

    CompiledArtifact --build--> KernelBundle --load--> native callable
                                 |        ^
                                 v        |
                              files of a cache entry
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tilelang.engine.launch_plan import LaunchPlan

if TYPE_CHECKING:
    from tilelang.backend import BackendContext
    from tilelang.engine.artifact import CompiledArtifact

__all__ = ["KernelAdapter", "KernelBundle"]

_PLAN = "plan.json"
_KERNEL_SOURCE = "kernel_source"
_HOST_SOURCE = "host_source"
_LINES = "lines.json"
_NOTES = "notes.json"
_TEXTS = frozenset({_PLAN, _KERNEL_SOURCE, _HOST_SOURCE, _LINES, _NOTES})


@dataclass(frozen=True)
class KernelBundle:
    """Everything needed to load, launch and show a compiled kernel; portable.

    Parameters
    ----------
    plan : LaunchPlan
        How it is called.
    kernel_source, host_source : str
        The generated text.
    binaries : mapping
        File names to contents: what the adapter's :meth:`~KernelAdapter.load` reads.
    line_table : mapping
        Entry name to ``[file, line]`` of the user's launch.
    notes : mapping
        Entry name to remarks of the lowering, for ``kernel.report()``.
    directory : Path, optional
        A folder that holds ``binaries`` as files, for loaders that need a path.
    runtime_module : object, optional
        The module in memory, when it is not among ``binaries``. Such a bundle cannot be stored.
    """

    plan: LaunchPlan
    kernel_source: str
    host_source: str = ""
    binaries: Mapping[str, bytes] = field(default_factory=dict)
    line_table: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    directory: Path | None = None
    runtime_module: Any = None

    @property
    def storable(self) -> bool:
        """Whether :meth:`to_files` is complete."""
        return self.runtime_module is None

    def to_files(self) -> dict[str, bytes]:
        """The files of a cache entry."""
        return {
            _PLAN: self.plan.to_json().encode(),
            _KERNEL_SOURCE: self.kernel_source.encode(),
            _HOST_SOURCE: self.host_source.encode(),
            _LINES: json.dumps(dict(self.line_table)).encode(),
            _NOTES: json.dumps(dict(self.notes)).encode(),
            **self.binaries,
        }

    @classmethod
    def from_files(cls, files: Mapping[str, bytes], directory: Path | None = None) -> KernelBundle:
        """Rebuild what :meth:`to_files` wrote.

        Raises
        ------
        KeyError, ValueError
            If a file is missing or malformed.
        """
        return cls(
            plan=LaunchPlan.from_json(files[_PLAN].decode()),
            kernel_source=files[_KERNEL_SOURCE].decode(),
            host_source=files[_HOST_SOURCE].decode(),
            binaries={name: data for name, data in files.items() if name not in _TEXTS},
            line_table=json.loads(files[_LINES]),
            notes=json.loads(files[_NOTES]),
            directory=directory,
        )


class KernelAdapter(ABC):
    """Loads and launches kernels of one execution backend.

    A subclass is made from a bundle and sets :attr:`func`, the callable that takes the input
    arguments in order, checks them, launches, and returns the outputs. It should be native: every
    Python frame in it costs each call.
    """

    name: ClassVar[str]
    func: Callable[..., Any]

    def __init__(self, bundle: KernelBundle) -> None:
        self.bundle = bundle
        self.func = self.load(bundle)

    @classmethod
    def fingerprint(cls, context: BackendContext) -> Mapping[str, str]:
        """What the stored files depend on besides program, targets and flags.

        For example the version of a compiler, or the CPU that machine code was made for.
        """
        return {}

    @classmethod
    @abstractmethod
    def build(cls, artifact: CompiledArtifact, compile_flags: Sequence[str]) -> KernelBundle:
        """Turn a lowering result into a bundle, running compilers where needed."""

    @abstractmethod
    def load(self, bundle: KernelBundle) -> Callable[..., Any]:
        """Load the bundle's binaries and return the callable."""

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """The generated device (or worker) source, with the host source unless ``kernel_only``."""
        if kernel_only or not self.bundle.host_source:
            return self.bundle.kernel_source
        return f"{self.bundle.host_source}\n{self.bundle.kernel_source}"

    def get_host_source(self) -> str:
        """The generated host source; empty where the launcher is data."""
        return self.bundle.host_source

    def disassemble(self, form: str) -> str | None:
        """Text of the binary in ``form`` (``"ptx"``, ``"sass"``); None where there is none."""
        return None

    def resource_usage(self) -> Mapping[str, Any] | None:
        """``n_regs``, ``n_spills``, ``n_max_threads`` as the device compiler reports them."""
        return None

    def export_library(self, path: Path) -> bool:
        """Write the compiled code as a shared library; False where there is no such form."""
        return False
