"""Layouts of tiles: where each element lives, in storage and among threads."""

from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layout.swizzle import (
    make_full_bank_swizzled_layout,
    make_fully_replicated_layout_fragment,
    make_gemm_fragment_8x8,
    make_gemm_fragment_8x8_transposed,
    make_half_bank_swizzled_layout,
    make_linear_layout,
    make_quarter_bank_swizzled_layout,
    make_swizzled_layout,
)
from tilelang.layout.swizzle_mode import SwizzleMode

__all__ = [
    "Fragment",
    "Layout",
    "SwizzleMode",
    "make_full_bank_swizzled_layout",
    "make_fully_replicated_layout_fragment",
    "make_gemm_fragment_8x8",
    "make_gemm_fragment_8x8_transposed",
    "make_half_bank_swizzled_layout",
    "make_linear_layout",
    "make_quarter_bank_swizzled_layout",
    "make_swizzled_layout",
]
