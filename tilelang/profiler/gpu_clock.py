"""Device time of calls on a GPU, with a cold L2 cache before each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

__all__ = ["CLOCKS", "GpuClock"]

Call: TypeAlias = Callable[[], Any]
_KERNEL_EVENT = "CUDA"
_GRAPH_CALLS = 10


@dataclass
class GpuClock:
    """Runs and times calls on one device.

    Parameters
    ----------
    method : callable
        One of :data:`CLOCKS`: ``(clock, fn, count) -> milliseconds of each call``.
    device : torch.device
    cache_size : int
        Mebibytes overwritten before each timed call.
    fast_flush : bool
        Overwrite words rather than bytes.
    """

    method: Callable[[GpuClock, Call, int], list[float]]
    device: torch.device
    cache_size: int
    fast_flush: bool
    scratch: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        size = self.cache_size << 20
        dtype, count = (torch.int32, size // 4) if self.fast_flush else (torch.int8, size)
        self.scratch = torch.empty(count, dtype=dtype, device=self.device)

    def run(self, fn: Call, count: int) -> None:
        """Call ``fn`` untimed."""
        with torch.cuda.device(self.device):
            for _ in range(count):
                fn()
            torch.cuda.synchronize()

    def measure(self, fn: Call, count: int) -> list[float]:
        """Milliseconds of ``count`` calls."""
        with torch.cuda.device(self.device):
            return self.method(self, fn, count)

    def flush(self) -> None:
        """Overwrite the L2 cache."""
        self.scratch.zero_()


def _time_with_events(clock: GpuClock, fn: Call, count: int) -> list[float]:
    pairs = [
        (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
        for _ in range(count)
    ]
    for start, end in pairs:
        clock.flush()
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairs]


def _time_with_cupti(clock: GpuClock, fn: Call, count: int) -> list[float]:
    """The sum of the kernels' own times, as the profiler records them; one mean for all calls."""
    from torch.profiler import ProfilerActivity, profile  # loads CUPTI

    def kernel_microseconds(call: Call) -> float:
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as recorded:
            for _ in range(count):
                call()
            torch.cuda.synchronize()
        events = recorded.events() or []
        return float(sum(e.device_time for e in events if e.device_type.name == _KERNEL_EVENT))

    def flushed() -> None:
        clock.flush()
        fn()

    flushing = kernel_microseconds(clock.flush)
    total = kernel_microseconds(flushed) - flushing
    return [max(total, 0.0) / count * 1e-3] * count


def _time_with_graph(clock: GpuClock, fn: Call, count: int) -> list[float]:
    """Replays of a graph of several calls, less the time of as many flushes."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())

    def captured(call: Call) -> torch.cuda.CUDAGraph:
        with torch.cuda.stream(stream):
            call()  # whatever initialises lazily must not be captured
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(_GRAPH_CALLS):
                clock.flush()
                call()
        return graph

    with_fn, flush_only = captured(fn), captured(lambda: None)
    replays = max(1, count // _GRAPH_CALLS)

    def replayed(graph: torch.cuda.CUDAGraph) -> list[float]:
        times = []
        for _ in range(replays):
            start = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end))
        return times

    base = min(replayed(flush_only))
    return [max(ms - base, 0.0) / _GRAPH_CALLS for ms in replayed(with_fn)]


CLOCKS: dict[str, Callable[[GpuClock, Call, int], list[float]]] = {
    "event": _time_with_events,
    "cupti": _time_with_cupti,
    "cudagraph": _time_with_graph,
}
