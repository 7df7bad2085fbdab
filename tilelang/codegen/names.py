"""Identifiers for generated source: readable, legal and unique."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tvm import ir

__all__ = ["Names"]

_ILLEGAL = re.compile(r"\W")


class Names:
    """Gives every variable a name of its own, close to the user's.

    A name given inside a :meth:`scope` is free again behind it, so blocks next to each other use
    the same names, as people do.

    Parameters
    ----------
    reserved : iterable of str
        Keywords and function names of the output language.
    """

    def __init__(self, reserved: Iterable[str]) -> None:
        self._taken = set(reserved)
        self._names: dict[ir.Var, str] = {}
        self._given: list[ir.Var] = []

    def of(self, var: ir.Var) -> str:
        """The name of ``var``, chosen at its first use."""
        name = self._names.get(var)
        if name is None:
            name = self._names[var] = self.fresh(var.name)
            self._given.append(var)
        return name

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A block of the output: what is named in it does not exist behind it."""
        outer, self._given = self._given, []
        yield
        for var in self._given:
            self._taken.discard(self._names.pop(var))
        self._given = outer

    def fresh(self, hint: str) -> str:
        """A name nothing else has."""
        base = _ILLEGAL.sub("_", hint) or "v"
        if base[0].isdigit():
            base = f"_{base}"
        name, number = base, 0
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name
