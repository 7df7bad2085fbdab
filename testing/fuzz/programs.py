"""Random programs of every kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from hypothesis import strategies as st

from testing.fuzz.launches import launch_programs
from testing.fuzz.products import product_programs
from testing.fuzz.program import Program
from testing.fuzz.threads import thread_programs
from testing.fuzz.tiles import tile_programs

__all__ = ["FAMILIES", "programs"]

FAMILIES: Mapping[str, Callable[[], st.SearchStrategy[Program]]] = MappingProxyType(
    {
        "tiles": tile_programs,
        "products": product_programs,
        "threads": thread_programs,
        "launches": launch_programs,
    }
)
"""Kinds of programs, by name."""


def programs(family: str = "all") -> st.SearchStrategy[Program]:
    """A random program, of one family or of any."""
    if family != "all":
        return FAMILIES[family]()
    return st.one_of(*(make() for make in FAMILIES.values()))
