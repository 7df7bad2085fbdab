"""Small helpers over IR nodes that several evaluation rules need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from tvm import ir
from tvm.ir import prim

from tilelang.interpreter.machine import Machine
from tilelang.interpreter.numbers import Dtype, dtype_named

__all__ = ["Fn", "choose", "dtype_of", "lane_indices", "stack_lanes"]

#: What an expression or statement is turned into.
Fn: TypeAlias = Callable[[Machine], Any]


def dtype_of(expr: ir.Expr) -> Dtype:
    """The dtype of an expression; pointers, and calls without a value, are ``handle``."""
    name = str(expr.ty.dtype) if isinstance(expr.ty, ir.PrimType) else ""
    return dtype_named(name if name not in ("", "void") else "handle")


def lane_indices(indices: Sequence[ir.Expr], lane: int) -> list[ir.Expr]:
    """The indices of one lane of a vector access."""
    return [i.base + i.stride * lane if type(i) is prim.Ramp else i for i in indices]


def stack_lanes(lanes: Sequence[Any]) -> np.ndarray:
    """A vector value from the values of its lanes."""
    return np.stack(np.broadcast_arrays(*lanes), axis=-1)


def choose(condition: Any, a: Any, b: Any, whole_vectors: bool) -> Any:
    """``a`` where ``condition`` holds, else ``b``."""
    if np.ndim(condition) == 0:
        return a if condition else b
    return np.where(condition[..., None] if whole_vectors else condition, a, b)
