"""Body of ``T.gemm``.

LLVM gets a register-blocked micro-kernel over packed columns of B (:mod:`.microkernel`), with the
dot-product instructions of the CPU where they fit the dtypes (:mod:`.dot`) and multiply-adds in the
accumulator's dtype otherwise. The C printer gets plain loops (:mod:`.rows`).
"""

from __future__ import annotations

from tvm import ir
from tvm import tirx as T

from tilelang.cpu.op.gemm.dot import Dot, dot_instruction
from tilelang.cpu.op.gemm.microkernel import Accumulator, blocked_product
from tilelang.cpu.op.gemm.operand import operand
from tilelang.cpu.op.gemm.rows import row_updates
from tilelang.cpu.op.loops import Lowering, accumulator_dtype, load, store
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.op import TileCall
from tilelang.ir.region import region_extents

__all__ = ["lower_gemm"]


def lower_gemm(call: TileCall, ctx: Lowering) -> T.Stmt:
    """Accumulate ``op(A) @ op(B)`` into C; narrow floats accumulate in float32."""
    attrs = call.attrs
    a = operand(call.operand("A"), k_inner=not attrs.transpose_A)
    b = operand(call.operand("B"), k_inner=attrs.transpose_B)
    c = _accumulator(call)
    if not ctx.blocked:
        return T.stmt_seq(*row_updates(a, b, c))
    dot = dot_instruction(a.dtype, b.dtype, c.dtype, ctx.features)
    return _with_source(T.stmt_seq(*blocked_product(a, b, c, dot, ctx)), dot)


def _accumulator(call: TileCall) -> Accumulator:
    region = call.operand("C")
    extents = region_extents(region)
    m, n = (const_int(extent) for extent in extents[-2:])
    assert m is not None and n is not None, "T.gemm checks that its tiles are constant"
    dtype = accumulator_dtype(dtype_of(region))
    lead = [T.const(0, "int32")] * (len(extents) - 2)

    def at(i: ir.Expr, j: ir.Expr) -> ir.Expr:
        return load(region, [*lead, i, j], dtype)

    def put(i: ir.Expr, j: ir.Expr, value: ir.Expr) -> T.Stmt:
        return store(region, [*lead, i, j], value, call.span)

    return Accumulator(m, n, dtype, at, put, call.attrs.clear_accum)


def _with_source(body: T.Stmt, dot: Dot | None) -> T.Stmt:
    """``body`` with the LLVM IR that its instruction needs."""
    if dot is None or not dot.source:
        return body
    node = T.const(0, "int32")
    return T.AttrStmt(node, "pragma_import_llvm", ir.StringImm(dot.source), body)
