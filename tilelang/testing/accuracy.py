"""Checks of results against the accuracy table of the numeric contract.

The table itself is :data:`tilelang.interpreter.accuracy.ULP`; every suite that compares an
execution with a reference goes through one of these two functions::

    assert_accurate("exp", kernel_result, np.exp(x.astype(np.float64)), "float32")
    assert_sum_accurate(a @ b, exact, terms=k, magnitude=abs(a) @ abs(b), accumulator="float32")
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang.interpreter.accuracy import sum_bound, ulp_bound
from tilelang.interpreter.numbers import dtype_named, round_float

__all__ = ["assert_accurate", "assert_sum_accurate", "ulp_error"]


def ulp_error(actual: Any, exact: Any, dtype: str) -> np.ndarray:
    """Distance of results of ``dtype`` from exact values, in units of the last place there.

    ``exact`` is float64 or wider. Where the exact value rounds to infinity or is NaN the result
    must be that; then the error is 0, otherwise infinite.
    """
    kind = dtype_named(dtype)
    digits, lowest = _digits(dtype)
    with np.errstate(all="ignore"):
        got = np.asarray(actual).astype(np.float64)
        want = np.asarray(exact, np.float64)
        rounded = np.asarray(round_float(want, kind)).astype(np.float64)
        size = np.where(np.isfinite(want) & (want != 0), np.abs(want), 1.0)
        unit = np.ldexp(1.0, np.maximum(np.frexp(size)[1] - 1, lowest) - digits)
        error = np.abs(got - want) / unit
    agrees = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    special = ~np.isfinite(got) | ~np.isfinite(rounded)
    return np.where(special, np.where(agrees, 0.0, np.inf), error)


def _digits(dtype: str) -> tuple[int, int]:
    """Stored mantissa bits and smallest normal exponent of a float dtype."""
    kind = dtype_named(dtype)
    if kind.carrier.kind == "f":
        info: Any = np.finfo(kind.carrier)
    else:
        import ml_dtypes  # knows the short floats

        info = ml_dtypes.finfo(kind.carrier)
    return int(info.nmant), int(info.minexp)


def assert_accurate(name: str, actual: Any, exact: Any, dtype: str) -> None:
    """Check results of elementwise function ``name`` against exact values.

    Raises
    ------
    AssertionError
        Naming the worst element, if one is farther off than the table allows.
    KeyError
        If the table has no such function.
    """
    error = np.atleast_1d(ulp_error(actual, exact, dtype))
    bound = ulp_bound(name, dtype)
    # "0 ulp" means correctly rounded.
    limit = 0.5 if bound == 0 else float(bound)
    worst = int(np.argmax(error))
    if error.flat[worst] > limit:
        got, want = np.asarray(actual).flat[worst], np.asarray(exact).flat[worst]
        raise AssertionError(
            f"{name} of {dtype}: element {worst} is {got}, exact {want!r}: "
            f"{error.flat[worst]:.3f} ulp off, allowed {limit:g}"
        )


def assert_sum_accurate(
    actual: Any,
    exact: Any,
    *,
    terms: int,
    magnitude: Any,
    accumulator: str,
    result: str | None = None,
) -> None:
    """Check sums of ``terms`` numbers; ``magnitude`` is the sum of their absolute values.

    Raises
    ------
    AssertionError
        If an element is farther off than ``terms`` roundings of the accumulator.
    """
    off = np.abs(np.asarray(actual).astype(np.float64) - np.asarray(exact, np.float64))
    allowed = sum_bound(terms, magnitude, accumulator, result)
    off, allowed = np.broadcast_arrays(np.atleast_1d(off), allowed)
    worst = int(np.argmax(off - allowed))
    if not off.flat[worst] <= allowed.flat[worst]:  # NaN fails too
        raise AssertionError(
            f"sum of {terms} {accumulator}: element {worst} is {off.flat[worst]:.3g} off, "
            f"allowed {allowed.flat[worst]:.3g}"
        )
