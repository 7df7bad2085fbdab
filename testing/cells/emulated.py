"""Which cells generated CUDA code, run by the emulator, has to pass."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from testing.cells.cell import Cell

__all__ = ["EXCLUDED", "emulated", "excluded", "reason_for"]

#: Patterns of cell labels that stay out, and why. The full matrix tells those that work meanwhile.
EXCLUDED: Mapping[str, str] = MappingProxyType(
    {
        "copy-asynchronous": "reads without waiting; GPUs show the old data",
        "__exp10-float32": "the error of the instruction grows with the argument",
        "shfl_down-*-40": "reads lanes that the last warp does not have; GPUs give any value",
        "__ldg-*": "guarded reads through the cache are not printed",
        "vector*-float32": "vectors of two and four floats have no arithmetic of their parts",
        "access_ptr-element": "a pointer to constant data is not one to data",
    }
)


def reason_for(cell: Cell) -> str | None:
    """Why a cell stays out, or None if it does not."""
    return next((why for name, why in EXCLUDED.items() if fnmatch.fnmatch(cell.label, name)), None)


def emulated(cells: Iterable[Cell]) -> list[Cell]:
    """The cells that have to pass."""
    return [cell for cell in cells if reason_for(cell) is None]


def excluded(cells: Iterable[Cell]) -> list[Cell]:
    """The others."""
    return [cell for cell in cells if reason_for(cell) is not None]
