"""Plain loops: what a C compiler vectorises well and translates fast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.cpu.op.gemm.microkernel import Accumulator
from tilelang.cpu.op.gemm.operand import Operand
from tilelang.cpu.op.loops import alloc, nest, serial

__all__ = ["row_updates"]


def row_updates(a: Operand, b: Operand, c: Accumulator) -> Iterator[T.Stmt]:
    """A row of the accumulator is updated with one element of A at a time.

    Register blocks take a C compiler minutes.
    """
    stmts: list[T.Stmt] = []
    if a.dtype != c.dtype:
        a = a.copied("a_copy", c.dtype, a.k, stmts)
    pack = alloc("b_pack", [b.k, b.size], c.dtype)
    row = alloc("row", [c.n], c.dtype)
    stmts += [
        T.AllocBuffer(pack),
        T.AllocBuffer(row),
        nest([b.k, b.size], lambda at: T.BufferStore(pack, b.at(at[0], at[1], c.dtype), at), None),
    ]
    yield from stmts

    def one(at: list[ir.Expr]) -> T.Stmt:
        i = at[0]
        start = T.const(0, c.dtype)
        left = T.Var("left", ir.PrimType(c.dtype))

        def update(k: Any) -> T.Stmt:
            step = nest(
                [c.n], lambda j: T.BufferStore(row, row[j[0]] + left * pack[k, j[0]], j), None
            )
            return T.SeqStmt([T.Bind(left, a.at(k, i)), step])

        begin = nest(
            [c.n], lambda j: T.BufferStore(row, start if c.clear else c.at(i, j[0]), j), None
        )
        end = nest([c.n], lambda j: c.store(i, j[0], row[j[0]]), None)
        return T.SeqStmt([begin, serial(b.k, update), end])

    yield nest([c.m], one, None, parallel=False)
