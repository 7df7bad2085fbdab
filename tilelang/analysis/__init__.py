"""Checks of traced programs that hold on every backend."""

from collections.abc import Callable

from tvm import tirx as T

from tilelang.analysis.bounds import check_bounds
from tilelang.analysis.conflicts import check_parallel_writes
from tilelang.analysis.initialised import check_initialised
from tilelang.analysis.mixed_halves import check_mixed_halves
from tilelang.analysis.nesting import check_nesting
from tilelang.analysis.reducers import check_reducers
from tilelang.transform.pass_config import PassConfigKey
from tilelang.transform.pass_context import get_pass_context

__all__ = [
    "PRE_LOWER_CHECKS",
    "check_bounds",
    "check_initialised",
    "check_mixed_halves",
    "check_nesting",
    "check_parallel_writes",
    "check_program",
    "check_reducers",
]

# Each check and the pass config that switches it off.
PRE_LOWER_CHECKS: tuple[tuple[Callable[[T.PrimFunc], None], PassConfigKey | None], ...] = (
    (check_nesting, None),
    (check_mixed_halves, None),
    (check_reducers, None),
    (check_bounds, None),
    (check_parallel_writes, PassConfigKey.TL_DISABLE_DATA_RACE_CHECK),
    (check_initialised, PassConfigKey.TL_DISABLE_BUFFER_INIT_CHECK),
)


def check_program(func: T.PrimFunc) -> None:
    """Run the checks on a traced function that the pass configuration does not switch off.

    Raises
    ------
    SemanticError
        The first mistake, at the user's line.
    """
    config = get_pass_context().config
    if config.get(PassConfigKey.TL_DISABLE_PRELOWER_SEMANTIC_CHECK, False):
        return
    for check, switch in PRE_LOWER_CHECKS:
        if switch is None or not config.get(switch, False):
            check(func)
