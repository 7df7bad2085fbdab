"""``T.gemm``: a tile matrix product accumulated into a tile, and its warp policy."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm_ffi.dataclasses import py_class

from tilelang.errors import TraceError
from tilelang.ir import arith, builder
from tilelang.ir.expr import const_int, dtype_of, is_float_dtype, is_int_dtype
from tilelang.ir.op.base import Operand, TileAttrs, TileCall, TileOp
from tilelang.ir.op.fill import clear
from tilelang.ir.region import region_extents, to_region

__all__ = ["GEMM", "GemmAttrs", "GemmWarpPolicy", "clear_now", "gemm", "matrix_shape"]


class GemmWarpPolicy(IntEnum):
    """How the warps of a block share an output tile. A hint: it never changes the result."""

    Square = 0
    FullRow = 1
    FullCol = 2

    def is_square(self) -> bool:
        """Whether warps are spread over both dimensions."""
        return self is GemmWarpPolicy.Square

    def is_full_row(self) -> bool:
        """Whether all warps are spread along the rows (M)."""
        return self is GemmWarpPolicy.FullRow

    def is_full_col(self) -> bool:
        """Whether all warps are spread along the columns (N)."""
        return self is GemmWarpPolicy.FullCol

    def compute_warp_partition(self, m: int, n: int, num_warps: int) -> tuple[int, int]:
        """Split ``num_warps`` into (along M, along N) for an ``m`` x ``n`` output tile.

        A warp owns at least 16 rows and 8 columns, the smallest tensor-core tile.

        Raises
        ------
        TraceError
            If no split gives every warp a full share.
        """
        fits = [
            (rows, num_warps // rows)
            for rows in range(1, num_warps + 1)
            if num_warps % rows == 0 and m % (rows * 16) == 0 and n % (num_warps // rows * 8) == 0
        ]
        if not fits:
            raise TraceError(f"no way to share a {m}x{n} tile among {num_warps} warps")
        if self is GemmWarpPolicy.FullRow:
            return max(fits)
        if self is GemmWarpPolicy.FullCol:
            return min(fits)
        return min(fits, key=lambda split: (abs(m / split[0] - n / split[1]), -split[0]))


@py_class("tl.op.GemmAttrs")
class GemmAttrs(TileAttrs):
    """Transposition flags, and hints that never change the result."""

    transpose_A: bool = False
    transpose_B: bool = False
    policy: int = 0
    clear_accum: bool = False
    k_pack: int = 1


def _reference(ctx: Any, call: TileCall) -> None:
    attrs, acc = call.attrs, call.operand("C")
    dtype = ctx.dtype(acc)
    wide = np.int64 if is_int_dtype(dtype) else np.float64
    a = _matrix(ctx.read(call.operand("A"))).astype(wide)
    b = _matrix(ctx.read(call.operand("B"))).astype(wide)
    product = (a.T if attrs.transpose_A else a) @ (b.T if attrs.transpose_B else b)
    shape = [ctx.scalar(extent) for extent in region_extents(acc)]
    if not attrs.clear_accum:
        product = product + _matrix(ctx.read(acc)).astype(wide)
    ctx.write(acc, ctx.cast(product, dtype).reshape(shape))


def _matrix(array: np.ndarray) -> np.ndarray:
    return array.reshape(array.shape[-2:])


GEMM = TileOp(
    "gemm",
    GemmAttrs,
    (
        Operand("A", "r"),
        Operand("B", "r"),
        Operand("C", "rw"),
        Operand("mbar", "rw", kind="expr", optional=True),
    ),
    _reference,
)


def gemm(
    A: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: Any = False,
    k_pack: int = 1,
    mbar: Any = None,
    annotations: Mapping[str, Any] | None = None,
) -> None:
    """Multiply two tiles into an accumulator: ``C += op(A) @ op(B)``.

    Parameters
    ----------
    A : buffer or slice, (M, K), or (K, M) with ``transpose_A``
        Leading dimensions must have extent 1. Shared or fragment.
    B : buffer or slice, (K, N), or (N, K) with ``transpose_B``
    C : buffer or slice, (M, N)
        Accumulator; products and sums are formed in its dtype.
    policy : GemmWarpPolicy
        How warps share the tile, a hint.
    clear_accum : bool or expression
        Overwrite instead of accumulate, such as ``k == 0``.
    k_pack, mbar, annotations
        Options of particular GPUs.

    Raises
    ------
    TraceError
        If ranks, shapes or dtypes do not fit.

    Examples
    --------
    >>> T.gemm(A_shared, B_shared, C_local, transpose_B=True)  # doctest: +SKIP
    """
    span = builder.user_span()
    del annotations
    regions = {
        name: to_region(value, what=f"T.gemm: {name}")
        for name, value in (("A", A), ("B", B), ("C", C))
    }
    shapes = {name: matrix_shape(name, region, span) for name, region in regions.items()}
    m, k = shapes["A"][::-1] if transpose_A else shapes["A"]
    k2, n = shapes["B"][::-1] if transpose_B else shapes["B"]
    for label, left, right in (
        ("K of A and B", k, k2),
        ("M of A and C", m, shapes["C"][0]),
        ("N of B and C", n, shapes["C"][1]),
    ):
        if left != right:
            raise TraceError(
                f"T.gemm: {label} differ: {left} and {right} "
                f"(A {shapes['A']}{' transposed' if transpose_A else ''}, "
                f"B {shapes['B']}{' transposed' if transpose_B else ''}, C {shapes['C']})",
                span,
            )
    _check_dtypes(regions, span)
    if k_pack not in (1, 2):
        raise TraceError(f"T.gemm: k_pack must be 1 or 2, found {k_pack}", span)
    attrs = {
        "transpose_A": bool(transpose_A),
        "transpose_B": bool(transpose_B),
        "policy": int(GemmWarpPolicy(policy)),
        "clear_accum": clear_now(regions["C"], clear_accum),
        "k_pack": int(k_pack),
    }
    GEMM.emit(attrs, **regions, mbar=mbar)


def clear_now(accumulator: ir.TensorRegion, condition: Any) -> bool:
    """Whether to overwrite ``accumulator``; a condition of the run time clears it here instead."""
    known = const_int(condition)
    if known is not None or not isinstance(condition, ir.Expr):
        return bool(condition if known is None else known)
    trace = builder.current("T.gemm")
    with trace.block() as body:
        clear(accumulator)
    trace.emit(
        T.IfThenElse(
            arith.truth(condition, "T.gemm: clear_accum"),
            T.stmt_seq(*body),
            None,
            builder.user_span(),
        )
    )
    return False


def matrix_shape(name: str, region: ir.TensorRegion, span: ir.Span | None) -> tuple[int, int]:
    """The two matrix dimensions of a GEMM operand, which must be constants.

    Raises
    ------
    TraceError
        If the operand has fewer than two dimensions, a leading extent other than 1, or a symbolic
        extent.
    """
    extents = [const_int(extent) for extent in region_extents(region)]
    shown = f"({', '.join(str(extent) for extent in region_extents(region))})"
    if len(extents) < 2:
        raise TraceError(f"T.gemm: {name} must have at least 2 dimensions, found {shown}", span)
    if any(extent != 1 for extent in extents[:-2]):
        raise TraceError(
            f"T.gemm: the leading dimensions of {name} must have extent 1, found {shown}; "
            f"slice it, for example {region.source.name}[0, :, :]",
            span,
        )
    rows, cols = extents[-2:]
    if rows is None or cols is None:
        raise TraceError(
            f"T.gemm: the tile of {name} must have constant extents, found {shown}; "
            "allocate the tile with compile-time sizes and guard the copies instead",
            span,
        )
    return rows, cols


def _check_dtypes(regions: Mapping[str, ir.TensorRegion], span: ir.Span | None) -> None:
    a, b, c = (dtype_of(regions[name]) for name in "ABC")
    both_fp8 = a.startswith("float8") and b.startswith("float8")
    both_small_ints = is_int_dtype(a) and is_int_dtype(b) and a.lstrip("u") == b.lstrip("u")
    if a != b and not both_fp8 and not both_small_ints:
        raise TraceError(f"T.gemm: A is {a} but B is {b}; cast one of them first", span)
    if is_float_dtype(a) != is_float_dtype(c):
        wider = "float32" if is_float_dtype(a) else "int32"
        raise TraceError(
            f"T.gemm: cannot accumulate {a} operands into C of {c}; make C {wider}", span
        )
