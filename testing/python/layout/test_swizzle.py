"""Layouts made from a tile's shape: order, bank conflicts, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import tirx as T

from tilelang.errors import LayoutError
from tilelang.layout import (
    Layout,
    SwizzleMode,
    make_full_bank_swizzled_layout,
    make_fully_replicated_layout_fragment,
    make_gemm_fragment_8x8,
    make_gemm_fragment_8x8_transposed,
    make_half_bank_swizzled_layout,
    make_linear_layout,
    make_quarter_bank_swizzled_layout,
    make_swizzled_layout,
)
from tilelang.layout.check import is_injective

SWIZZLES = {
    128: make_full_bank_swizzled_layout,
    64: make_half_bank_swizzled_layout,
    32: make_quarter_bank_swizzled_layout,
}


def tile(shape, dtype="float16"):
    return T.decl_buffer(shape, dtype, "tile", scope="shared", layout=None)


def byte_offsets(layout, bits):
    """Byte address of every element when the physical indices are stored in row-major order."""
    extents = layout.get_output_shape()
    offset = np.zeros(layout.get_input_shape(), dtype=np.int64)
    for row, extent in zip(layout.table(), extents, strict=True):
        offset = offset * extent + row
    return offset * bits // 8


def test_linear_layout_is_row_major():
    assert make_linear_layout(tile((2, 3, 4))).is_equal(
        Layout([2, 3, 4], lambda a, i, j: a * 12 + i * 4 + j)
    )


@pytest.mark.parametrize("width", SWIZZLES)
@pytest.mark.parametrize(("dtype", "bits"), [("int8", 8), ("float16", 16), ("float32", 32)])
def test_bank_swizzles_are_the_xor_of_the_hardware(width, dtype, bits):
    columns = width * 8 // bits
    layout = SWIZZLES[width](tile((16, columns), dtype))
    plain = np.arange(16 * columns).reshape(16, columns) * bits // 8
    expected = plain ^ ((plain >> 7) % (width // 16) << 4)
    assert np.array_equal(byte_offsets(layout, bits), expected)


@pytest.mark.parametrize("width", SWIZZLES)
def test_columns_of_vectors_touch_every_bank(width):
    layout = SWIZZLES[width](tile((8, 64)))
    offsets = byte_offsets(layout, 16)
    for column in range(0, 64, 8):
        lines = {int(offset) % 128 // 16 for offset in offsets[:, column]}
        assert len(lines) == 8


@pytest.mark.parametrize("width", SWIZZLES)
def test_leading_dimensions_expand_the_tile(width):
    make = SWIZZLES[width]
    flat = make(tile((8, 64)))
    assert make(tile((2, 8, 64))).is_equal(flat.expand([2]))
    assert make(tile((3, 2, 8, 64))).is_equal(flat.expand([3, 2]))


@pytest.mark.parametrize(
    ("columns", "make"),
    [
        (64, make_full_bank_swizzled_layout),
        (32, make_half_bank_swizzled_layout),
        (16, make_quarter_bank_swizzled_layout),
    ],
)
def test_swizzled_layout_takes_the_widest_that_fits(columns, make):
    buffer = tile((32, columns))
    assert make_swizzled_layout(buffer).is_equal(make(buffer))


def test_swizzled_layout_pads_or_stays_linear():
    buffer = tile((12, 16))
    assert make_swizzled_layout(buffer).is_equal(Layout([12, 16], lambda i, j: i * 24 + j))
    assert make_swizzled_layout(buffer, allow_pad=False).is_equal(make_linear_layout(buffer))
    bytes_by_column = tile((32, 128), "int8")
    padded = make_swizzled_layout(bytes_by_column, k_major=False)
    assert padded.is_equal(Layout([32, 128], lambda i, j: i * 144 + j))


@pytest.mark.parametrize("shape", [(8, 64), (12, 24), (2, 8, 32), (5, 7), (64,)])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float64", "float8_e4m3fn"])
def test_swizzled_layouts_are_injective(shape, dtype):
    layout = make_swizzled_layout(tile(shape, dtype))
    assert layout.get_input_shape() == list(shape)
    assert is_injective(layout)


def test_makers_take_regions_and_elements():
    buffer = tile((8, 64))
    whole = make_swizzled_layout(buffer)
    assert make_swizzled_layout(buffer[0:8, 0:64]).is_equal(whole)
    assert make_swizzled_layout(buffer[0, 0]).is_equal(whole)


def test_fully_replicated_fragment():
    fragment = make_fully_replicated_layout_fragment(tile((2, 4)), 32)
    assert fragment.is_completely_replicated()
    assert fragment.get_thread_size() == 32
    assert fragment(1, 2) == [6]
    assert make_fully_replicated_layout_fragment(tile((4,)), 1).get_thread_size() == 1


def test_matrix_atoms_are_transposes():
    atom, transposed = make_gemm_fragment_8x8(), make_gemm_fragment_8x8_transposed()
    assert np.array_equal(atom.thread_table()[0].T, transposed.thread_table()[0])
    assert np.array_equal(atom.table()[0].T, transposed.table()[0])


@pytest.mark.parametrize(
    ("mode", "size", "atom", "alignment", "wgmma", "tcgen05"),
    [
        (SwizzleMode.NONE, 1, 1, 128, 0, 0),
        (SwizzleMode.SWIZZLE_32B, 32, 2, 256, 3, 6),
        (SwizzleMode.SWIZZLE_64B, 64, 4, 512, 2, 4),
        (SwizzleMode.SWIZZLE_128B, 128, 8, 1024, 1, 2),
    ],
)
def test_swizzle_modes(mode, size, atom, alignment, wgmma, tcgen05):
    assert SwizzleMode.from_ordinal(int(mode)) is mode
    assert mode.swizzle_byte_size() == size
    assert mode.swizzle_atom_size() == atom
    assert mode.smem_alignment() == alignment
    assert mode.wgmma_layout_type() == wgmma
    assert mode.tcgen05_layout_type() == tcgen05
    assert [mode.is_none(), mode.is_swizzle_32b(), mode.is_swizzle_64b(), mode.is_swizzle_128b()][
        int(mode)
    ]


@pytest.mark.parametrize(
    ("make", "shape", "message"),
    [
        (make_full_bank_swizzled_layout, (8, 32), "128-byte swizzle needs rows"),
        (make_half_bank_swizzled_layout, (8, 16), "64-byte swizzle needs rows"),
        (make_full_bank_swizzled_layout, (4, 64), "multiple of 8 rows, found 4"),
        (make_full_bank_swizzled_layout, (64,), "needs rows and columns"),
    ],
)
def test_tiles_that_do_not_fit(make, shape, message):
    with pytest.raises(LayoutError, match=message):
        make(tile(shape))


def test_what_is_no_buffer():
    with pytest.raises(LayoutError, match="expected a buffer or a region of one, found int"):
        make_linear_layout(3)
    with pytest.raises(LayoutError, match="positive constant, found n"):
        make_linear_layout(tile((T.Var("n", "int32"), 4)))
