"""2:4 sparse products become dense ones: the sparse operand is decompressed into a fragment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import DataType, ir
from tvm import tirx as T
from tvm_ffi import structural_map

from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.op import TileCall
from tilelang.ir.op.gemm_sp import dense_product, sparsity_group
from tilelang.ir.region import region_extents
from tilelang.transform.loops import load, nest

__all__ = ["expand_sparse_products"]

_METADATA_BITS = 4


def expand_sparse_products(func: T.PrimFunc) -> T.PrimFunc:
    """Replace every ``T.gemm_sp`` by a nest and a ``T.gemm``.

    Before: ``T.gemm_sp(A, E, B, C)``. After: ``for i, k in T.parallel(64, 32): dense[i, k] =
    select(high(E) == k % 4, A[i, k // 4 * 2 + 1], ...)``, ``T.gemm(dense, B, C)``.
    """

    def expand(stmt: T.Evaluate) -> Any:
        call = TileCall.of(stmt)
        return _dense(call) if call is not None and call.name == "gemm_sp" else stmt

    return func.with_body(structural_map(func.body, (T.Evaluate, expand)))


def _dense(call: TileCall) -> T.Stmt:
    attrs, a = call.attrs, call.operand("A")
    dtype = dtype_of(a)
    rows, halves = (const_int(extent) or 0 for extent in region_extents(a)[-2:])
    if attrs.transpose_A:
        rows, halves = halves, rows
    dense = T.decl_buffer(
        [rows, halves * 2], dtype, "dense", scope="local.fragment", layout=None,
        data_alignment=16, span=call.span,
    )  # fmt: skip
    element = _elements(call, dtype)

    def body(at: list[ir.Expr]) -> T.Stmt:
        return T.BufferStore(dense, element(*at), at, call.span)

    product = dense_product(call, dense)
    return T.SeqStmt(
        [T.AllocBuffer(dense), nest([rows, halves * 2], body, call.span), product], call.span
    )


def _elements(call: TileCall, dtype: str) -> Callable[[Any, Any], ir.Expr]:
    """The dense element at ``(i, k)``: one that was kept, or zero."""
    attrs, e = call.attrs, call.operand("E")
    kept = _reader(call.operand("A"), attrs.transpose_A)
    word = _reader(e, attrs.transpose_E)
    group = sparsity_group(dtype)
    groups_a_word = DataType(dtype_of(e)).bits // _METADATA_BITS
    zero = T.const(0, dtype)

    def element(i: Any, k: Any) -> ir.Expr:
        number, position = k // group, k % group
        shift = (number % groups_a_word * _METADATA_BITS).astype("uint32")
        code = T.shift_right(word(i, number // groups_a_word).astype("uint32"), shift)
        low = T.bitwise_and(code, T.const(3, "uint32")).astype("int32")
        code = T.shift_right(code, T.const(2, "uint32"))
        high = T.bitwise_and(code, T.const(3, "uint32")).astype("int32")
        if group == 2:  # positions count halves of an element
            return T.Select(T.EQ(low // 2, position), kept(i, number), zero)
        first = T.Select(T.EQ(low, position), kept(i, number * 2), zero)
        return T.Select(T.EQ(high, position), kept(i, number * 2 + 1), first)

    return element


def _reader(region: ir.TensorRegion, transposed: bool) -> Callable[[Any, Any], ir.Expr]:
    lead = [T.const(0, "int32")] * (len(region_extents(region)) - 2)
    return lambda p, q: load(region, [*lead, *((q, p) if transposed else (p, q))])
