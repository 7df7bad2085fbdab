"""Shuffles, votes, indices and barriers: meaning over the lanes of a warp, and argument checks."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import ir
from tvm import tirx as tir

import tilelang.language as T
from tilelang.cuda import language as cuda
from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder, intrin

LANES = np.arange(32)
FULL = np.full(32, True)
MASK = np.uint64(intrin.FULL_MASK)


def meaning(name: str, *values: object, active: np.ndarray = FULL) -> np.ndarray:
    """The reference of a warp intrinsic; scalars are the same in all lanes."""
    arrays = [np.broadcast_to(np.asarray(v), active.shape) for v in values]
    return intrin.get(name).reference(("int32",) * (len(values) + 1), active, *arrays)


def traced(function: object, *args: object) -> tir.Stmt:
    """The one statement that a language function emits."""
    with builder.activate(builder.Builder("f")) as active:
        assert function(*args) is None
    (stmt,) = active.finish()
    return stmt


def var(kind: str) -> ir.Var:
    return tir.Var("x", kind)


def lane_by_lane(name: str, value: np.ndarray, amount: int, width: int) -> list[int]:
    """The shuffles as the CUDA manual describes them, one lane at a time."""
    result = []
    for lane in range(32):
        first = lane - lane % width
        source = {
            "shfl_sync": first + amount % width,
            "shfl_xor": lane ^ amount,
            "shfl_up": lane - amount,
            "shfl_down": lane + amount,
        }[name]
        low = 0 if name == "shfl_xor" else first
        result.append(int(value[source if low <= source < first + width else lane]))
    return result


@pytest.mark.parametrize("name", ["shfl_sync", "shfl_xor", "shfl_up", "shfl_down"])
@pytest.mark.parametrize("width", [32, 16, 4])
@pytest.mark.parametrize("amount", [0, 1, 5, 16, 31])
def test_shuffles(name, width, amount):
    value = LANES * 10
    assert meaning(name, value, amount, width, MASK).tolist() == lane_by_lane(
        name, value, amount, width
    )


def test_shuffle_of_several_warps_at_once():
    active = np.full((2, 32), True)
    value = np.arange(64).reshape(2, 32)
    found = intrin.get("shfl_xor").reference(
        (), active, value, np.full((2, 32), 1), np.full((2, 32), 32)
    )
    assert np.array_equal(found, value ^ 1)


def test_votes():
    third = LANES % 3 == 0
    assert meaning("any_sync", third, MASK).tolist() == [1] * 32
    assert meaning("all_sync", third, MASK).tolist() == [0] * 32
    assert meaning("all_sync", third, np.uint64(0b1001)).tolist() == [1] * 32
    assert meaning("any_sync", third, np.uint64(0b0110)).tolist() == [0] * 32
    assert meaning("ballot_sync", third, np.uint64(0xFF))[5] == 0b01001001
    assert meaning("ballot_sync", 1, MASK)[0] == 0xFFFFFFFF


def test_inactive_lanes_do_not_vote():
    active = LANES < 4
    assert meaning("activemask", active=active)[0] == 0b1111
    assert meaning("ballot_sync", LANES >= 2, MASK, active=active)[0] == 0b1100
    assert meaning("any_sync", LANES == 9, MASK, active=active)[0] == 0
    assert meaning("all_sync", LANES < 4, MASK, active=active)[0] == 1


def test_a_warp_of_64_lanes():
    active = np.full(64, True)
    assert meaning("ballot_sync", 1, MASK, active=active)[0] == 2**64 - 1


def test_matches():
    pairs = LANES // 2
    assert meaning("match_any_sync", pairs, MASK)[3] == 0b1100
    assert meaning("match_all_sync", 7, MASK)[0] == 0xFFFFFFFF
    assert meaning("match_all_sync", pairs, MASK)[0] == 0
    assert meaning("match_all_sync", pairs, np.uint64(0b11))[0] == 0b11


def test_reductions_ignore_inactive_lanes():
    active = (LANES >= 4) & (LANES < 8)
    assert meaning("warp_reduce_sum", LANES, active=active)[0] == 22
    assert meaning("warp_reduce_max", -LANES, active=active)[0] == -4
    assert meaning("warp_reduce_min", LANES, active=active)[0] == 4
    assert meaning("warp_reduce_bitand", LANES, active=active)[0] == 4
    assert meaning("warp_reduce_bitor", LANES, active=active)[0] == 7
    assert meaning("warp_reduce_max", np.where(LANES == 3, np.nan, 1.0))[0] == 1.0


def test_indices_in_the_block():
    active = np.full((8, 32), True)
    assert meaning("get_lane_idx", active=active)[2, 5] == 5
    assert meaning("get_warp_idx", active=active)[2, 5] == 2
    assert meaning("get_warp_idx", 64, active=active)[3, 5] == 1
    assert meaning("get_warp_group_idx", active=active)[5, 0] == 1
    assert meaning("get_warp_group_idx", 32, 2, active=active)[5, 0] == 2
    elected = meaning("shuffle_elect", 128, active=active)
    assert elected.sum() == 2 and elected[4, 0]
    assert meaning("shuffle_elect", 0, active=active).sum() == 1


def test_result_types():
    x = var("float16")
    assert T.shfl_sync(x, 0).ty == "float16" and T.shfl_up(x, 1).ty == "float16"
    assert T.any_sync(1).ty == "int32" and T.ballot(True).ty == "uint64"
    assert T.ballot_sync(var("bool"), 0xF).ty == "uint64" and T.activemask().ty == "uint64"
    assert cuda.match_any_sync(x).ty == "uint32" and T.get_lane_idx().ty == "int32"
    assert T.warp_reduce_sum(x).ty == "float16" and T.syncthreads_count(1).ty == "int32"
    assert cuda.shuffle_elect(32).ty == "bool" and len(T.get_warp_idx_sync(64).args) == 1


@pytest.mark.parametrize(
    "vote",
    [
        "any_sync",
        "all_sync",
        "ballot_sync",
        "ballot",
        "syncthreads_count",
        "syncthreads_and",
        "syncthreads_or",
    ],
)
def test_votes_refuse_a_float_predicate(vote):
    with pytest.raises(TypeError, match="requires an integer or boolean predicate"):
        getattr(T, vote)(1.5)
    for predicate in (1, True, var("int64"), var("bool")):
        assert isinstance(getattr(T, vote)(predicate), ir.Call)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: T.shfl_xor(var("float32"), 1.5), "T.shfl_xor requires an integer, found float32"),
        (lambda: T.shfl_sync("x", 0), "found str"),
        (
            lambda: T.warp_reduce_bitand(var("float32")),
            "requires an integer argument, found float32",
        ),
        (lambda: cuda.get_warp_group_idx("32"), "found str"),
    ],
)
def test_wrong_arguments(make, message):
    with pytest.raises(TraceTypeError, match=message):
        make()


def test_barriers():
    assert repr(traced(T.sync_threads)) == "T.sync_threads()"
    assert repr(traced(T.sync_threads, 3, 64)) == "T.sync_threads(3, 64)"
    assert repr(traced(T.sync_warp, 0xFF)) == "T.sync_warp(T.uint32(255))"
    assert traced(T.sync_grid).value.op.name == "tl.sync_grid"
    assert traced(T.sync_global).span.source_name.name == __file__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, 64), "arrive_count needs a barrier_id"),
        ((16,), "must be 0 to 15"),
        ((-1,), "must be 0 to 15"),
    ],
)
def test_wrong_barriers(arguments, message):
    with pytest.raises(TraceError, match=message):
        traced(T.sync_threads, *arguments)


def test_a_statement_needs_a_kernel():
    with pytest.raises(TraceError, match="T.sync_threads is only valid inside a traced kernel"):
        T.sync_threads()
