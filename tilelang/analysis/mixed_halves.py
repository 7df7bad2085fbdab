"""Operations on a float16 and a bfloat16 in code that was not traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_walk

from tilelang.errors import SemanticError
from tilelang.ir.expr import dtype_of

__all__ = ["check_mixed_halves"]

_BINARY = (
    *(T.Add, T.Sub, T.Mul, T.Div, T.Min, T.Max),
    *(T.EQ, T.NE, T.LT, T.LE, T.GT, T.GE),
)
_EXPRESSIONS: dict[type, Callable[[Any], tuple[ir.Expr, ...]]] = {
    T.BufferStore: lambda stmt: (stmt.value, *stmt.indices),
    T.Bind: lambda stmt: (stmt.value,),
    T.Evaluate: lambda stmt: (stmt.value,),
    T.IfThenElse: lambda stmt: (stmt.condition,),
    T.While: lambda stmt: (stmt.condition,),
}


def check_mixed_halves(func: T.PrimFunc) -> None:
    """Refuse what a plain Python helper makes of a float16 and a bfloat16.

    In traced code they meet in float32. A helper that is not traced leaves the operator to TVM,
    which converts the right operand to the type of the left one: from bfloat16 to float16 that
    overflows. Only operators of traced code have a place in the source, which tells the two apart.

    Raises
    ------
    SemanticError
        At the statement that uses the result.
    """

    def on_stmt(stmt: Any) -> None:
        def on_binary(node: Any) -> None:
            if node.span is None and (_converted(node.a) or _converted(node.b)):
                raise SemanticError(
                    "a function that is not traced combines a float16 and a bfloat16; decorate it "
                    "with @T.macro, where they meet in float32, or convert one with T.cast",
                    stmt.span,
                )

        for expr in _EXPRESSIONS[type(stmt)](stmt):
            structural_walk(expr, (_BINARY, on_binary))

    structural_walk(func.body, (tuple(_EXPRESSIONS), on_stmt))


def _converted(operand: ir.Expr) -> bool:
    if not isinstance(operand, T.Cast) or operand.span is not None:
        return False
    return {dtype_of(operand), dtype_of(operand.value)} == {"float16", "bfloat16"}
