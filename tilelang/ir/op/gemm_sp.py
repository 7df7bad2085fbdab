"""``T.gemm_sp``: a tile product whose left operand is stored with 2:4 structured sparsity.

Of every group of K positions half are kept: two of four for 8- and 16-bit elements, one of two for
32-bit elements. Four bits of metadata a group say which: two 2-bit positions, the lower bits
first; for 32-bit elements the positions count 16-bit halves, so ``0b0100`` keeps element 0 and
``0b1110`` element 1 (PTX ISA, sparse ``mma`` metadata). An element of E holds the metadata of
consecutive groups from its low bits up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm import DataType, ir
from tvm import tirx as T
from tvm_ffi.dataclasses import py_class

from tilelang.errors import TraceError
from tilelang.ir import builder
from tilelang.ir.expr import dtype_of, is_float_dtype
from tilelang.ir.op.base import Operand, TileAttrs, TileCall, TileOp
from tilelang.ir.op.gemm import GEMM, GemmWarpPolicy, clear_now, matrix_shape
from tilelang.ir.op.reduce import wide_dtype
from tilelang.ir.region import region_extents, to_region

__all__ = ["GEMM_SP", "GemmSPAttrs", "dense_product", "gemm_sp", "sparsity_group"]

_METADATA_BITS = 4


@py_class("tl.op.GemmSPAttrs")
class GemmSPAttrs(TileAttrs):
    """Transposition flags, and hints that never change the result."""

    transpose_A: bool = False
    transpose_E: bool = False
    transpose_B: bool = False
    policy: int = 0
    clear_accum: bool = False


def sparsity_group(dtype: str) -> int:
    """Length of a group along K: 2 for 32-bit elements, 4 for narrower ones."""
    return 2 if DataType(dtype).bits == 32 else 4


def _expand(kept: np.ndarray, metadata: np.ndarray, bits: int, group: int) -> np.ndarray:
    """The dense (M, K) matrix of kept elements (M, K/2) and metadata (M, K / elements per word)."""
    words = metadata.astype(np.int64) & ((1 << bits) - 1)
    shifts = np.arange(bits // _METADATA_BITS) * _METADATA_BITS
    codes = (words[:, :, None] >> shifts) & 15
    codes = codes.reshape(kept.shape[0], -1)
    dense = np.zeros((kept.shape[0], kept.shape[1] * 2), kept.dtype)
    rows = np.arange(kept.shape[0])[:, None]
    base = np.arange(codes.shape[1])[None, :] * group
    if group == 2:
        dense[rows, base + ((codes & 3) >> 1)] = kept
        return dense
    dense[rows, base + (codes & 3)] = kept[:, 0::2]
    dense[rows, base + (codes >> 2)] = kept[:, 1::2]
    return dense


def _reference(ctx: Any, call: TileCall) -> None:
    attrs, acc = call.attrs, call.operand("C")
    source = ctx.dtype(call.operand("A"))
    wide = wide_dtype(ctx.dtype(acc))

    def matrix(name: str, transposed: bool) -> np.ndarray:
        array = ctx.read(call.operand(name))
        array = array.reshape(array.shape[-2:])
        return array.T if transposed else array

    kept: np.ndarray = matrix("A", attrs.transpose_A).astype(wide)
    bits = DataType(ctx.dtype(call.operand("E"))).bits
    dense = _expand(kept, matrix("E", attrs.transpose_E), bits, sparsity_group(source))
    product = dense @ matrix("B", attrs.transpose_B).astype(wide)
    if not attrs.clear_accum:
        product = product + matrix("C", False).astype(wide)
    shape = [ctx.scalar(extent) for extent in region_extents(acc)]
    ctx.write(acc, ctx.cast(product, ctx.dtype(acc)).reshape(shape))


GEMM_SP = TileOp(
    "gemm_sp",
    GemmSPAttrs,
    (Operand("A", "r"), Operand("E", "r"), Operand("B", "r"), Operand("C", "rw")),
    _reference,
)


def dense_product(call: TileCall, dense: ir.Var) -> T.Evaluate:
    """The ``T.gemm`` that ``call`` is once its sparse operand is decompressed into ``dense``."""
    attrs = call.attrs
    hints = {
        "transpose_B": attrs.transpose_B,
        "policy": attrs.policy,
        "clear_accum": attrs.clear_accum,
    }
    b, c = call.operand("B"), call.operand("C")
    return GEMM.call(call.span, hints, A=to_region(dense), B=b, C=c)


def gemm_sp(
    A_sparse: Any,
    E: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_E: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: Any = False,
    k_pack: int = 1,
    wg_wait: int = 0,
    annotations: Mapping[str, Any] | None = None,
) -> None:
    """Multiply a 2:4 sparse tile with a dense one: ``C += decompress(op(A), op(E)) @ op(B)``.

    Parameters
    ----------
    A_sparse : buffer or slice, (M, K/2), or (K/2, M) with ``transpose_A``
        The kept elements.
    E : buffer or slice, (M, K/f), or (K/f, M) with ``transpose_E``
        Metadata of dtype int8, int16 or int32 (or unsigned). ``f`` is (bits / 4) times the group:
        4 for 8- and 16-bit elements, 2 for 32-bit ones.
    B : buffer or slice, (K, N), or (N, K) with ``transpose_B``
    C : buffer or slice, (M, N)
        Accumulator.
    policy, k_pack, wg_wait, annotations
        Hints of particular GPUs.

    Raises
    ------
    TraceError
        If shapes or dtypes do not fit.
    """
    del k_pack, wg_wait, annotations
    span = builder.user_span()
    given = {"A": A_sparse, "E": E, "B": B, "C": C}
    regions = {n: to_region(v, what=f"T.gemm_sp: {n}") for n, v in given.items()}
    shapes = {n: matrix_shape(n, region, span) for n, region in regions.items()}
    _check_shapes(regions, shapes, (transpose_A, transpose_E, transpose_B), span)
    attrs = {
        "transpose_A": bool(transpose_A),
        "transpose_E": bool(transpose_E),
        "transpose_B": bool(transpose_B),
        "policy": int(GemmWarpPolicy(policy)),
        "clear_accum": clear_now(regions["C"], clear_accum),
    }
    GEMM_SP.emit(attrs, **regions)


def _check_shapes(
    regions: Mapping[str, ir.TensorRegion],
    shapes: Mapping[str, tuple[int, int]],
    transposed: tuple[bool, bool, bool],
    span: ir.Span | None,
) -> None:
    dtypes = {name: dtype_of(region) for name, region in regions.items()}
    if not dtypes["E"].removeprefix("u").startswith("int"):
        raise TraceError(f"T.gemm_sp: E must be an integer tile, found {dtypes['E']}", span)
    if dtypes["A"] != dtypes["B"] or is_float_dtype(dtypes["A"]) != is_float_dtype(dtypes["C"]):
        raise TraceError(
            f"T.gemm_sp: A is {dtypes['A']}, B {dtypes['B']} and C {dtypes['C']}; A and B must "
            "have one dtype and the accumulator must be of its kind",
            span,
        )
    (m, half_k), (m_e, words), (k, n) = (
        shapes[name][::-1] if flip else shapes[name]
        for name, flip in zip("AEB", transposed, strict=True)
    )
    factor = DataType(dtypes["E"]).bits // _METADATA_BITS * sparsity_group(dtypes["A"])
    fits = half_k * 2 == k and words * factor == k and m == m_e and shapes["C"] == (m, n)
    if not fits:
        raise TraceError(
            f"T.gemm_sp: the tiles do not fit: A {(m, half_k)} is (M, K/2), E {(m_e, words)} is "
            f"(M, K/{factor}), B {(k, n)} is (K, N) and C {shapes['C']} is (M, N), transposed",
            span,
        )
