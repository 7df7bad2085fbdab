"""Performance regressions: functions that return a latency, collected and printed by one call.

A file defines functions named ``regression_*`` that call :func:`process_func`, and ends with
``tilelang.testing.regression()`` under its ``__main__`` guard.
"""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilelang.env import env
from tilelang.errors import EnvVarError

__all__ = ["process_func", "regression"]

_records: list[tuple[str, float]] = []


def process_func(
    func: Callable[..., Any], name: str | None = None, /, **kwargs: Any
) -> float | None:
    """Call ``func(**kwargs)``, which returns a latency in milliseconds, and record it.

    Parameters
    ----------
    func : callable
        What is measured. If it raises, the failure is reported as a warning and nothing recorded.
    name : str, optional
        Name of the record; by default that of ``func``'s module and ``func``.

    Returns
    -------
    float or None
        The latency, None after a failure.

    Raises
    ------
    TypeError
        If ``func`` returns something else than a number.
    """
    label = name or f"{func.__module__}.{func.__qualname__}"
    try:
        latency = func(**kwargs)
    except Exception as error:  # noqa: BLE001  (one failing case must not hide the others)
        warnings.warn(f"regression '{label}' failed: {error!r}", RuntimeWarning, stacklevel=2)
        return None
    if isinstance(latency, bool) or not isinstance(latency, (int, float, np.number)):
        raise TypeError(
            f"regression '{label}' must return milliseconds, found {type(latency).__name__}"
        )
    _records.append((label, float(latency)))
    return float(latency)


def regression(
    prefixes: Sequence[str] = ("regression_",), verbose: bool = True
) -> dict[str, float]:
    """Run the functions of the calling module whose names begin with one of ``prefixes``.

    ``TL_PERF_REGRESSION_ONLY`` (comma-separated function names) selects some of them,
    ``TL_PERF_REGRESSION_FORMAT`` is ``text`` or ``json``.

    Parameters
    ----------
    prefixes : sequence of str
    verbose : bool
        Print the records.

    Returns
    -------
    dict
        Milliseconds by the name of the record, of this call only.
    """
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    names = frame.f_back.f_globals
    only = {part.strip() for part in env.TL_PERF_REGRESSION_ONLY.split(",") if part.strip()}
    style = env.TL_PERF_REGRESSION_FORMAT.strip().lower()
    if style not in ("text", "json"):
        raise EnvVarError(f"TL_PERF_REGRESSION_FORMAT must be text or json, found {style!r}")
    first = len(_records)
    for name, function in list(names.items()):
        if name.startswith(tuple(prefixes)) and callable(function) and (not only or name in only):
            function()
    found = dict(_records[first:])
    if verbose:
        sys.stdout.write(_render(found, style))
    return found


def _render(latencies: dict[str, float], style: str) -> str:
    if style == "json":
        return "".join(
            json.dumps({"name": name, "latency_ms": ms}) + "\n" for name, ms in latencies.items()
        )
    width = max((len(name) for name in latencies), default=0)
    return "".join(f"{name:<{width}}  {ms:10.4f} ms\n" for name, ms in latencies.items())
