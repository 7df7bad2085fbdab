"""Where matrix instructions expect the elements of a tile: in lanes, and in shared memory.

Kernels that write their matrix instructions by hand work on tiles of 16 x 16 results (8 x 8 for
float64): two instructions side by side. Functions take numbers or expressions.
"""

from __future__ import annotations

from typing import Any, Literal

from tilelang.errors import TraceError
from tilelang.ir.dtype import AnyDType, dtype
from tilelang.ir.expr import const_int
from tilelang.ir.span import user_span
from tilelang.layout import Layout

__all__ = [
    "get_ldmatrix_offset",
    "get_mma_micro_size",
    "get_swizzle_layout",
    "make_mma_swizzle_layout",
    "mma_store_index_map",
]

_dtype = dtype
_K_BITS = 256  # of an instruction along k
_ROW_BITS = 128  # of a row of a matrix of ldmatrix
_SWIZZLES = (128, 64, 32)


def get_mma_micro_size(dtype: AnyDType) -> tuple[int, int, int]:
    """Rows, columns and length along k of the smallest product of this element type.

    Examples
    --------
    >>> get_mma_micro_size("float16"), get_mma_micro_size("int8")
    ((16, 16, 16), (16, 16, 32))
    """
    bits = _dtype(dtype).bits
    return (8, 8, 4) if bits == 64 else (16, 16, _K_BITS // bits)


def get_ldmatrix_offset(
    matrix: Literal["A", "B"],
    row_idx: Any,
    col_idx: Any,
    stride: Any,
    dtype: AnyDType = "float16",
    transposed: bool = False,
) -> Any:
    """The element whose address a lane gives to ``ldmatrix`` of four matrices.

    Parameters
    ----------
    matrix : {"A", "B"}
    row_idx : int expression
        The lane.
    col_idx : int expression
        An element of its 16 bytes; 0 for the address of the row.
    stride : int expression
        Elements from one row of the tile in memory to the next.
    dtype : AnyDType
        8, 16 or 32 bits.
    transposed : bool
        Whether A lies with k along its rows, or B with k along its columns (row n holds a column
        of the product's B).

    Returns
    -------
    int expression
        In elements from the start of the tile.

    Raises
    ------
    TraceError
        For another matrix or width.
    """
    what = "T.get_ldmatrix_offset"
    bits = _dtype(dtype).bits
    if matrix not in ("A", "B") or bits not in (8, 16, 32):
        raise TraceError(
            f"{what}: expected matrix A or B of 8, 16 or 32 bits, found {matrix!r} of {dtype}",
            user_span(),
        )
    row, column = ldmatrix_position(row_idx, bits, transposed)
    return row * stride + column + col_idx


def ldmatrix_position(lane: Any, bits: int, transposed: bool) -> tuple[Any, Any]:
    """Row and column in memory of the 16 bytes whose address a lane gives."""
    width = _ROW_BITS // bits
    if transposed:
        return lane // 16 * 8 + lane % 8, lane % 16 // 8 * width
    return lane % 16, lane // 16 * width


def mma_store_index_map(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Row and column in a 16 x 16 result of a lane's element 0 to 7.

    Examples
    --------
    >>> mma_store_index_map(5, 3), mma_store_index_map(5, 4)
    ((9, 3), (1, 10))
    """
    row = local_id % 4 // 2 * 8 + thread_id // 4
    return row, local_id // 4 * 8 + thread_id % 4 * 2 + local_id % 2


def get_swizzle_layout(
    row_idx: Any, col_idx: Any, row_size: int, dtype: AnyDType, swizzle_bytes: int | None = None
) -> tuple[Any, Any]:
    """Where an element of a shared tile lies so that ``ldmatrix`` meets no bank conflict.

    Parameters
    ----------
    row_idx, col_idx : int expressions
    row_size : int
        Elements of a row; whole multiples of 32 bytes.
    dtype : AnyDType
    swizzle_bytes : {32, 64, 128}, optional
        How far 16-byte pieces move along the row; by default the largest that divides a row.

    Returns
    -------
    row, column

    Raises
    ------
    TraceError
        If the rows are no multiple of the swizzle.
    """
    bits = _dtype(dtype).bits
    row_bytes = row_size * bits // 8
    width = swizzle_bytes or next((w for w in _SWIZZLES if row_bytes % w == 0), 0)
    if width not in _SWIZZLES or row_bytes % width:
        raise TraceError(
            f"T.get_swizzle_layout: rows of {row_bytes} bytes with a swizzle of "
            f"{swizzle_bytes or 'any'} bytes; rows must be a multiple of it, and it 32, 64 or 128",
            user_span(),
        )
    piece = _ROW_BITS // bits
    pieces = width // 16
    block, within = col_idx // piece, col_idx % piece
    moved = block // pieces * pieces + ((block % pieces) ^ (row_idx % 8 // (8 // pieces)))
    return row_idx, moved * piece + within


def make_mma_swizzle_layout(shared_buf: Any, is_smooth: bool = False) -> Layout:
    """A layout for ``T.annotate_layout`` of a shared operand of matrix instructions.

    Parameters
    ----------
    shared_buf : buffer
        Its last two dimensions are a tile. Rows that are no multiple of 64 bytes stay in place.
    is_smooth : bool
        Keep row-major order, for memory whose rows are arranged already.
    """
    shape = [const_int(extent) for extent in shared_buf.shape]
    if len(shape) < 2 or None in shape:
        raise TraceError(
            f"T.make_mma_swizzle_layout: expected constant rows and columns, found {shape}",
            user_span(),
        )
    kind, row = str(shared_buf.dtype), int(shape[-1] or 0)
    if is_smooth or row * _dtype(kind).bits % 512:
        return Layout(shape, lambda *index: list(index))
    return Layout(
        shape, lambda *index: [*index[:-2], *get_swizzle_layout(index[-2], index[-1], row, kind)]
    )
