"""Storage of buffers with several names: the layout of one decides those of the others."""

from __future__ import annotations

from typing import Any

from tvm import ir

from tilelang.errors import LayoutError
from tilelang.ir.expr import const_int, dtype_of
from tilelang.transform.simt.defaults import dtype_bits
from tilelang.transform.simt.sites import Sites

__all__ = ["view_layouts"]


def view_layouts(sites: Sites, storage: dict[ir.Var, Any]) -> None:
    """Add the layouts of the other names of every buffer that has one.

    Raises
    ------
    LayoutError
        If a name cannot see the storage: its elements are wider than what lies side by side.
    """
    changed = True
    while changed:
        changed = False
        for pair in sites.views:
            for known, other in (pair, pair[::-1]):
                if known in storage and other not in storage:
                    storage[other] = _seen_as(known, storage[known], other)
                    changed = True


def _seen_as(known: ir.Var, layout: Any, other: ir.Var) -> Any:
    shape = [const_int(extent) for extent in other.shape]
    old, new = dtype_bits(dtype_of(known)), dtype_bits(dtype_of(other))
    try:
        return layout.reshape(shape, old, new)
    except LayoutError as error:
        raise LayoutError(
            f"{other.name} is another name of {known.name}, whose layout it cannot have: {error}",
            other.span,
        ) from error
