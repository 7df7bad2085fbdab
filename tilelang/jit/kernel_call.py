"""The call of a kernel: native where the extension is built, else in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

__all__ = ["KernelCall", "show_call"]


class PythonKernelCall:
    """Base of a kernel; see ``KernelCall`` of the extension."""

    __slots__ = ("_launch",)

    _launch: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launch the kernel."""
        return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """Launch the kernel in any circumstances."""
        raise NotImplementedError

    def _recover(self, error: Exception, args: Sequence[Any]) -> Any:
        """What a call whose launch failed with ``error`` returns or raises."""
        raise NotImplementedError


def show_python_call(kind: type[PythonKernelCall], function: Callable[..., Any]) -> None:
    """Make ``function`` the call of ``kind``."""
    kind.__call__ = function  # type: ignore[method-assign]


if TYPE_CHECKING:
    KernelCall = PythonKernelCall
    show_call = show_python_call
else:
    try:
        from tilelang.jit._launcher import KernelCall, show_call
    except ImportError:  # a Python without the stable ABI
        KernelCall, show_call = PythonKernelCall, show_python_call
