"""Elementary functions as numeric operators, which have formulas."""

from __future__ import annotations

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map

from tilelang.errors import UnsupportedError
from tilelang.transform.numerics import ops
from tilelang.transform.numerics.dtypes import element
from tilelang.transform.numerics.functions import FLOAT_FUNCTIONS, INT_FUNCTIONS, op_name

__all__ = ["lower_math"]

_WIDE = ("float32", "float64")


def lower_math(func: T.PrimFunc) -> T.PrimFunc:
    """Replace elementary functions by numeric operators, which expand to vectorisable formulas.

    Raises
    ------
    UnsupportedError
        For a function of a dtype that no formula covers.

    Before: ``B[i] = exp(A[i])``. After: ``B[i] = tl.num.exp(A[i])``.
    """

    def on_call(call: ir.Call) -> ir.Expr:
        name = op_name(call)
        if name in INT_FUNCTIONS:
            return ops.call(INT_FUNCTIONS[name], element(call), *call.args, span=call.span)
        numeric = FLOAT_FUNCTIONS.get(name)
        if numeric is None:
            return call
        dtype = element(call.args[0])
        if numeric == "nextafter" and dtype in ("bfloat16", "float16"):
            numeric = "nextafter.bfloat16" if dtype == "bfloat16" else numeric
        elif dtype not in _WIDE:
            function = name.rpartition(".")[2]
            raise UnsupportedError(
                f"T.{function} is not available for {dtype} on the CPU; cast to float32", call.span
            )
        return ops.call(numeric, element(call), *call.args, span=call.span)

    return structural_map(func, (ir.Call, on_call))
