"""The accuracy table of the numeric contract: how far an execution may be from the interpreter.

Copies, integers, conversions, comparisons, max and min agree bit for bit (NaN with NaN). For
elementwise functions the table gives units in the last place of the result dtype. Sums, matrix
products and float atomics have no fixed order; a sum of n terms may be off by n rounding errors of
its accumulator, relative to the sum of the magnitudes of the terms. Where a processor has an
instruction for products of bfloat16 (``avx512_bf16``), ``T.gemm`` uses it; subnormal operands and
results then count as 0, as they do in the processor's other libraries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang.interpreter.numbers import dtype_named

__all__ = ["ULP", "eps", "sum_bound", "ulp_bound", "ulp_distance"]

#: Units in the last place for float32 and float64. 16-bit and shorter floats are computed wider and
#: rounded once: see :func:`ulp_bound`.
ULP: dict[str, float] = {
    # exactly rounded operators; a contracted multiply-add is compared as a sum of two terms
    "add": 0,
    "sub": 0,
    "mul": 0,
    "fabs": 0,
    "copysign": 0,
    "floor": 0,
    "ceil": 0,
    "trunc": 0,
    "round": 0,
    "nearbyint": 0,
    "fmod": 0,
    "ldexp": 0,
    "nextafter": 0,
    # division and square root may use a reciprocal and one Newton step
    "div": 1,
    "sqrt": 1,
    "rsqrt": 2,
    "exp": 2,
    "exp2": 2,
    "exp10": 3,
    "log": 2,
    "log2": 2,
    "log10": 3,
    "log1p": 2,
    "sin": 2,
    "cos": 2,
    "tan": 4,
    "asin": 4,
    "acos": 4,
    "atan": 4,
    "atan2": 4,
    "sinh": 4,
    "cosh": 4,
    "tanh": 4,
    "asinh": 4,
    "acosh": 4,
    "atanh": 4,
    "erf": 4,
    "sigmoid": 4,
    "hypot": 4,
    "pow": 8,
    # approximate forms
    "fast_rcp": 2,
    "__exp": 4,
    "__exp10": 8,
    "__log": 8,
    "__log2": 8,
    "__log10": 8,
    "__sin": 2**12,
    "__cos": 2**12,
    "__tan": 2**12,
}


def eps(dtype: str) -> float:
    """The distance from 1 to the next larger number of a float dtype; 0 for integers."""
    kind = dtype_named(dtype)
    if kind.kind != "f":
        return 0.0
    if kind.carrier.kind == "f" and kind.bits >= 16:
        return float(np.finfo(kind.carrier).eps)
    import ml_dtypes  # knows the short floats

    return float(ml_dtypes.finfo(kind.carrier).eps)


def ulp_bound(name: str, dtype: str) -> float:
    """The bound of function ``name`` for ``dtype``, in units in the last place.

    Raises
    ------
    KeyError
        If the table has no such function.
    """
    bound = ULP[name]
    if dtype in ("float32", "float64") or bound == 0:
        return bound
    # One rounding of a wider result: at most one step beyond the right neighbour, plus what is
    # left of the wider error in the shorter format.
    return max(1.0, bound * eps("float32") / eps(dtype))


def ulp_distance(actual: Any, expected: Any, dtype: str) -> np.ndarray:
    """How many numbers of ``dtype`` lie between two arrays, elementwise.

    Equal values and pairs of NaN have distance 0; a NaN and a number are infinitely far apart.
    Both zeros are one number.
    """
    kind = dtype_named(dtype)
    a, b = (_ordered(np.ascontiguousarray(x, kind.carrier)) for x in (actual, expected))
    # Close numbers differ exactly; numbers of different sign may be too far apart for an integer.
    near = (a < 0) == (b < 0)
    exact = np.abs(np.where(near, a, 0) - np.where(near, b, 0)).astype(np.float64)
    distance = np.where(near, exact, np.abs(a.astype(np.float64) - b.astype(np.float64)))
    nan = [np.isnan(np.asarray(x).astype(np.float64)) for x in (actual, expected)]
    distance = np.where(nan[0] != nan[1], np.inf, distance)
    return np.where(nan[0] & nan[1], 0.0, distance)


def _ordered(values: np.ndarray) -> np.ndarray:
    """Integers in the order of the floats, adjacent for adjacent floats."""
    bits = values.view(f"i{values.itemsize}").astype(np.int64)
    lowest = -(1 << (8 * values.itemsize - 1))
    return np.where(bits < 0, lowest - bits, bits)


def sum_bound(terms: int, magnitude: Any, accumulator: str, result: str | None = None) -> Any:
    """The bound on the absolute error of a sum, a matrix product or a chain of float atomics.

    Parameters
    ----------
    terms : int
        Number of terms (K of a matrix product).
    magnitude : number or array
        Sum of the absolute values of the terms (``|A| @ |B|`` of a matrix product).
    accumulator : str
        Dtype the sum is formed in.
    result : str, optional
        Dtype it is stored in, if shorter.
    """
    roundings = (terms + 1) * eps(accumulator)
    if result is not None and result != accumulator:
        roundings += eps(result)
    return roundings * np.asarray(magnitude, np.float64)
