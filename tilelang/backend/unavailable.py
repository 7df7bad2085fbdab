"""Parts of a planned backend that do not exist yet, and the refusal they give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelang.backend.registry import list_backends
from tilelang.errors import UnsupportedError

__all__ = ["UnavailablePart", "backends_that_compile"]


@dataclass(frozen=True)
class UnavailablePart:
    """Stands in a manifest for a pipeline, codegen or callback of a backend to come.

    Calling it raises :class:`~tilelang.errors.UnsupportedError` that names the backend, the part
    and the backends that can compile a kernel today.
    """

    backend: str
    part: str

    def __call__(self, *arguments: Any) -> Any:
        backends = list_backends()
        usable = [
            f"{name} (target {' or '.join(backends[name].target_kinds)})"
            for name in backends_that_compile()
        ]
        raise UnsupportedError(
            f"backend '{self.backend}' is declared but cannot compile kernels yet: {self.part} is "
            f"not part of this version; backends that can: {', '.join(usable) or 'none'}"
        )


def backends_that_compile() -> tuple[str, ...]:
    """Return the names of the registered backends whose pipelines exist."""
    return tuple(
        name
        for name, module in list_backends().items()
        if not any(isinstance(p.body, UnavailablePart) for p in module.pipelines.values())
    )
