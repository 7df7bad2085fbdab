"""Hooks that edit generated source before it is compiled, one for each kind of source.

Every hook takes ``func(source, target)``, which returns the text to compile. It acts on kernels
compiled after the call; those are kept out of the kernel cache.

Examples
--------
>>> @register_c_postproc_callback  # doctest: +SKIP
... def mark(source, target):
...     return "// edited" + chr(10) + source
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, overload

from tilelang.backend.source_callback import SourceCallback, register_source_callback

__all__ = [
    "register_c_postproc",
    "register_c_postproc_callback",
    "register_cuda_postproc",
    "register_cuda_postproc_callback",
    "register_hip_postproc",
    "register_hip_postproc_callback",
    "register_metal_postproc",
    "register_metal_postproc_callback",
]


class _Register(Protocol):
    def __call__(self, func: SourceCallback, override: bool = True) -> None: ...


class _Decorator(Protocol):
    @overload
    def __call__(self, func: SourceCallback, override: bool = True) -> SourceCallback: ...
    @overload
    def __call__(
        self, func: None = None, override: bool = True
    ) -> Callable[[SourceCallback], SourceCallback]: ...


def _function(kind: str) -> _Register:
    def register(func: SourceCallback, override: bool = True) -> None:
        register_source_callback(kind, func, override)

    register.__name__ = register.__qualname__ = f"register_{kind}_postproc"
    register.__doc__ = f"""Edit the generated {kind} source with ``func(source, target)``.

    Parameters
    ----------
    func : callable
        Returns the text to compile.
    override : bool
        Replace a function registered before; otherwise a second one is a ``BackendError``.
    """
    return register


def _decorator(kind: str) -> _Decorator:
    def decorate(func: SourceCallback | None = None, override: bool = True) -> object:
        def register(callback: SourceCallback) -> SourceCallback:
            register_source_callback(kind, callback, override)
            return callback

        return register if func is None else register(func)

    decorate.__name__ = decorate.__qualname__ = f"register_{kind}_postproc_callback"
    decorate.__doc__ = (
        f"Decorator form of ``register_{kind}_postproc``, with or without parentheses."
    )
    return decorate  # type: ignore[return-value]  # overloads of one function


register_cuda_postproc = _function("cuda")
register_hip_postproc = _function("hip")
register_c_postproc = _function("c")
register_metal_postproc = _function("metal")
register_cuda_postproc_callback = _decorator("cuda")
register_hip_postproc_callback = _decorator("hip")
register_c_postproc_callback = _decorator("c")
register_metal_postproc_callback = _decorator("metal")
