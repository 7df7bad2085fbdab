"""Votes, ballots, matches and block votes of explicit thread programs."""

import pytest

import tilelang
import tilelang.language as T

VOTES = {
    "any_sync": lambda p: T.any_sync(p),
    "all_sync": lambda p: T.all_sync(p),
    "ballot_sync": lambda p: T.ballot_sync(p),
    "ballot": lambda p: T.ballot(p),
    "syncthreads_count": lambda p: T.syncthreads_count(p),
    "syncthreads_and": lambda p: T.syncthreads_and(p),
    "syncthreads_or": lambda p: T.syncthreads_or(p),
}


@pytest.mark.parametrize("name", VOTES)
def test_a_float_predicate_is_a_type_error(name):
    with pytest.raises(TypeError, match="requires an integer or boolean predicate"):
        VOTES[name](T.float32(1.0))


@pytest.mark.parametrize("name", VOTES)
@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_integers_and_bools_give_a_call(name, dtype):
    call = VOTES[name](T.Var("p", dtype))
    assert type(call).__name__ == "Call"


def per_thread(expression, dtype="int32", threads=32):
    """Run ``expression(tx)`` in every thread of a block and return what each got."""

    @T.prim_func
    def main(B: T.Tensor((threads,), dtype)):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding(0)
            B[tx] = expression(tx)

    return tilelang.compile(main, out_idx=-1)().tolist()


@pytest.mark.devices
@pytest.mark.parametrize(
    ("predicate", "any_lane", "all_lanes"),
    [
        (lambda tx: tx == 17, 1, 0),
        (lambda tx: tx >= 0, 1, 1),
        (lambda tx: tx < 0, 0, 0),
    ],
)
def test_any_and_all_see_every_lane(predicate, any_lane, all_lanes):
    any_values = per_thread(lambda tx: T.any_sync(predicate(tx)))
    all_values = per_thread(lambda tx: T.all_sync(predicate(tx)))
    assert [int(v != 0) for v in any_values] == [any_lane] * 32
    assert [int(v != 0) for v in all_values] == [all_lanes] * 32


@pytest.mark.devices
def test_an_integer_predicate_counts_as_non_zero():
    assert all(per_thread(lambda tx: T.any_sync(tx % 2 * 4)))


@pytest.mark.devices
def test_ballots_are_64_bit_masks_of_the_lower_half():
    expected = sum(1 << lane for lane in range(32) if lane % 3 == 0)
    assert per_thread(lambda tx: T.ballot(tx % 3 == 0), "uint64") == [expected] * 32
    assert per_thread(lambda tx: T.ballot_sync(tx % 3 == 0), "uint64") == [expected] * 32
    assert per_thread(lambda tx: T.ballot(1), "uint64") == [0xFFFFFFFF] * 32
    assert per_thread(lambda tx: T.activemask(), "uint64") == [0xFFFFFFFF] * 32
    assert str(T.ballot(T.Var("p", "int32")).ty.dtype) == "uint64"


@pytest.mark.devices
def test_find_first_set_on_a_ballot_is_the_first_lane_plus_one():
    assert per_thread(lambda tx: T.__ffs(T.ballot(tx >= 5))) == [6] * 32
    assert per_thread(lambda tx: T.__ffs(T.ballot(tx > 40))) == [0] * 32


@pytest.mark.devices
def test_find_nth_set_bit():
    def third(tx):
        return T.__fns(T.cast(T.ballot(tx % 4 == 1), "uint32"), 0, 3)

    assert per_thread(third) == [9] * 32


@pytest.mark.devices
def test_block_votes():
    count = per_thread(lambda tx: T.syncthreads_count(tx % 2 == 0))
    both = per_thread(lambda tx: T.syncthreads_and(tx < 31))
    either = per_thread(lambda tx: T.syncthreads_or(tx == 31))
    assert count == [16] * 32
    assert not any(both) and all(either)


@pytest.mark.devices
def test_a_block_of_several_warps_votes_together():
    assert per_thread(lambda tx: T.syncthreads_count(tx % 2 == 0), threads=128) == [64] * 128


@pytest.mark.devices
def test_matches():
    expected = [
        sum(1 << other for other in range(32) if other % 4 == lane % 4) for lane in range(32)
    ]
    assert per_thread(lambda tx: T.match_any_sync(tx % 4), "uint32") == expected
    assert per_thread(lambda tx: T.match_all_sync(tx // 32), "uint32") == [0xFFFFFFFF] * 32
    assert per_thread(lambda tx: T.match_all_sync(tx), "uint32") == [0] * 32
