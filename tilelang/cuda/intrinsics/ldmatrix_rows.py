"""``ldmatrix`` and ``stmatrix``: 8x8 matrices of 16-bit elements to and from shared memory."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LDMATRIX_ROWS", "LdmatrixRow"]

_SIZE = 8
_QUAD = 4


@dataclass(frozen=True)
class LdmatrixRow:
    """One form of the instruction.

    Parameters
    ----------
    count : int
        Matrices moved at once: 1, 2 or 4; as many 32-bit registers a lane.
    transposed : bool
        Registers hold the transposed matrices.
    store : bool
        From registers to shared memory.
    min_arch : int
        The oldest architecture that has it.
    """

    count: int
    transposed: bool
    store: bool
    min_arch: int

    @property
    def name(self) -> str:
        """The wrapper: ``ldmatrix_x4<true>``."""
        direction = "st" if self.store else "ld"
        return f"{direction}matrix_x{self.count}<{str(self.transposed).lower()}>"

    @property
    def addressing_lanes(self) -> int:
        """Lanes whose address counts: lane ``8 i + r`` gives row ``r`` of matrix ``i``."""
        return _SIZE * self.count

    def position(self, lane: int, element: int) -> tuple[int, int, int]:
        """Matrix, row and column in shared memory of 16-bit element ``element`` of a lane."""
        matrix, within = divmod(element, 2)
        row, column = lane // _QUAD, lane % _QUAD * 2 + within
        return (matrix, column, row) if self.transposed else (matrix, row, column)


LDMATRIX_ROWS: tuple[LdmatrixRow, ...] = tuple(
    LdmatrixRow(count, transposed, store, 90 if store else 75)
    for store in (False, True)
    for count in (1, 2, 4)
    for transposed in (False, True)
)
