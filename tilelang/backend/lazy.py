"""Functions named by where they live, imported or looked up at their first call.

A manifest is built while ``import tilelang`` runs, so it must not pull in the compiler parts it
names. These records stand for them; being values, they compare equal when they name the same
function, which keeps registering one manifest twice harmless.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import tvm_ffi

from tilelang.errors import BackendError

__all__ = ["GlobalFunction", "LazyFunction"]


@dataclass(frozen=True)
class LazyFunction:
    """A Python function given as ``"package.module:name"``.

    Example
    -------
    >>> LazyFunction("math:sqrt")(9.0)
    3.0
    """

    path: str

    def __post_init__(self) -> None:
        module, _, name = self.path.partition(":")
        if not module or not name:
            raise BackendError(f"'{self.path}' is not of the form 'package.module:name'")

    def resolve(self) -> Callable[..., Any]:
        """Import the module and return the function."""
        module, _, name = self.path.partition(":")
        return getattr(import_module(module), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.resolve()(*args, **kwargs)


@dataclass(frozen=True)
class GlobalFunction:
    """A function of tvm-ffi's global registry, such as ``target.build.llvm``."""

    name: str

    def resolve(self) -> Callable[..., Any]:
        """Return the registered function.

        Raises
        ------
        BackendError
            Nothing is registered under this name in the installed TVM.
        """
        function = tvm_ffi.get_global_func(self.name, allow_missing=True)
        if function is None:
            raise BackendError(f"the installed TVM has no function '{self.name}'")
        return function

    def __call__(self, *args: Any) -> Any:
        return self.resolve()(*args)
