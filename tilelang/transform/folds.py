"""How reductions and scans join two values, and the dtype in which they do."""

from __future__ import annotations

from collections.abc import Callable

from tvm import ir
from tvm import tirx as T

from tilelang.ir.expr import is_float_dtype
from tilelang.transform.loops import accumulator_dtype

__all__ = ["Combine", "combine", "working_dtype"]

Combine = Callable[[ir.Expr, ir.Expr], ir.Expr]


def combine(kind: str, nan_propagate: bool = False) -> Combine:
    """The binary operation of a reduction; ``max`` and ``min`` pick the number over a NaN."""
    folds: dict[str, Combine] = {
        "sum": lambda a, b: a + b,
        "bitand": lambda a, b: T.bitwise_and(a, b),
        "bitor": lambda a, b: T.bitwise_or(a, b),
        "bitxor": lambda a, b: T.bitwise_xor(a, b),
    }
    if kind in folds:
        return folds[kind]
    pick: Combine = (lambda a, b: T.max(a, b)) if kind == "max" else (lambda a, b: T.min(a, b))
    if not nan_propagate:
        return pick
    return lambda a, b: T.Select(T.isnan(a), a, T.Select(T.isnan(b), b, pick(a, b)))


def working_dtype(source: str, target: str) -> str:
    """The dtype partial results have: sums of integers wrap in the result's, narrow floats use
    float32."""
    if is_float_dtype(source):
        return accumulator_dtype(source) if not target.startswith("float64") else "float64"
    return target
