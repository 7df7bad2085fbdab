"""Results kept for each code object."""

from __future__ import annotations

import weakref
from types import CodeType
from typing import Generic, TypeVar

__all__ = ["CodeCache"]

_V = TypeVar("_V")


class CodeCache(Generic[_V]):
    """A table by the identity of code objects, which it does not keep alive.

    Python calls two code objects equal whose functions differ in the annotations of local names or
    in their file, since no instruction tells of these: a cell of a notebook run again after an
    edit. A kernel depends on both.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[CodeType], _V]] = {}

    def get(self, code: CodeType) -> _V | None:
        """What was kept for ``code``, or None."""
        entry = self._entries.get(id(code))
        return entry[1] if entry is not None and entry[0]() is code else None

    def put(self, code: CodeType, value: _V) -> _V:
        """Keep ``value`` while ``code`` lives; returns it."""
        key = id(code)
        self._entries[key] = (weakref.ref(code, lambda _: self._entries.pop(key, None)), value)
        return value
