"""``T.use_swizzle``: every block of the grid is made once, in panels."""

from __future__ import annotations

import numpy as np
import pytest
from lowered import lowered, machine_of
from tvm import ir, sym
from tvm import tirx as T
from tvm_ffi import structural_map

import tilelang.language as TL
from tilelang.ir.expr import const_int
from tilelang.transform.simt.rasterize import rasterize_blocks


def grid_of(nx, ny, panel, order):
    """A launch of ``nx`` by ``ny`` blocks that asks for an order."""
    x, y = T.Var("bx", "int32"), T.Var("by", "int32")
    body = T.Evaluate(x + y)
    for var, extent, axis, notes in (
        (y, ny, "y", {}),
        (x, nx, "x", {"tl.swizzle": {"panel_size": panel, "order": order}}),
    ):
        name = f"blockIdx.{axis}"
        bound = T.IterVar(ir.Range(0, extent), T.Var("", "int32"), T.IterVar.ThreadIndex, name)
        body = T.For(var, 0, extent, T.ForKind.THREAD_BINDING, body, bound, notes)
    return T.PrimFunc([], body)


def order_of(nx, ny, panel, order):
    """The block that each place of the grid works at, by the number of the place."""
    func = rasterize_blocks(grid_of(nx, ny, panel, order))
    outer, inner = func.body, func.body.body
    column, row, _ = inner.body.seq
    analyzer = sym.Analyzer()

    def at(value, x, y):
        places = {outer.loop_var: x, inner.loop_var: y}
        fixed = structural_map(
            value, (ir.Var, lambda v: T.const(places[v], "int32") if v in places else v)
        )
        return const_int(analyzer.simplify(fixed))

    return [(at(column.value, x, y), at(row.value, x, y)) for y in range(ny) for x in range(nx)]


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("panel", [1, 2, 3, 4, 7, 10])
def test_the_order_is_a_bijection_of_the_grid(panel, order):
    for nx, ny in [(2, 2), (2, 9), (9, 2), (3, 5), (5, 3), (7, 8), (9, 9), (4, 6)]:
        blocks = order_of(nx, ny, panel, order)
        assert sorted(blocks) == [(x, y) for x in range(nx) for y in range(ny)]


@pytest.mark.parametrize("panel", [2, 3])
def test_blocks_in_a_row_lie_in_one_panel(panel):
    """The first ``panel * nx`` blocks are those of the first ``panel`` rows, by columns."""
    blocks = order_of(5, 6, panel, "row")
    assert blocks[: panel * 5] == [(x, y) for x in range(5) for y in range(panel)]
    turned = order_of(6, 5, panel, "column")
    assert turned[: panel * 5] == [(x, y) for y in range(5) for x in range(panel)]


def test_a_line_of_blocks_keeps_its_order():
    for nx, ny in [(1, 4), (4, 1)]:
        func = grid_of(nx, ny, 2, "row")
        assert rasterize_blocks(func).same_as(func)


@pytest.mark.parametrize("grid", [(3, 5), (4, 4), (2, 9)])
def test_results_do_not_depend_on_the_order(grid):
    """Each block adds one to its own element."""
    nx, ny = grid

    @TL.prim_func
    def program(B: TL.Tensor((ny, nx), "int32")):
        with TL.Kernel(nx, ny, threads=32) as (bx, by):
            TL.use_swizzle(2)
            B[by, bx] = B[by, bx] + 1

    tensors = {"B": np.zeros((ny, nx), np.int32)}
    machine_of(lowered(program), tensors).run_grid((nx, ny, 1))
    assert (tensors["B"] == 1).all()
