"""Timing a callable: CPU clock on the CPU; events, CUPTI or graphs on a GPU."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch

from tilelang.errors import UnsupportedError
from tilelang.profiler.gpu_clock import CLOCKS, GpuClock

__all__ = ["Backend", "ReturnMode", "do_bench", "summarize"]

Backend = Literal["event", "cupti", "cudagraph"]
ReturnMode = Literal["mean", "min", "max", "median"]

_REDUCE: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "min": min,
    "max": max,
    "median": statistics.median,
}
_ESTIMATE_RUNS = 5


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    _n_warmup: int = 0,
    _n_repeat: int = 0,
    quantiles: Sequence[float] | None = None,
    fast_flush: bool = True,
    backend: Backend = "event",
    return_mode: ReturnMode = "mean",
    device: torch.device | str | None = None,
    cache_size: int = 256,
    early_stop_baseline: float | None = None,
) -> float | list[float]:
    """Measure how long one call of ``fn`` takes.

    On a GPU the L2 cache is overwritten before each timed call, and only the device's time
    counts. On the CPU calls are timed one by one with the clock, caches stay warm, and calls
    shorter than 10 µs are timed in groups, since reading the clock takes 0.05 µs.

    Parameters
    ----------
    fn : callable
        Takes no arguments.
    warmup, rep : float
        Milliseconds spent before and while timing.
    _n_warmup, _n_repeat : int
        Numbers of calls that replace ``warmup`` and ``rep`` when not 0.
    quantiles : sequence of float, optional
        Return these quantiles, each in [0, 1], instead of ``return_mode``'s value.
    fast_flush : bool
        Overwrite the L2 cache in words rather than bytes; same effect, less time.
    backend : {"event", "cupti", "cudagraph"}
        GPU only: CUDA events around each call, the profiler's kernel times, or replays of one
        captured graph (no launch overhead).
    return_mode : {"mean", "min", "max", "median"}
        What is made of the calls' times.
    device : torch.device or str, optional
        Where ``fn`` runs; by default the current CUDA device if there is one, else the CPU.
    cache_size : int
        Mebibytes overwritten to flush the L2 cache.
    early_stop_baseline : float, optional
        Milliseconds: when a first estimate is slower than this, return the estimate at once.

    Returns
    -------
    float or list of float
        Milliseconds; a list if several quantiles are asked for.

    Raises
    ------
    ValueError
        If a mode, quantile or duration makes no sense.
    UnsupportedError
        If ``backend`` does not exist on the device.

    Examples
    --------
    >>> import torch
    >>> a = torch.ones(16)
    >>> do_bench(lambda: a + a, device="cpu") < 1
    True
    """
    _check(warmup, rep, quantiles, return_mode)
    place = _device(device)
    if place.type == "cpu":
        if backend != "event":
            raise UnsupportedError.on_backend(f"timing with '{backend}'", "cpu", ["cuda"])
        clock: Any = _CpuClock()
    else:
        if backend not in CLOCKS:
            raise ValueError(f"backend must be one of {', '.join(CLOCKS)}; found {backend!r}")
        clock = GpuClock(CLOCKS[backend], place, cache_size, fast_flush)
    fn()  # compiles, allocates, fills caches
    estimate = statistics.fmean(clock.measure(fn, _ESTIMATE_RUNS))
    if early_stop_baseline is not None and estimate > early_stop_baseline:
        return summarize([estimate], quantiles, return_mode)
    floor = max(estimate, 1e-6)
    clock.run(fn, _n_warmup or max(1, int(warmup / floor)))
    times = clock.measure(fn, _n_repeat or max(1, int(rep / floor)))
    return summarize(times, quantiles, return_mode)


def _check(warmup: float, rep: float, quantiles: Sequence[float] | None, mode: str) -> None:
    if mode not in _REDUCE:
        raise ValueError(f"return_mode must be one of {', '.join(_REDUCE)}; found {mode!r}")
    if warmup < 0 or rep < 0:
        raise ValueError(f"warmup and rep are milliseconds, found {warmup} and {rep}")
    for quantile in quantiles or ():
        if not 0 <= quantile <= 1:
            raise ValueError(f"a quantile lies between 0 and 1, found {quantile}")


def _device(device: torch.device | str | None) -> torch.device:
    if device is not None:
        return torch.device(device)
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def summarize(
    times: Sequence[float], quantiles: Sequence[float] | None, return_mode: ReturnMode
) -> float | list[float]:
    """Reduce the times of calls to what :func:`do_bench` returns."""
    if quantiles is None:
        return _REDUCE[return_mode](times)
    ordered = torch.tensor(list(times), dtype=torch.float64)
    found = torch.quantile(ordered, torch.tensor(list(quantiles), dtype=torch.float64)).tolist()
    return float(found[0]) if len(found) == 1 else [float(value) for value in found]


class _CpuClock:
    """Wall time of calls, in milliseconds."""

    _GROUP_BELOW_MS = 0.01

    def run(self, fn: Callable[[], Any], count: int) -> None:
        for _ in range(count):
            fn()

    def measure(self, fn: Callable[[], Any], count: int) -> list[float]:
        first = self._timed(fn, 1)
        if first >= self._GROUP_BELOW_MS:
            return [first, *(self._timed(fn, 1) for _ in range(count - 1))]
        group = min(count, max(1, int(self._GROUP_BELOW_MS / max(first, 1e-6))))
        return [self._timed(fn, group) for _ in range(-(-count // group))]

    @staticmethod
    def _timed(fn: Callable[[], Any], count: int) -> float:
        calls = range(count)
        started = time.perf_counter_ns()
        for _ in calls:
            fn()
        return (time.perf_counter_ns() - started) / count * 1e-6
