"""Temporaries of computed data, hidden from TVM's analyzer."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm_ffi import structural_map, structural_walk

from tilelang.transform.numerics import ops
from tilelang.transform.numerics.dtypes import element, is_float

__all__ = ["holds_computed_data", "keep_temporaries"]


def keep_temporaries(func: T.PrimFunc) -> T.PrimFunc:
    """Hide the values of bound temporaries that hold computed data.

    The analyzer inlines a pure temporary wherever it is used, and temporaries into each other: a
    dozen assignments that use their predecessor twice take minutes. Index temporaries stay visible.

    Before: ``t = x * x + 1.0``. After: ``t = tl.num.keep(x * x + 1.0)``.
    """

    def on_bind(bind: T.Bind) -> T.Stmt:
        if not holds_computed_data(bind):
            return bind
        value = ops.call("keep", element(bind.value), bind.value, span=bind.span)
        return T.Bind(bind.var, value, bind.span)

    return structural_map(func, (T.Bind, on_bind))


def holds_computed_data(bind: T.Bind) -> bool:
    """Whether the bound value is a float, or computed by a numeric operator."""
    value = bind.value
    if not isinstance(bind.var.ty, ir.PrimType):
        return False
    if isinstance(value, (ir.Var, ir.TensorLoad, prim.IntImm, prim.FloatImm)):
        return False
    if is_float(element(value)):
        return True
    found: list[Any] = []
    structural_walk(value, (ir.Call, lambda c: found.append(c) if ops.is_numeric(c) else None))
    return bool(found)
