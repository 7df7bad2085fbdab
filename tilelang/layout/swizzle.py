"""Layouts that are functions of a tile's shape and element size alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm

from tilelang.errors import LayoutError
from tilelang.layout.digits import flatten
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout, checked_shape
from tilelang.layout.swizzle_mode import SwizzleMode

__all__ = [
    "make_full_bank_swizzled_layout",
    "make_fully_replicated_layout_fragment",
    "make_gemm_fragment_8x8",
    "make_gemm_fragment_8x8_transposed",
    "make_half_bank_swizzled_layout",
    "make_linear_layout",
    "make_quarter_bank_swizzled_layout",
    "make_swizzled_layout",
]

_VECTOR_BITS = 128
_BANK_BITS = 32 * 32


def make_linear_layout(buffer: Any) -> Layout:
    """Row-major order without gaps; ``buffer`` is a buffer, an element or a region of one."""
    shape, _ = _shape_and_bits(buffer)
    return Layout(shape, lambda *indices: flatten(zip(indices, shape, strict=True)))


def make_full_bank_swizzled_layout(buffer: Any) -> Layout:
    """Permute 16-byte vectors within 128 bytes, the 128-byte swizzle of TMA and WGMMA.

    A row of 128 bytes covers every bank once. Vector ``c`` of row ``r`` goes to ``c ^ (r % 8)``,
    so that a column of vectors touches all banks.

    Raises
    ------
    LayoutError
        If rows are no multiple of 128 bytes or their number is no multiple of 8.
    """
    return _bank_swizzle(buffer, SwizzleMode.SWIZZLE_128B)


def make_half_bank_swizzled_layout(buffer: Any) -> Layout:
    """Permute 16-byte vectors within 64 bytes; see :func:`make_full_bank_swizzled_layout`."""
    return _bank_swizzle(buffer, SwizzleMode.SWIZZLE_64B)


def make_quarter_bank_swizzled_layout(buffer: Any) -> Layout:
    """Permute 16-byte vectors within 32 bytes; see :func:`make_full_bank_swizzled_layout`."""
    return _bank_swizzle(buffer, SwizzleMode.SWIZZLE_32B)


def make_swizzled_layout(buffer: Any, k_major: bool = True, allow_pad: bool = True) -> Layout:
    """The widest bank swizzle that fits the tile, else padded rows, else row-major order.

    Parameters
    ----------
    buffer : buffer, element or region
        All dimensions but the last count as rows.
    k_major : bool
        Whether the reduction axis is the last one. Where it is not, 8-bit elements are read one
        by one along columns, which a swizzle of vectors does not help.
    allow_pad : bool
        Whether rows may get a gap of 16 bytes where no swizzle fits.
    """
    shape, bits = _shape_and_bits(buffer)
    rows, columns = int(np.prod(shape[:-1])), shape[-1]
    if rows % 8 == 0 and (k_major or bits != 8):
        for mode in (SwizzleMode.SWIZZLE_128B, SwizzleMode.SWIZZLE_64B, SwizzleMode.SWIZZLE_32B):
            if columns * bits % (mode.swizzle_byte_size() * 8) == 0:
                return _bank_swizzle_2d(rows, columns, bits, mode).reshape(shape)
    pitch = columns
    if allow_pad and columns * bits % (2 * _VECTOR_BITS) == 0:
        pitch += _VECTOR_BITS // bits
    return Layout([rows, columns], lambda i, j: i * pitch + j).reshape(shape)


def make_fully_replicated_layout_fragment(buffer: Any, threads: int) -> Fragment:
    """Every one of ``threads`` threads holds the whole tile in row-major order."""
    shape, _ = _shape_and_bits(buffer)
    return Fragment(
        shape,
        forward_thread_fn=lambda *indices: indices[-1] if threads > 1 else 0,
        replicate=threads,
        forward_index_fn=lambda *indices: flatten(zip(indices, shape, strict=True)),
    )


def make_gemm_fragment_8x8() -> Fragment:
    """The 8 x 8 matrix of ``ldmatrix`` and ``mma``: two neighbours of a row per lane."""
    return Fragment([8, 8], lambda i, j: (i * 4 + j // 2, j % 2))


def make_gemm_fragment_8x8_transposed() -> Fragment:
    """The 8 x 8 matrix of ``ldmatrix.trans``: two neighbours of a column per lane."""
    return Fragment([8, 8], lambda i, j: (j * 4 + i // 2, i % 2))


def _bank_swizzle(buffer: Any, mode: SwizzleMode) -> Layout:
    shape, bits = _shape_and_bits(buffer)
    if len(shape) < 2:
        raise LayoutError(f"a bank swizzle needs rows and columns, the tile has shape {shape}")
    tile = _bank_swizzle_2d(shape[-2], shape[-1], bits, mode)
    return tile.expand(shape[:-2]) if len(shape) > 2 else tile


def _bank_swizzle_2d(rows: int, columns: int, bits: int, mode: SwizzleMode) -> Layout:
    """Physical index: (column block, block of 8 rows, element within the block)."""
    width = mode.swizzle_byte_size()
    if columns * bits % (width * 8):
        raise LayoutError(
            f"a {width}-byte swizzle needs rows that are a multiple of {width} bytes, "
            f"found {columns} elements of {bits} bits"
        )
    if rows % 8:
        raise LayoutError(f"a bank swizzle needs a multiple of 8 rows, found {rows}")
    vector, vectors = _VECTOR_BITS // bits, mode.swizzle_atom_size()
    block = vector * vectors
    rows_per_bank_line = _BANK_BITS // (width * 8)

    def forward(i: Any, j: Any) -> list[Any]:
        phase = i // rows_per_bank_line % vectors
        swizzled = (j % block // vector) ^ phase
        return [j // block, i // 8, i % 8 * block + swizzled * vector + j % vector]

    return Layout([rows, columns], forward)


def _shape_and_bits(buffer: Any) -> tuple[list[int], int]:
    """Constant shape and element width in bits of a buffer, an element or a region of one."""
    owner = getattr(buffer, "source", buffer)
    shape, dtype = getattr(owner, "shape", None), getattr(owner, "dtype", None)
    if shape is None or dtype is None:
        raise LayoutError(f"expected a buffer or a region of one, found {type(buffer).__name__}")
    name = str(dtype)
    return checked_shape(shape), 8 if name == "bool" else tvm.DataType(name).bits
