"""Operands of a matrix product as matrices over k and their other dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm.ir import prim

from tilelang.cpu.op.loops import alloc, load, nest
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.region import region_extents, to_region

__all__ = ["Operand", "operand", "span_of"]


def span_of(start: Any, count: int) -> ir.Expr:
    """The vector of indices ``start, start + 1, ...``; ``start`` itself for a count of 1."""
    if count == 1:
        return start if isinstance(start, ir.Expr) else T.const(start, "int32")
    base = start if isinstance(start, ir.Expr) else T.const(start, "int32")
    return prim.Ramp(base, T.const(1, dtype_of(base)), T.const(count, "int32"))


@dataclass(frozen=True)
class Operand:
    """A or B of a product.

    Parameters
    ----------
    region : tvm.ir.TensorRegion
        The tile; leading dimensions have extent 1.
    k, size : int
        Extents of the summed and of the other dimension (rows of A, columns of B).
    k_inner : bool
        Whether consecutive elements in memory belong to consecutive k.
    """

    region: ir.TensorRegion
    k: int
    size: int
    k_inner: bool

    @property
    def dtype(self) -> str:
        """Of an element."""
        return dtype_of(self.region)

    @property
    def addressable(self) -> bool:
        """Whether vectors may be read: it is a tile, whose accesses need no guards."""
        source = self.region.source
        return source.scope() != "global" and not len(source.ty.strides)

    def at(self, k: Any, j: Any, dtype: str | None = None) -> ir.Expr:
        """Element ``k`` of row or column ``j``, converted to ``dtype``."""
        lead = [T.const(0, "int32")] * (len(region_extents(self.region)) - 2)
        return load(self.region, [*lead, *((j, k) if self.k_inner else (k, j))], dtype)

    def vector(self, k: Any, j: Any, count: int) -> ir.Expr:
        """``count`` consecutive elements in memory from (``k``, ``j``) on."""
        if self.k_inner:
            return self.at(span_of(k, count), j)
        return self.at(k, span_of(j, count))

    def copied(
        self, name: str, dtype: str, k: int, out: list[T.Stmt], flip: bool = False
    ) -> Operand:
        """A compact tile of ``dtype`` with the same order, filled with zeros up to ``k``.

        ``flip`` inverts the highest bit of the elements, which must be bytes. The statements that
        make the tile are appended to ``out``.
        """
        outer, inner = (self.size, k) if self.k_inner else (k, self.size)
        tile = alloc(name, [outer, inner], dtype)

        def fill(at: list[ir.Expr]) -> T.Stmt:
            where, j = (at[1], at[0]) if self.k_inner else (at[0], at[1])
            value = self.at(where, j, dtype)
            value = T.bitwise_xor(value, T.const(-128, dtype)) if flip else value
            if k > self.k:
                value = T.if_then_else(where < self.k, value, T.const(0, dtype))
            return T.BufferStore(tile, value, at)

        out += [T.AllocBuffer(tile), nest([outer, inner], fill, None)]
        return Operand(to_region(tile), k, self.size, self.k_inner)


def operand(region: ir.TensorRegion, k_inner: bool) -> Operand:
    """The operand of ``region``."""
    rows, cols = (const_int(extent) for extent in region_extents(region)[-2:])
    assert rows is not None and cols is not None, "T.gemm checks that its tiles are constant"
    return Operand(region, *((cols, rows) if k_inner else (rows, cols)), k_inner)
