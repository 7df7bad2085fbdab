"""Callbacks over generated source: the last word on the text that a device compiler sees.

There is at most one for each target kind, in tvm-ffi's global registry under the name that
:func:`callback_name` tells. A code generator that makes text passes it through
:func:`edit_source`. Kernels made under a callback belong to no cache: what a Python function does
to the text is in no key.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

import tvm_ffi
from tvm.target import Target

from tilelang.errors import BackendError, CodegenError

__all__ = [
    "SourceCallback",
    "callback_name",
    "callback_revision",
    "edit_source",
    "has_source_callback",
    "register_source_callback",
    "remove_source_callback",
    "watch_source_callbacks",
]

SourceCallback = Callable[[str, Target], str]

_REVISION = 0
_WATCHERS: list[weakref.WeakMethod[Callable[[], None]]] = []


def callback_name(kind: str) -> str:
    """Where the callback of target kind ``kind`` is found in tvm-ffi's registry."""
    # The one kind that is also a host kind, which its public name says.
    return f"tilelang_callback_{'c_host' if kind == 'c' else kind}_postproc"


def register_source_callback(kind: str, func: SourceCallback, override: bool = True) -> None:
    """Edit the generated source of target kind ``kind`` with ``func(source, target)``.

    It acts on kernels that are compiled from now on.

    Raises
    ------
    BackendError
        If the kind has a callback and ``override`` is false.
    """
    name = callback_name(kind)
    if not override and has_source_callback(kind):
        raise BackendError(
            f"target kind '{kind}' has a source callback already; pass override=True to replace it"
        )
    tvm_ffi.register_global_func(name, func, override=True)
    _changed()


def remove_source_callback(kind: str) -> None:
    """Compile kernels of target kind ``kind`` as they are generated again."""
    if has_source_callback(kind):
        tvm_ffi.remove_global_func(callback_name(kind))
        _changed()


def has_source_callback(kind: str) -> bool:
    """Whether target kind ``kind`` has a callback."""
    return tvm_ffi.get_global_func(callback_name(kind), allow_missing=True) is not None


def callback_revision() -> int:
    """A number that changes with every registration and removal."""
    return _REVISION


def watch_source_callbacks(method: Callable[[], None]) -> None:
    """Call the bound ``method`` after every registration and removal, while its object lives."""
    _WATCHERS.append(weakref.WeakMethod(method, _WATCHERS.remove))


def edit_source(source: str, target: Target) -> str:
    """The text to compile: ``source`` as the callback of the target's kind leaves it.

    Raises
    ------
    CodegenError
        If the callback fails or returns no text.
    """
    kind = target.kind.name
    callback = tvm_ffi.get_global_func(callback_name(kind), allow_missing=True)
    if callback is None:
        return source
    try:
        edited = callback(source, target)
    except Exception as error:
        raise CodegenError(
            f"the source callback of target kind '{kind}' failed: {error}"
        ) from error
    if not isinstance(edited, str):
        raise CodegenError(
            f"the source callback of target kind '{kind}' returns the edited source text, found "
            f"{type(edited).__name__}"
        )
    return str(edited)


def _changed() -> None:
    global _REVISION
    _REVISION += 1
    for watcher in tuple(_WATCHERS):
        if (method := watcher()) is not None:
            method()
