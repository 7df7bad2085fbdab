"""Pass pipelines: the list type, the runner, and the observers of a run."""

from tilelang.backend.pass_pipeline.observer import PassObserver, active_observers, observe
from tilelang.backend.pass_pipeline.observers import (
    DiffObserver,
    DumpObserver,
    InvariantObserver,
    TimingObserver,
    TimingRow,
)
from tilelang.backend.pass_pipeline.pipeline import (
    TARGET,
    IRLevel,
    PassFunction,
    PassPipeline,
    PassStep,
    neutral,
    run_steps,
    tvm_pass,
)

__all__ = [
    "TARGET",
    "DiffObserver",
    "DumpObserver",
    "IRLevel",
    "InvariantObserver",
    "PassFunction",
    "PassObserver",
    "PassPipeline",
    "PassStep",
    "TimingObserver",
    "TimingRow",
    "active_observers",
    "neutral",
    "observe",
    "run_steps",
    "tvm_pass",
]
