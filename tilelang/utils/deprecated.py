"""Marking old spellings."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["deprecated", "deprecated_warning"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def deprecated_warning(
    method_name: str, new_method_name: str, phaseout_version: str | None = None, stacklevel: int = 2
) -> None:
    """Warn that ``method_name`` is an old spelling of ``new_method_name``.

    Parameters
    ----------
    method_name, new_method_name : str
        The old and the new spelling.
    phaseout_version : str, optional
        The version that drops the old one.
    stacklevel : int
        Whose line the warning shows, counted as in :func:`warnings.warn`.
    """
    when = f" and will be removed in version {phaseout_version}" if phaseout_version else ""
    text = f"{method_name} is deprecated{when}, use {new_method_name}"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel + 1)


def deprecated(
    method_name: str, new_method_name: str, phaseout_version: str | None = None
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a function that is an old spelling; each call warns at the caller's line.

    Examples
    --------
    >>> @deprecated("old", "new", "1.0")
    ... def old():
    ...     return 1
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            deprecated_warning(method_name, new_method_name, phaseout_version, stacklevel=2)
            return function(*args, **kwargs)

        return wrapper

    return decorate
