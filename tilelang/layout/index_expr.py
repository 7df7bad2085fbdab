"""Index expressions of layouts: made from Python functions, evaluated on whole index grids."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm_ffi
from tvm import ir, sym
from tvm import tirx as T
from tvm.ir import prim

from tilelang.errors import TraceTypeError

__all__ = ["IntArray", "as_index", "as_indices", "evaluate", "simplify", "substitute"]

IntArray = npt.NDArray[np.int64]


def _trunc_div(a: IntArray, b: IntArray) -> IntArray:
    quotient: IntArray = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -quotient, quotient)


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    prim.Add: operator.add,
    prim.Sub: operator.sub,
    prim.Mul: operator.mul,
    prim.FloorDiv: operator.floordiv,
    prim.FloorMod: operator.mod,
    prim.Div: _trunc_div,
    prim.Mod: lambda a, b: a - b * _trunc_div(a, b),
    prim.Min: np.minimum,
    prim.Max: np.maximum,
    prim.BitwiseAnd: operator.and_,
    prim.BitwiseOr: operator.or_,
    prim.BitwiseXor: operator.xor,
    prim.LShift: operator.lshift,
    prim.RShift: operator.rshift,
    prim.EQ: operator.eq,
    prim.NE: operator.ne,
    prim.LT: operator.lt,
    prim.LE: operator.le,
    prim.GT: operator.gt,
    prim.GE: operator.ge,
    prim.And: np.logical_and,
    prim.Or: np.logical_or,
}


def as_index(value: Any) -> ir.Expr:
    """Turn one result of a layout function into an int32 expression.

    Raises
    ------
    TraceTypeError
        If ``value`` is neither an integer nor an integer expression.
    """
    if isinstance(value, (int, np.integer)):
        return T.const(int(value), "int32")
    if hasattr(value, "asobject"):  # the lazy result of == on expressions
        value = value.asobject()
    if isinstance(value, ir.Expr) and isinstance(value.ty, ir.PrimType):
        dtype = str(value.ty.dtype)
        if dtype.startswith(("int", "uint", "bool")):
            return value if dtype.startswith("int") else value.astype("int32")
        raise TraceTypeError(f"a layout function must return integers, found a {dtype} expression")
    raise TraceTypeError(
        f"a layout function must return integer expressions, found {type(value).__name__}"
    )


def as_indices(value: Any) -> list[ir.Expr]:
    """Turn the result of a layout function, one index or a sequence of them, into a list."""
    is_sequence = isinstance(value, (Sequence, tvm_ffi.Array)) and not isinstance(value, str)
    return [as_index(item) for item in (value if is_sequence else [value])]


def evaluate(expr: ir.Expr, values: Mapping[ir.Var, IntArray]) -> IntArray:
    """Compute ``expr`` for whole arrays of variable values at once.

    Integers are 64 bits wide, so that index arithmetic does not wrap.

    Parameters
    ----------
    expr : Expr
        An integer expression over the keys of ``values``.
    values : mapping from Var to int64 array
        Arrays that broadcast against each other.

    Raises
    ------
    TraceTypeError
        If ``expr`` contains a variable without value or an operation no layout can use.
    """
    kind = type(expr)
    if (binary := _BINARY.get(kind)) is not None:
        return _as_int(binary(evaluate(expr.a, values), evaluate(expr.b, values)))
    if isinstance(expr, T.IntImm):
        return np.asarray(int(expr.value), dtype=np.int64)
    if isinstance(expr, ir.Var):
        if expr in values:
            return values[expr]
        raise TraceTypeError(f"a layout depends on '{expr.name}', which is not one of its indices")
    if isinstance(expr, (prim.Not, prim.BitwiseNot)):
        inner = evaluate(expr.a, values)
        return _as_int(np.logical_not(inner) if isinstance(expr, prim.Not) else ~inner)
    if isinstance(expr, prim.Cast):
        return evaluate(expr.value, values)
    if isinstance(expr, prim.Select):
        parts = (expr.condition, expr.true_value, expr.false_value)
    elif isinstance(expr, ir.Call) and expr.op.same_as(_IF_THEN_ELSE):
        parts = tuple(expr.args)
    else:
        raise TraceTypeError(f"a layout cannot use the operation in '{expr}'")
    condition, yes, no = (evaluate(part, values) for part in parts)
    return np.where(condition != 0, yes, no)


_IF_THEN_ELSE = ir.Op.get("prim.if_then_else")


def _as_int(value: Any) -> IntArray:
    return np.asarray(value).astype(np.int64, copy=False)


def substitute(expr: ir.Expr, values: Mapping[ir.Var, ir.Expr]) -> ir.Expr:
    """Replace variables of ``expr``."""
    return tvm_ffi.structural_map(expr, (ir.Var, lambda var: values.get(var, var)))


def simplify(expr: ir.Expr, extents: Mapping[ir.Var, int]) -> ir.Expr:
    """Simplify ``expr`` knowing that each variable runs from 0 up to its extent."""
    analyzer = sym.Analyzer()
    for var, extent in extents.items():
        analyzer.bind(var, ir.Range(0, extent))
    return analyzer.simplify(expr)
