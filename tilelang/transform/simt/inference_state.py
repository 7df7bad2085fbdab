"""What layout inference knows while it runs, and what it decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tvm import ir, sym

from tilelang.errors import LayoutError
from tilelang.ir.op import TileCall
from tilelang.layout import Fragment
from tilelang.layout.distribution import Distribution
from tilelang.transform.simt.access_map import AccessMap
from tilelang.transform.simt.nest import Access
from tilelang.transform.simt.sites import Sites, in_registers

__all__ = ["InferenceState", "Inferred", "MatrixRule", "regions_of"]


class MatrixRule(Protocol):
    """What inference asks a backend about its matrix instructions."""

    def operands(self, call: TileCall) -> Mapping[str, Distribution] | None:
        """The distribution each fragment operand of a GEMM must have; None for no demand."""


@dataclass
class Inferred:
    """The decisions for one kernel.

    Parameters
    ----------
    tiles : dict of buffer to Distribution
    nests : list of Distribution or None
        One for every nest in program order; None where the nest touches no tile.
    spilled : dict of buffer to str
        Tiles that live in shared memory instead, with the reason.
    """

    tiles: dict[ir.Var, Distribution] = field(default_factory=dict)
    nests: list[Distribution | None] = field(default_factory=list)
    spilled: dict[ir.Var, str] = field(default_factory=dict)


@dataclass
class InferenceState:
    """One round of inference: what is given, what is decided so far, and what moved to memory."""

    sites: Sites
    threads: int
    rule: MatrixRule | None
    layouts: Callable[[ir.Var], Any]
    analyzer: sym.Analyzer
    tiles: dict[ir.Var, Distribution] = field(default_factory=dict)
    loops: dict[int, Distribution] = field(default_factory=dict)
    strict: set[ir.Var] = field(default_factory=set)
    spilled: dict[ir.Var, str] = field(default_factory=dict)
    fragments: dict[int, list[tuple[Access, AccessMap | None]]] = field(default_factory=dict)

    def known(self, buffer: ir.Var) -> Distribution | None:
        """The distribution of ``buffer`` if it is decided."""
        return self.tiles.get(buffer)

    def is_tile(self, buffer: ir.Var) -> bool:
        """Whether ``buffer`` is distributed over registers, and has not moved to memory."""
        return in_registers(buffer) and buffer not in self.spilled

    def is_given(self, buffer: ir.Var) -> bool:
        """Whether the user fixed the distribution of ``buffer``."""
        return isinstance(self.sites.given.get(buffer), Fragment)

    def spill(self, buffer: ir.Var, reason: str, span: ir.Span | None = None) -> bool:
        """Move a tile to shared memory; True so that callers can start again.

        Raises
        ------
        LayoutError
            If the user fixed where its elements are.
        """
        if self.is_given(buffer):
            raise LayoutError(
                f"{buffer.name} cannot have the layout {self.sites.given[buffer]} that "
                f"T.annotate_layout gives it: {reason}",
                span or buffer.span,
            )
        self.spilled[buffer] = reason
        return True


def regions_of(call: TileCall) -> dict[str, ir.TensorRegion]:
    """The operands of ``call`` that are tiles, by name."""
    return {k: v for k, v in call.operands.items() if isinstance(v, ir.TensorRegion)}
