"""The kernels of the mutation tests, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from testing.fuzz.execute import Case, Results, execute

__all__ = ["expected", "kernel", "kernels", "names"]

_MAKERS: dict[str, Callable[[], Case]] = {}


def kernel(**options: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a maker of a program under its name; ``options`` are those of :class:`Case`."""

    def register(make: Callable[[], Any]) -> Callable[[], Any]:
        _MAKERS[make.__name__] = lambda: Case(make(), **options)
        return make

    return register


def names() -> list[str]:
    """All kernels, in the order of their definition."""
    from testing.mutation import program_kernels, tile_kernels  # noqa: F401  (they register)

    return list(_MAKERS)


@cache
def kernels(name: str) -> Case:
    """The kernel called ``name``, traced once."""
    return _MAKERS[name]()


@cache
def expected(name: str) -> list[Results]:
    """What the interpreter makes of a kernel."""
    return execute(kernels(name), "interpreter")
