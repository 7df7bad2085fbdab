"""How an access inside a nest indexes a tile, and the distributions that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import ir
from tvm_ffi import structural_walk

from tilelang.errors import LayoutError
from tilelang.ir.expr import const_int
from tilelang.layout.distribution import COPY, Distribution, dense
from tilelang.transform.simt.nest import Access, Nest

__all__ = ["AccessMap", "map_access", "mentions"]


def mentions(root: Any, variables: Sequence[ir.Var]) -> bool:
    """Whether an expression or statement uses one of ``variables``."""
    found: list[ir.Var] = []

    def on_var(var: ir.Var) -> None:
        if any(var.same_as(other) for other in variables):
            found.append(var)

    structural_walk(root, (ir.Var, on_var))
    return bool(found)


@dataclass(frozen=True)
class AccessMap:
    """``axes``: the dimension each loop indexes alone; ``free``: dimensions no loop indexes."""

    axes: Mapping[int, int]
    free: tuple[int, ...]
    shape: tuple[int, ...]

    def tile_of(self, loop: Distribution) -> Distribution | None:
        """Where the elements that the iterations of ``loop`` touch are, as a tile; None if nowhere.

        Dimensions that no loop indexes lie in the slots of one thread.
        """
        threads = [
            (self.axes.get(p.axis, COPY) if p.axis != COPY else COPY, p.divisor, p.extent)
            for p in loop.threads
        ]
        slots = [
            (self.axes[p.axis], p.divisor, p.extent) for p in loop.slots if p.axis in self.axes
        ]
        for dim, extent in enumerate(self.shape):
            reach = 1
            for axis, _, size in (*threads, *slots):
                reach *= size if axis == dim else 1
            if reach < extent:
                slots.append((dim, reach, -(-extent // reach)))
        return _distribution(self.shape, threads, slots)

    def loop_of(self, tile: Distribution, extents: Sequence[int]) -> Distribution | None:
        """Deal iterations so that every thread finds its elements of ``tile``; None if impossible.

        Loops that do not index the tile are spread over the threads that hold copies.
        """
        back = {dim: axis for axis, dim in self.axes.items()}
        rest = {a: e for a, e in enumerate(extents) if a not in self.axes and e > 1}
        done = dict.fromkeys(rest, 1)
        threads: list[tuple[int, int, int]] = []
        for part in tile.threads:
            if part.axis in back:
                threads.append((back[part.axis], part.divisor, part.extent))
                continue
            if part.axis != COPY:
                return None
            axis = next((a for a in reversed(rest) if done[a] < rest[a]), None)
            if axis is None:
                threads.append((COPY, 1, part.extent))
            else:
                threads.append((axis, done[axis], part.extent))
                done[axis] *= part.extent
        slots = [(back[p.axis], p.divisor, p.extent) for p in tile.slots if p.axis in back]
        slots += [
            (axis, done[axis], -(-extent // done[axis]))
            for axis, extent in reversed(rest.items())
            if done[axis] < extent
        ]
        return _distribution(tuple(extents), threads, slots)


def _distribution(
    shape: tuple[int, ...],
    threads: Sequence[tuple[int, int, int]],
    slots: Sequence[tuple[int, int, int]],
) -> Distribution | None:
    try:
        return Distribution(shape, dense(threads), dense(slots))
    except LayoutError:
        return None


def map_access(access: Access, nest: Nest) -> AccessMap | None:
    """The map of ``access``; None if an index mixes loop variables with anything else."""
    shape = [const_int(extent) for extent in access.buffer.shape]
    if any(extent is None for extent in shape) or len(shape) != len(access.indices):
        return None
    axes: dict[int, int] = {}
    free: list[int] = []
    for dim, index in enumerate(access.indices):
        axis = next(
            (
                a
                for a, v in enumerate(nest.variables)
                if isinstance(index, ir.Var) and index.same_as(v)
            ),
            None,
        )
        if axis is not None and axis not in axes and const_int(nest.loops[axis].min) == 0:
            axes[axis] = dim
        elif mentions(index, nest.variables):
            return None
        else:
            free.append(dim)
    return AccessMap(axes, tuple(free), tuple(int(e or 0) for e in shape))
