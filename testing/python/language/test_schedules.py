"""Warp-specialisation schedules and persistent tile schedulers."""

from __future__ import annotations

import pytest
from tvm import ir
from tvm import tirx as tir

import tilelang.language as T
from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder
from tilelang.ir.expr import const_int

A = tir.decl_buffer((4, 8), "float16", "A", scope="shared.dyn", layout=None)


def schedule(**changes: object) -> T.WSSchedule:
    fields = {
        "num_warps": 8,
        "roles": [
            T.WSRole("load", warps_lo=0, warps_hi=4),
            T.WSRole("math", warps_lo=4, warps_hi=8),
        ],
        "pipelines": [T.WSPipeline("tiles", [A], 3)],
        "scopes": [
            T.WSScope(
                T.WSScope.ROOT,
                {
                    "load": [T.WSSync.producer_acquire("tiles"), T.WSOpRef("copy")],
                    "math": [T.WSSync.consumer_wait("tiles", stage=1)],
                },
            )
        ],
    }
    return T.WSSchedule(**{**fields, **changes})


def test_a_schedule_becomes_a_node_with_its_buffers():
    with builder.activate(builder.Builder("f")) as active:
        T.annotate_ws_schedule(schedule())
        active.emit(tir.Evaluate(0))
    (attr,) = active.finish()
    assert attr.attr_key == "tl.ws_schedule"
    assert attr.node["pipelines"][0][1][0].same_as(A)
    assert list(attr.node["scopes"][0][1]["math"][0]) == ["consumer_wait", "tiles", 1]


def test_named_statements():
    with builder.activate(builder.Builder("f")) as active:
        with T.ws_op("scale"):
            active.emit(tir.Evaluate(1))
            active.emit(tir.Evaluate(2))
        with T.ws_op("empty"):
            pass
    (attr,) = active.finish()
    assert attr.attr_key == T.WSID and str(attr.value.value) == "scale" and len(attr.body) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_warps": 6}, "overlap another role or leave the 6 warps"),
        (
            {
                "roles": [
                    T.WSRole("a", warps_lo=0, warps_hi=4),
                    T.WSRole("b", warps_lo=3, warps_hi=8),
                ]
            },
            "overlap",
        ),
        ({"pipelines": []}, "there is no pipeline tiles"),
        ({"scopes": [T.WSScope("loop", {"store": []})]}, "there is no role store"),
        ({"scopes": [T.WSScope("a", {}), T.WSScope("a", {})]}, "scope a is declared twice"),
    ],
)
def test_inconsistent_schedules(changes, message):
    with pytest.raises(TraceError, match=message):
        schedule(**changes)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: T.WSRole("a", warps_lo=2, warps_hi=2), TraceError),
        (lambda: T.WSRole("a", warps_lo=0, warps_hi=1, max_nreg=7), TraceError),
        (lambda: T.WSPipeline("p", [A], 0), TraceError),
        (lambda: T.annotate_ws_schedule({}), TraceTypeError),
        (lambda: schedule(scopes=[T.WSScope("a", {"load": ["copy"]})]).as_node(), TraceTypeError),
    ],
)
def test_wrong_parts_of_schedules(make, error):
    with pytest.raises(error):
        make()


@pytest.mark.parametrize("swizzle", [1, 2, 3, 8])
@pytest.mark.parametrize("column_major", [True, False])
@pytest.mark.parametrize(("rows", "columns"), [(4, 6), (5, 7), (1, 3)])
def test_every_tile_is_visited_once(rows, columns, swizzle, column_major):
    tiles = T.PersistentTileScheduler(rows, columns, 2, swizzle, column_major, stateful=False)
    seen = [tuple(map(const_int, tiles.coord(t))) for t in range(rows * columns)]
    assert sorted(seen) == [(m, n) for m in range(rows) for n in range(columns)]
    if swizzle == 1:
        assert seen[:2] == ([(0, 0), (1, 0)] if column_major and rows > 1 else [(0, 0), (0, 1)])


def test_neighbours_in_a_panel_share_operands():
    tiles = T.PersistentTileScheduler(4, 6, 2, swizzle_size=2, stateful=False)
    assert [tiles.coord(t) for t in range(4)] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_persistent_kernel():
    @T.prim_func
    def kernel(C: T.Tensor((4, 6), T.int32)):
        with T.Kernel(3, threads=32) as worker:
            tiles = T.PersistentTileScheduler(4, 6, 3)
            tiles.init(worker)
            while tiles.valid():
                C[tiles.m_idx, tiles.n_idx] = tiles.current_iter
                tiles.next_tile()

    text = kernel.script()
    assert "while" in text and text.count("local.var") == 4 and "tiles_m_idx[0]" in text
    assert isinstance(kernel.body, tir.For)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: T.PersistentTileScheduler(0, 4, 2), "num_m_tiles must be >= 1"),
        (lambda: T.PersistentTileScheduler(4, 4, 2, swizzle_size=0), "swizzle_size 0"),
        (lambda: T.PersistentTileScheduler(4, 4, 2).m_idx, "call init"),
        (lambda: T.PersistentTileScheduler(4, 4, 2, stateful=False).init(0), "stateful=False"),
        (lambda: T.BaseTileScheduler().update_current_idx(), "must implement update_current_idx"),
    ],
)
def test_wrong_schedulers(make, message):
    with pytest.raises(TraceError, match=message):
        make()


def test_dynamic_sizes():
    rows = tir.Var("m", "int32")
    m, n = T.PersistentTileScheduler(rows, 4, 2, stateful=False).coord(tir.Var("t", "int32"))
    assert isinstance(m, ir.Expr) and isinstance(n, ir.Expr)
