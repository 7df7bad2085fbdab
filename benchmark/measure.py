"""How the benchmarks measure: interleaved rounds, medians, one row a result."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

__all__ = ["Row", "interleaved", "missed", "per_call_us", "ratio"]

Call = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """One result.

    Parameters
    ----------
    suite, name : str
        Where it belongs.
    value : float or None
        The measured number; None when it could not be measured, ``note`` says why.
    unit : str
        ``"ms"``, ``"us"``, ``"x"`` (a ratio), ``"GFLOP/s"``, ``"GB/s"``.
    target : float or None
        What it should be; None for context.
    better : {"higher", "lower"}
        Which side of ``target`` is good.
    note : str
        Configuration, or why there is no number.
    extra : dict
        Numbers the value was made from.
    """

    suite: str
    name: str
    value: float | None
    unit: str
    target: float | None = None
    better: Literal["higher", "lower"] = "lower"
    note: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target or a number."""
        if self.target is None or self.value is None:
            return None
        return self.value >= self.target if self.better == "higher" else self.value <= self.target

    def to_json(self) -> dict[str, Any]:
        """The row as plain data."""
        return {**asdict(self), "met": self.met}


def missed(suite: str, name: str, reason: str) -> Row:
    """A row for something that could not be measured."""
    return Row(suite, name, None, "", note=reason)


def interleaved(
    calls: Sequence[Call],
    seconds: float = 1.0,
    min_rounds: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> list[list[float]]:
    """Time several calls in turns, so that a busy machine slows all of them alike.

    Parameters
    ----------
    calls : sequence of callable
    seconds : float
        About how long to measure in all.
    min_rounds : int
        Rounds made even if they take longer.
    clock : callable
        Seconds of the times; ``time.thread_time`` leaves out when others had the core, for calls
        that compute in the calling thread alone.

    Returns
    -------
    list of list of float
        Seconds per call, a list for each callable, one entry a round.
    """
    repeats = []
    for call in calls:
        call()
        started = time.perf_counter()
        call()
        once = max(time.perf_counter() - started, 1e-7)
        repeats.append(max(1, int(0.01 / once)))
    times: list[list[float]] = [[] for _ in calls]
    deadline = time.perf_counter() + seconds
    while len(times[0]) < min_rounds or time.perf_counter() < deadline:
        for index, call in enumerate(calls):
            started = clock()
            for _ in range(repeats[index]):
                call()
            times[index].append((clock() - started) / repeats[index])
    return times


def ratio(reference: Sequence[float], mine: Sequence[float]) -> float:
    """Median over rounds of how many times faster ``mine`` was than ``reference``."""
    return statistics.median(r / m for r, m in zip(reference, mine, strict=True))


def per_call_us(times: Sequence[float]) -> float:
    """Median of seconds, in microseconds."""
    return statistics.median(times) * 1e6
