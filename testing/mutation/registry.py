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


#: Kernels that stay out of the emulator, and why.
_NOT_EMULATED = {
    "far_elements": "goes through gigabytes",
    "large_tiles": "needs more shared memory than a block has",
    "tiles_among_threads": "tile operations where threads have parted",
    "votes": "lanes that a mask does not name take part; GPUs leave that open",
}


def names(how: str = "llvm") -> list[str]:
    """All kernels that run under ``how``, in the order of their definition."""
    from testing.mutation import gpu_kernels, program_kernels, tile_kernels  # noqa: F401

    return [name for name in _MAKERS if how != "cuda" or name not in _NOT_EMULATED]


@cache
def kernels(name: str) -> Case:
    """The kernel called ``name``, traced once."""
    return _MAKERS[name]()


@cache
def expected(name: str) -> list[Results]:
    """What the interpreter makes of a kernel."""
    return execute(kernels(name), "interpreter")
