"""Checks of traced programs that hold on every backend."""

from collections.abc import Callable

from tvm import tirx as T

from tilelang.analysis.conflicts import check_parallel_writes
from tilelang.analysis.initialised import check_initialised
from tilelang.analysis.nesting import check_nesting
from tilelang.analysis.reducers import check_reducers

__all__ = [
    "PRE_LOWER_CHECKS",
    "check_initialised",
    "check_nesting",
    "check_parallel_writes",
    "check_program",
    "check_reducers",
]

PRE_LOWER_CHECKS: tuple[Callable[[T.PrimFunc], None], ...] = (
    check_nesting,
    check_reducers,
    check_parallel_writes,
    check_initialised,
)


def check_program(func: T.PrimFunc) -> None:
    """Run all checks on a traced function; the first mistake is raised as a SemanticError."""
    for check in PRE_LOWER_CHECKS:
        check(func)
