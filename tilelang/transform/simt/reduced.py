"""Where the results of reductions live."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import ir

from tilelang.ir.expr import const_int
from tilelang.ir.op import TileCall
from tilelang.ir.region import region_extents
from tilelang.layout.distribution import Distribution
from tilelang.transform.simt.defaults import spread
from tilelang.transform.simt.inference_state import InferenceState

__all__ = ["dealt", "reduced", "reduced_tile", "same_shape"]


def reduced_tile(state: InferenceState, call: TileCall) -> Distribution | None:
    """The distribution of what a reduction reads: the tile's, or how memory is dealt."""
    src = call.operand("src")
    if state.is_tile(src.source):
        return state.known(src.source)
    return dealt([const_int(e) or 0 for e in region_extents(src)], state.threads)


def dealt(shape: Sequence[int], threads: int) -> Distribution:
    """How threads share the elements of a reduction's source in memory."""
    return spread(shape, threads, 1)


def same_shape(a: ir.Var, b: ir.Var) -> bool:
    """Whether two buffers have the same constant extents."""
    return [const_int(e) for e in a.shape] == [const_int(e) for e in b.shape]


def reduced(tile: Distribution, dim: int, shape: list[int]) -> Distribution:
    """The distribution of a reduction's result: the threads that shared an element all hold it."""
    keeps = len(shape) == len(tile.shape)
    axes = {a: a if keeps or a < dim else a - 1 for a in range(len(tile.shape)) if a != dim}
    if not shape or len(tile.shape) == 1:
        axes = {}
    return tile.onto(axes, shape)
