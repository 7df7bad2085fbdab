"""Tile operands: turning what a user writes (buffer, element, slice) into a tensor region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceTypeError
from tilelang.ir.expr import const_int, convert, is_buffer

__all__ = [
    "full_region",
    "is_full_region",
    "region_buffer",
    "region_extents",
    "region_mins",
    "squeezed_dims",
    "to_region",
]


def full_region(buffer: ir.Var) -> ir.TensorRegion:
    """The region that covers all of ``buffer``."""
    ranges = [ir.Range.from_min_extent(zero_of(extent), extent) for extent in buffer.shape]
    return T.BufferRegion(buffer, ranges)


def zero_of(expr: Any) -> ir.Expr:
    """The constant 0 of the dtype of ``expr``."""
    return T.const(0, str(convert(expr).ty.dtype))


def to_region(
    value: Any, extents: Sequence[Any] | None = None, what: str = "operand"
) -> ir.TensorRegion:
    """Turn a buffer, an element ``A[i, j]`` or a slice ``A[i:j, k]`` into a region.

    An element is the head address of a tile: it takes ``extents`` (aligned to the last
    dimensions, missing leading ones are 1), or extent 1 everywhere without them.

    Raises
    ------
    TraceTypeError
        If ``value`` is none of the three.
    """
    if isinstance(value, ir.TensorRegion):
        return value
    if is_buffer(value):
        return full_region(value)
    if isinstance(value, ir.TensorLoad):
        rank = len(value.indices)
        sizes: list[Any] = list(extents) if extents is not None else []
        sizes = [1] * (rank - len(sizes)) + sizes[len(sizes) - rank if len(sizes) > rank else 0 :]
        ranges = [
            ir.Range.from_min_extent(index, convert(size, str(index.ty.dtype)))
            for index, size in zip(value.indices, sizes, strict=True)
        ]
        return T.BufferRegion(value.source, ranges)
    raise TraceTypeError(
        f"{what} must be a buffer, an element A[i, j] or a slice A[i:j, k], found "
        f"{type(value).__name__}"
    )


def region_buffer(region: ir.TensorRegion) -> ir.Var:
    """The buffer a region lies in."""
    return region.source


def region_mins(region: ir.TensorRegion) -> list[ir.Expr]:
    """First index of each dimension."""
    return [r.min for r in region.region]


def region_extents(region: ir.TensorRegion) -> list[ir.Expr]:
    """Extent of each dimension, in elements."""
    return [r.extent for r in region.region]


def squeezed_dims(region: ir.TensorRegion) -> list[int]:
    """The dimensions whose extent is not the constant 1."""
    return [d for d, extent in enumerate(region_extents(region)) if const_int(extent) != 1]


def is_full_region(region: ir.TensorRegion) -> bool:
    """Whether the region provably covers its whole buffer."""
    for rng, size in zip(region.region, region.source.shape, strict=True):
        if const_int(rng.min) != 0:
            return False
        extent, full = const_int(rng.extent), const_int(size)
        if extent is None or full is None:
            if not rng.extent.same_as(size):
                return False
        elif extent != full:
            return False
    return True
