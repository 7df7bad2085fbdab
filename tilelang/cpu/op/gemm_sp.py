"""Body of ``T.gemm_sp``: decompress the sparse operand, then multiply densely."""

from __future__ import annotations

from collections.abc import Callable

from tvm import DataType, ir
from tvm import tirx as T

from tilelang.cpu.op.gemm import lower_gemm
from tilelang.cpu.op.loops import Lowering, alloc, load, nest
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.op import TileCall
from tilelang.ir.op.gemm_sp import dense_product, sparsity_group
from tilelang.ir.region import region_extents

__all__ = ["lower_gemm_sp"]


def lower_gemm_sp(call: TileCall, ctx: Lowering) -> T.Stmt:
    """Scatter the kept elements into a dense temporary and multiply it."""
    attrs, a, e = call.attrs, call.operand("A"), call.operand("E")
    dtype = dtype_of(a)
    rows, halves = (const_int(extent) or 0 for extent in region_extents(a)[-2:])
    if attrs.transpose_A:
        rows, halves = halves, rows
    dense = alloc("dense", [rows, halves * 2], dtype)
    group = sparsity_group(dtype)
    groups_a_word = DataType(dtype_of(e)).bits // 4
    kept_of = _reader(a, attrs.transpose_A)
    word_of = _reader(e, attrs.transpose_E)

    def scatter(at: list[ir.Expr]) -> T.Stmt:
        i, g = at
        bits = "uint32"
        shift = (g % groups_a_word * 4).astype(bits)
        code = T.bitwise_and(
            T.shift_right(word_of(i, g // groups_a_word).astype(bits), shift), T.const(15, bits)
        )
        low = T.bitwise_and(code, T.const(3, bits)).astype("int32")
        high = T.shift_right(code, T.const(2, bits)).astype("int32")
        if group == 2:
            return T.BufferStore(dense, kept_of(i, g), [i, g * 2 + low // 2], call.span)
        return T.SeqStmt(
            [
                T.BufferStore(dense, kept_of(i, g * 2), [i, g * 4 + low], call.span),
                T.BufferStore(dense, kept_of(i, g * 2 + 1), [i, g * 4 + high], call.span),
            ]
        )

    zero = T.const(0, dtype)
    product = dense_product(call, dense)
    dense_call = TileCall.of(product)
    assert dense_call is not None
    return T.SeqStmt(
        [
            T.AllocBuffer(dense),
            nest([rows, halves * 2], lambda at: T.BufferStore(dense, zero, at), call.span),
            nest([rows, halves * 2 // group], scatter, call.span, parallel=False),
            lower_gemm(dense_call, ctx),
        ]
    )


def _reader(region: ir.TensorRegion, transposed: bool) -> Callable[[ir.Expr, ir.Expr], ir.Expr]:
    lead = [T.const(0, "int32")] * (len(region_extents(region)) - 2)
    return lambda p, q: load(region, [*lead, *((q, p) if transposed else (p, q))])
