"""The matrix instructions of CUDA devices as data."""

from __future__ import annotations

from tilelang.cuda.intrinsics.ldmatrix_rows import LDMATRIX_ROWS, LdmatrixRow
from tilelang.cuda.intrinsics.mma_rows import MMA_ROWS, MmaRow, find_mma_rows, mma_row

__all__ = ["LDMATRIX_ROWS", "MMA_ROWS", "LdmatrixRow", "MmaRow", "find_mma_rows", "mma_row"]
