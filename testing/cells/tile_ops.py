"""The cells of every tile op, by the name of its record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from testing.cells.cell import Cell
from testing.cells.tile_copies import copy_cells, fill_cells, im2col_cells, transpose_cells
from testing.cells.tile_others import atomic_cells, gemm_cells, sparse_gemm_cells
from testing.cells.tile_reductions import (
    logical_cells,
    reduce_cells,
    reducer_cells,
    rounded_sum_cells,
    scan_cells,
)

__all__ = ["TILE_CELLS", "tile_cells"]

# A generator may make cells of more than one op.
TILE_CELLS: tuple[Callable[[], Iterator[Cell]], ...] = (
    copy_cells,
    fill_cells,
    transpose_cells,
    im2col_cells,
    atomic_cells,
    gemm_cells,
    sparse_gemm_cells,
    reduce_cells,
    rounded_sum_cells,
    scan_cells,
    logical_cells,
    reducer_cells,
)


def tile_cells(op: str) -> list[Cell]:
    """The cells of tile op ``op``."""
    return [cell for cell in chain.from_iterable(make() for make in TILE_CELLS) if cell.op == op]
