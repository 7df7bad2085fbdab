"""``T.use_swizzle``: the order in which blocks of a grid take their places."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.ir.expr import const_int
from tilelang.transform.simt.launch import Launch, launch_of

__all__ = ["rasterize_blocks"]


def rasterize_blocks(func: T.PrimFunc) -> T.PrimFunc:
    """Number the blocks of a two-dimensional grid in panels.

    Blocks that run at the same time then lie close together and share rows and columns of their
    operands in the cache. The map is a bijection of the grid, so results do not depend on it. A
    grid whose extents are known only at the launch is left as it is.

    Before: block ``(x, y)`` works at ``bx = x, by = y``. After, for rows with panels of ``p``: the
    block with number ``r = y * nx + x`` works in panel ``r // (p * nx)`` of ``p`` rows, column by
    column.
    """
    launch = launch_of(func)
    wish = launch.loops[0].annotations.get("tl.swizzle") if launch.loops else None
    sizes = _grid(launch)
    if wish is None or sizes is None:
        return func
    panel, order = const_int(wish["panel_size"]) or 1, str(wish["order"])
    if order == "mlx":
        return func
    (x, nx), (y, ny) = sizes
    raw = {x: T.Var(f"{x.name}_raw", x.ty), y: T.Var(f"{y.name}_raw", y.ty)}
    number = raw[y] * nx + raw[x]
    if order == "row":
        column, row = _place(number, nx, ny, panel)
    else:
        row, column = _place(number, ny, nx, panel)
    body = T.stmt_seq(T.Bind(x, column), T.Bind(y, row), launch.body)
    for loop in reversed(launch.loops):
        var = raw.get(loop.loop_var, loop.loop_var)
        body = T.For(
            var, loop.min, loop.extent, loop.kind, body, loop.thread_binding,
            loop.annotations, loop.step, loop.span,
        )  # fmt: skip
    return func.with_body(body)


def _grid(launch: Launch) -> list[tuple[ir.Var, int]] | None:
    """The variables and constant extents along x and y, None for another grid."""
    found: dict[str, tuple[ir.Var, int]] = {}
    for loop in launch.loops:
        tag, extent = str(loop.thread_binding.thread_tag), const_int(loop.extent)
        if tag.startswith("blockIdx."):
            if extent is None:
                return None
            found[tag[-1]] = (loop.loop_var, extent)
    if {"x", "y"} - set(found) or any(extent < 2 for _, extent in (found["x"], found["y"])):
        return None
    return [found["x"], found["y"]]


def _place(number: Any, along: int, across: int, panel: int) -> tuple[Any, Any]:
    """The position along and across of block ``number``: panels of ``panel`` lines, line by line.

    The last panel is narrower where ``panel`` does not divide the number of lines.
    """
    first = number // (panel * along) * panel
    inside = number % (panel * along)
    width: Any = panel
    if across % panel:
        width = T.min(T.const(panel, "int32"), across - first)
    return inside // width, first + inside % width
