"""Storage of shared tiles: swizzles against bank conflicts where matrix instructions read them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tvm import ir

from tilelang.cuda.op.gemm_plan import plan_gemm
from tilelang.errors import LayoutError
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.op import TileCall
from tilelang.layout import Layout
from tilelang.layout.swizzle import make_swizzled_layout
from tilelang.transform.simt.defaults import dtype_bits
from tilelang.transform.simt.memory import is_shared
from tilelang.transform.simt.nest import accesses_of
from tilelang.transform.simt.sites import Sites

__all__ = ["shared_layouts"]


def shared_layouts(sites: Sites, threads: int, arch: int) -> dict[ir.Var, Layout]:
    """Swizzled storage of operands of matrix products, and of tiles that stage their results.

    A tile with other names (views) keeps its row-major storage, for those count on it.
    """
    viewed = [buffer for pair in sites.views for buffer in pair]
    chosen: dict[ir.Var, Layout] = {}

    def choose(buffer: ir.Var) -> None:
        if buffer in chosen or any(buffer.same_as(v) for v in viewed):
            return
        layout = _swizzled(buffer)
        if layout is not None:
            chosen[buffer] = layout

    accumulators = []
    for call in sites.calls:
        if call.name == "gemm" and plan_gemm(call, threads, arch)[0] is not None:
            for name in ("A", "B"):
                if is_shared(call.operand(name).source) and _reads_rows(call, name):
                    choose(call.operand(name).source)
            accumulators.append(call.operand("C").source)
    for nest in sites.nests:
        found = accesses_of(nest.body)
        staged = any(
            not a.is_write and any(a.buffer.same_as(c) for c in accumulators) for a in found
        )
        for access in found:
            if staged and access.is_write and is_shared(access.buffer):
                choose(access.buffer)
    return chosen


def _reads_rows(call: TileCall, name: str) -> bool:
    """Whether ``ldmatrix`` can read the operand, so that a swizzle of 16-byte pieces helps."""
    bits = dtype_bits(dtype_of(call.operand(name)))
    turned = call.attrs.transpose_A if name == "A" else not call.attrs.transpose_B
    return bits == 16 or (bits in (4, 8, 32) and not turned)


def _swizzled(buffer: ir.Var) -> Layout | None:
    shape = [const_int(extent) for extent in buffer.shape]
    if len(shape) < 2 or any(extent is None for extent in shape):
        return None
    sizes = [int(e or 0) for e in shape]
    tile: Any = SimpleNamespace(shape=sizes[-2:], dtype=dtype_of(buffer))
    try:
        layout = make_swizzled_layout(tile, allow_pad=False)
    except LayoutError:
        return None
    return layout.expand(sizes[:-2]) if len(sizes) > 2 else layout
