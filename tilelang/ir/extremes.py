"""Maximum and minimum with numpy by the numeric contract: a number wins over NaN in any order."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["larger", "largest", "quiet", "running_largest", "smaller", "smallest"]


def quiet(values: Any) -> Any:
    """The same values without signaling NaN, to which ``numpy.fmax`` answers NaN."""
    array = np.asarray(values)
    return array * array.dtype.type(1) if array.dtype.kind == "f" else array


def larger(a: Any, b: Any) -> Any:
    """Elementwise maximum."""
    return np.fmax(quiet(a), quiet(b))


def smaller(a: Any, b: Any) -> Any:
    """Elementwise minimum."""
    return np.fmin(quiet(a), quiet(b))


def largest(values: Any, axis: int) -> Any:
    """Maximum along ``axis``; the lowest value where there is no number."""
    if np.asarray(values).dtype.kind != "f":
        return np.maximum.reduce(values, axis=axis)
    return np.fmax.reduce(quiet(values), axis=axis, initial=-np.inf)


def smallest(values: Any, axis: int) -> Any:
    """Minimum along ``axis``; the highest value where there is no number."""
    if np.asarray(values).dtype.kind != "f":
        return np.minimum.reduce(values, axis=axis)
    return np.fmin.reduce(quiet(values), axis=axis, initial=np.inf)


def running_largest(values: Any, axis: int) -> Any:
    """Running maximum along ``axis``; the lowest value up to the first number."""
    if np.asarray(values).dtype.kind != "f":
        return np.maximum.accumulate(values, axis=axis)
    return np.fmax(np.fmax.accumulate(quiet(values), axis=axis), -np.inf)
