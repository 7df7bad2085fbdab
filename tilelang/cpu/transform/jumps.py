"""Spell ``break`` and ``continue`` the way TVM's LLVM code generator takes them."""

from __future__ import annotations

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map

__all__ = ["lower_jumps"]


def lower_jumps(func: T.PrimFunc) -> T.PrimFunc:
    """Replace the jump statements by calls; the code generator has no rule for the statements.

    Before: ``break``. After: ``T.break_loop()``.
    """

    def call(name: str, span: ir.Span | None) -> T.Stmt:
        return T.Evaluate(ir.Call(ir.Op.get(name), [], ret_ty="void", span=span), span)

    return func.with_body(
        structural_map(
            func.body,
            [
                (T.Break, lambda stmt: call("tirx.break_loop", stmt.span)),
                (T.Continue, lambda stmt: call("tirx.continue_loop", stmt.span)),
            ],
        )
    )
