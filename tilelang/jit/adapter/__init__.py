"""Execution adapters, found by name.

An adapter is a folder of this package whose ``__init__`` defines ``ADAPTER``, a subclass of
:class:`~tilelang.jit.adapter.base.KernelAdapter`; adding one touches no other file. Code outside
the package registers one with :func:`register_adapter`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from tilelang.errors import BackendError
from tilelang.jit.adapter.base import KernelAdapter, KernelBundle

__all__ = ["KernelAdapter", "KernelBundle", "find_adapter", "list_adapters", "register_adapter"]

_REGISTERED: dict[str, Callable[[], type[KernelAdapter]]] = {}


def register_adapter(
    name: str, load: Callable[[], type[KernelAdapter]], *, override: bool = False
) -> None:
    """Make the adapter class returned by ``load()`` known as ``name``.

    Raises
    ------
    BackendError
        If the name is taken and ``override`` is false.
    """
    if not override and name in list_adapters():
        raise BackendError(f"an execution adapter named '{name}' exists already")
    _REGISTERED[name] = load


def list_adapters() -> list[str]:
    """Names of all adapters, sorted; none is imported."""
    folders = (module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)
    return sorted({*folders, *_REGISTERED})


def find_adapter(name: str) -> type[KernelAdapter]:
    """Import the adapter ``name`` and return its class.

    Raises
    ------
    BackendError
        If there is none; the message lists those that exist.
    """
    if name in _REGISTERED:
        return _REGISTERED[name]()
    if name not in list_adapters():
        known = ", ".join(list_adapters())
        raise BackendError(f"no execution adapter is named '{name}'; there are: {known}")
    adapter: type[KernelAdapter] = importlib.import_module(f"{__name__}.{name}").ADAPTER
    return adapter
