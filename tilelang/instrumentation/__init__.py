"""Watching the passes of a compile.

An observer sees every pass of every pipeline that runs inside ``with observe(...)``. Timing, IR
dump and diff are switched on by pass configs and environment variables alone; use this package to
write another one, or to collect their results::

    with observe(TimingObserver()) as (timing,):
        tilelang.compile(program)
    print(timing.render())
"""

from tilelang.backend.pass_pipeline import (
    DiffObserver,
    DumpObserver,
    IRLevel,
    PassObserver,
    TimingObserver,
    TimingRow,
    active_observers,
    observe,
)
from tilelang.instrumentation.invariants import (
    LEVEL_CHECKS,
    BrokenInvariant,
    LevelObserver,
    check_level,
)

__all__ = [
    "LEVEL_CHECKS",
    "BrokenInvariant",
    "DiffObserver",
    "DumpObserver",
    "IRLevel",
    "LevelObserver",
    "PassObserver",
    "TimingObserver",
    "TimingRow",
    "active_observers",
    "check_level",
    "observe",
]
