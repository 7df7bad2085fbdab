"""Pass pipelines: the list type, the runner, and the observers of a run."""

from tilelang.backend.pass_pipeline.observer import PassObserver, active_observers, observe
from tilelang.backend.pass_pipeline.observers import (
    DiffObserver,
    DumpObserver,
    HtmlDiffObserver,
    TimingObserver,
    TimingReport,
    TimingRow,
)
from tilelang.backend.pass_pipeline.pipeline import PassPipeline, run_steps
from tilelang.backend.pass_pipeline.step import (
    TARGET,
    IRLevel,
    PassFunction,
    PassStep,
    neutral,
    tvm_pass,
)

__all__ = [
    "TARGET",
    "DiffObserver",
    "DumpObserver",
    "HtmlDiffObserver",
    "IRLevel",
    "PassFunction",
    "PassObserver",
    "PassPipeline",
    "PassStep",
    "TimingObserver",
    "TimingReport",
    "TimingRow",
    "active_observers",
    "neutral",
    "observe",
    "run_steps",
    "tvm_pass",
]
