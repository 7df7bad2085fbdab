"""The numeric contract on CUDA: what C++ and our headers do not keep by themselves."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm_ffi import structural_map

from tilelang.transform.numerics import (
    keep_temporaries,
    legalize_minmax,
    ops,
    promote_narrow,
    unpack_pairs,
    wrap_data_integers,
)
from tilelang.transform.numerics.dtypes import element, is_float, is_int

__all__ = ["NATIVE_FLOATS", "legalize_numerics"]

#: Short floats with arithmetic of their own; others are computed in float32.
NATIVE_FLOATS = frozenset({"float16", "bfloat16"})
_FLOATS = ("float32", "float64", *sorted(NATIVE_FLOATS))


def legalize_numerics(func: T.PrimFunc) -> T.PrimFunc:
    """Express the numeric contract in a thread program. Runs before anything simplifies.

    Short floats keep their type: the printer writes conversions and functions as calls of our
    headers, which round once.

    Before: ``B[i] = max(A[i] + 1, 0)`` on int32, ``C[i] = X[i] * X[i]`` on float8_e4m3fn. After:
    ``B[i] = max(tl.num.add(A[i], 1), 0)``, ``C[i] = float8_e4m3fn(float32(X[i]) *
    float32(X[i]))``.
    """
    func = promote_narrow(unpack_pairs(func, dot_products=False), native=NATIVE_FLOATS)
    func = wrap_data_integers(func)
    func = legalize_minmax(func, floats=_FLOATS)
    return keep_temporaries(structural_map(func, (prim.Cast, _hide_truncation)))


def _hide_truncation(node: Any) -> ir.Expr:
    """Float to integer saturates, which TVM does not know."""
    target = element(node)
    if is_float(element(node.value)) and is_int(target):
        return ops.call("float_to_int", target, node.value, span=node.span)
    return node
