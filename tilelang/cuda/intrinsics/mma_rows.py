"""``mma.sync`` instructions: shapes, types, architectures and operand layouts.

Every row has a wrapper ``tl::mma_<name>(c, a, b)`` (``src/cuda/templates/tl/mma.h``) and an
emulated twin. An operand is held by the 32 lanes of a warp; element ``i`` of a lane counts through
its registers, low bits first. All layouts follow one rule of the PTX ISA: a register of A or B
holds elements that follow each other along k, four lanes cover a row of A or a column of B, and
further registers of A go eight rows down first, then along k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ELEMENT_BITS", "MMA_ROWS", "MmaRow", "find_mma_rows", "mma_row"]

#: Bits of an element by its PTX name.
ELEMENT_BITS = {
    "f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16,
    "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4,
}  # fmt: skip
_WARP = 32
_QUAD = 4  # lanes that share a row of A and D, or a column of B
_ROWS = 8  # rows that one register of all lanes covers


@dataclass(frozen=True)
class MmaRow:
    """One instruction ``D = A B + C``, A row-major m x k, B column-major k x n.

    Parameters
    ----------
    m, n, k : int
        Its shape.
    d, a, b : str
        PTX names of the element types; C has the type of D.
    min_arch : int
        The oldest architecture that has it, such as 80 for ``sm_80``.
    """

    m: int
    n: int
    k: int
    d: str
    a: str
    b: str
    min_arch: int

    @property
    def name(self) -> str:
        """``m16n8k16_f32_f16_f16_f32``: the wrapper without its prefix ``mma_``."""
        return f"m{self.m}n{self.n}k{self.k}_{self.d}_{self.a}_{self.b}_{self.d}"

    @property
    def elements(self) -> tuple[int, int, int]:
        """Elements of A, B and D in a lane."""
        return self.m * self.k // _WARP, self.k * self.n // _WARP, self.m * self.n // _WARP

    @property
    def registers(self) -> tuple[int, int, int]:
        """32-bit registers of A, B and D in a lane."""
        types = (self.a, self.b, self.d)
        a, b, d = (
            count * ELEMENT_BITS[dtype] // 32
            for count, dtype in zip(self.elements, types, strict=True)
        )
        return a, b, d

    @property
    def run(self) -> int:
        """Elements that follow each other along k in one register of A or B."""
        return max(1, 32 // ELEMENT_BITS[self.a])

    def a_position(self, lane: int, element: int) -> tuple[int, int]:
        """Row and column (along k) in A of an element of a lane."""
        register, within = divmod(element, self.run)
        along, down = divmod(register, self.m // _ROWS)
        return lane // _QUAD + down * _ROWS, self._along(lane, along, within)

    def b_position(self, lane: int, element: int) -> tuple[int, int]:
        """Row (along k) and column in B of an element of a lane."""
        register, within = divmod(element, self.run)
        return self._along(lane, register, within), lane // _QUAD

    def d_position(self, lane: int, element: int) -> tuple[int, int]:
        """Row and column in D (and C) of an element of a lane."""
        down, within = divmod(element, 2)
        return lane // _QUAD + down * _ROWS, lane % _QUAD * 2 + within

    def _along(self, lane: int, register: int, within: int) -> int:
        return (register * _QUAD + lane % _QUAD) * self.run + within


def _integer_rows() -> list[MmaRow]:
    rows = []
    shapes = {
        "8": ((8, 16, 75), (16, 16, 80), (16, 32, 80)),
        "4": ((8, 32, 75), (16, 32, 80), (16, 64, 80)),
    }
    for bits, sizes in shapes.items():
        for m, k, arch in sizes:
            rows += [MmaRow(m, 8, k, "s32", a + bits, b + bits, arch) for a in "su" for b in "su"]
    return rows


MMA_ROWS: tuple[MmaRow, ...] = (
    MmaRow(16, 8, 8, "f32", "f16", "f16", 75),
    MmaRow(16, 8, 8, "f16", "f16", "f16", 75),
    MmaRow(16, 8, 16, "f32", "f16", "f16", 80),
    MmaRow(16, 8, 16, "f16", "f16", "f16", 80),
    MmaRow(16, 8, 8, "f32", "bf16", "bf16", 80),
    MmaRow(16, 8, 16, "f32", "bf16", "bf16", 80),
    MmaRow(16, 8, 4, "f32", "tf32", "tf32", 80),
    MmaRow(16, 8, 8, "f32", "tf32", "tf32", 80),
    MmaRow(8, 8, 4, "f64", "f64", "f64", 80),
    *_integer_rows(),
    *(MmaRow(16, 8, 32, "f32", a, b, 89) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
)
_BY_NAME = {row.name: row for row in MMA_ROWS}


def mma_row(name: str) -> MmaRow:
    """The row of that name.

    Raises
    ------
    KeyError
        If there is none.
    """
    return _BY_NAME[name]


def find_mma_rows(d: str, a: str, b: str, arch: int) -> Sequence[MmaRow]:
    """Rows with these element types that ``sm_<arch>`` has, the largest instruction first."""
    rows = [r for r in MMA_ROWS if (r.d, r.a, r.b) == (d, a, b) and r.min_arch <= arch]
    return sorted(rows, key=lambda r: r.m * r.n * r.k, reverse=True)
