"""What the bodies of tile ops may ask while they become code of one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm import ir, sym
from tvm import tirx as T

from tilelang.ir.expr import const_int
from tilelang.layout.distribution import Distribution
from tilelang.transform.simt.defaults import dtype_bits
from tilelang.transform.simt.digits import Digits
from tilelang.transform.simt.sites import in_registers

__all__ = ["SimtContext", "Tile"]


@dataclass(frozen=True)
class Tile:
    """A distributed tile and the registers that hold a thread's share of it."""

    buffer: ir.Var
    distribution: Distribution
    registers: ir.Var


@dataclass
class SimtContext:
    """One kernel being lowered.

    Parameters
    ----------
    threads : int
        Threads of a block.
    thread : Expr
        The thread's number.
    tiles : dict of buffer to Tile
    layouts : callable
        The layout of a shared buffer's storage, or None for row-major order.
    analyzer : sym.Analyzer
        Knows the ranges of the launch's variables.
    allocations : list of Stmt
        Declarations that the kernel's body begins with.
    notes : list of str
        Why something fell off the fast path; shown by ``kernel.report()``.
    """

    threads: int
    thread: ir.Expr
    tiles: dict[ir.Var, Tile]
    layouts: Callable[[ir.Var], Any]
    analyzer: sym.Analyzer
    warp_size: int = 32
    allocations: list[T.Stmt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _count: int = 0

    def is_tile(self, buffer: ir.Var) -> bool:
        """Whether ``buffer`` is distributed over registers."""
        return in_registers(buffer) and buffer in self.tiles

    def tile(self, buffer: ir.Var) -> Tile:
        """The tile of ``buffer``."""
        return self.tiles[buffer]

    def simplify(self, expr: Any) -> Any:
        """``expr`` in the ranges known here."""
        return self.analyzer.simplify(expr) if isinstance(expr, ir.Expr) else expr

    def local(self, name: str, size: int, dtype: str, align: int = 0) -> ir.Var:
        """A register array of ``size`` elements, declared at the start of the kernel."""
        buffer = register_array(name, size, dtype, align)
        self.allocations.append(T.AllocBuffer(buffer))
        return buffer

    def shared(self, name: str, shape: Sequence[int], dtype: str) -> ir.Var:
        """A shared buffer, declared at the start of the kernel."""
        self._count += 1
        buffer = T.decl_buffer(
            list(shape), dtype, f"{name}_{self._count}", scope="shared.dyn", layout=None,
            data_alignment=16,
        )  # fmt: skip
        self.allocations.append(T.AllocBuffer(buffer))
        return buffer

    def slot(
        self, tile: Distribution, indices: Sequence[Any], digits: Sequence[Digits | None]
    ) -> Any:
        """The register of the element of ``tile`` at ``indices``.

        ``digits`` gives, for every dimension that a loop indexes alone, that loop's digits; the
        slot then is a sum of them. Other dimensions are taken apart by division.
        """
        total: Any = 0
        for part in tile.slots:
            value = None
            known = digits[part.axis]
            if known is not None:
                value = known.part(part.divisor, part.extent)
            if value is None:
                value = indices[part.axis]
                if part.divisor > 1:
                    value = value // part.divisor
                if part.divisor * part.extent < tile.covered(part.axis) or const_int(value):
                    value = value % part.extent
                value = self.simplify(value)
            total = total + (value * part.stride if part.stride > 1 else value)
        return total if isinstance(total, ir.Expr) else T.const(total, "int32")


def register_array(name: str, size: int, dtype: str, align: int = 0) -> ir.Var:
    """Declare ``size`` registers of one thread; emit it with ``T.AllocBuffer``."""
    alignment = align or max(1, dtype_bits(dtype) // 8)
    return T.decl_buffer([size], dtype, name, scope="local", layout=None, data_alignment=alignment)
