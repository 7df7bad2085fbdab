"""Body of ``T.gemm``."""

from __future__ import annotations

from tvm import ir
from tvm import tirx as T

from tilelang.cpu.op.loops import Lowering, load, nest, serial, store
from tilelang.ir.expr import dtype_of
from tilelang.ir.op import TileCall
from tilelang.ir.region import region_extents

__all__ = ["lower_gemm"]


def lower_gemm(call: TileCall, ctx: Lowering) -> T.Stmt:
    """Rank-1 updates: a row of the accumulator is updated with one element of A at a time."""
    attrs, a, b, c = call.attrs, call.operand("A"), call.operand("B"), call.operand("C")
    rows, cols = region_extents(c)[-2:]
    depth = region_extents(a)[-2 if attrs.transpose_A else -1]
    dtype = dtype_of(c)

    def lead(region: ir.TensorRegion) -> list[ir.Expr]:
        return [T.const(0, "int32")] * (len(region_extents(region)) - 2)

    def update(i: ir.Expr, k: ir.Expr) -> T.Stmt:
        left = load(a, [*lead(a), *((k, i) if attrs.transpose_A else (i, k))], dtype)

        def one(at: list[ir.Expr]) -> T.Stmt:
            j = at[0]
            right = load(b, [*lead(b), *((j, k) if attrs.transpose_B else (k, j))], dtype)
            where = [*lead(c), i, j]
            return store(c, where, load(c, where) + left * right, call.span)

        return nest([cols], one, call.span)

    product = nest([rows], lambda at: serial(depth, lambda k: update(at[0], k)), call.span, parallel=False)
    if not attrs.clear_accum:
        return product
    zero = T.const(0, dtype)
    clear = nest([rows, cols], lambda at: store(c, [*lead(c), *at], zero, call.span), call.span)
    return T.SeqStmt([clear, product])
