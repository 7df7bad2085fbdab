"""Shuffles, votes and warp reductions on the CPU, over widths, masks, dtypes and branches."""

import pytest
import torch
from ways import check

import tilelang.language as T

FLOATS_AND_INTEGERS = [
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "int8",
    "int32",
    "int64",
    "uint16",
]


def per_thread(function, dtype, *inputs, threads=64, targets=("llvm",)):
    """Check ``B[t] = function(t, A[t])`` against the interpreter."""
    given = inputs[0] if inputs else torch.zeros(threads, dtype=torch.int32)
    kind = T.dtype(given.dtype)

    @T.prim_func
    def program(A: T.Tensor((threads,), kind), B: T.Tensor((threads,), dtype)):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding()
            B[tx] = T.cast(function(tx, A[tx]), dtype)

    return check(program, given, out_idx=-1, targets=targets)[-1].tolist()


def sample(dtype, count=64):
    kind = T.dtype(dtype).as_torch()
    if kind.is_floating_point:
        return torch.randn(count).to(kind)
    return torch.randint(0 if "u" in dtype else -100, 100, (count,)).to(kind)


@pytest.mark.parametrize("dtype", FLOATS_AND_INTEGERS)
def test_shuffles_move_values_of_every_dtype(dtype):
    per_thread(lambda t, x: T.shfl_xor(x, 5), dtype, sample(dtype))
    per_thread(lambda t, x: T.shfl_down(x, 3), dtype, sample(dtype))


@pytest.mark.parametrize("width", [1, 2, 8, 16, 32])
@pytest.mark.parametrize("name", ["shfl_sync", "shfl_xor", "shfl_up", "shfl_down"])
def test_shuffles_in_groups_of_lanes(name, width):
    shuffle = getattr(T, name)
    per_thread(lambda t, x: shuffle(t * 10, 3, width), "int32")
    per_thread(lambda t, x: shuffle(t * 10, t % 7, width), "int32")


def test_shuffles_as_c_source():
    per_thread(
        lambda t, x: T.shfl_xor(x, 1) + T.shfl_up(x, 2, 8),
        "float32",
        sample("float32"),
        targets=("c",),
    )
    per_thread(lambda t, x: T.ballot(t % 3 == 0), "int64", targets=("c",))


@pytest.mark.parametrize("dtype", FLOATS_AND_INTEGERS)
@pytest.mark.parametrize("name", ["warp_reduce_max", "warp_reduce_min"])
def test_warp_extremes(name, dtype):
    per_thread(lambda t, x: getattr(T, name)(x), dtype, sample(dtype))


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint16", "int64"])
@pytest.mark.parametrize("name", ["warp_reduce_sum", "warp_reduce_bitand", "warp_reduce_bitor"])
def test_warp_reductions_of_integers(name, dtype):
    per_thread(lambda t, x: getattr(T, name)(x), dtype, sample(dtype))


def test_a_warp_sum_of_small_floats_is_exact():
    values = torch.randint(-8, 9, (64,)).float()
    got = per_thread(lambda t, x: T.warp_reduce_sum(x), "float32", values)
    assert got[0] == values[:32].sum() and got[63] == values[32:].sum()


@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0x0000FFFF, 0x80000001])
def test_votes_under_masks(mask):
    mask = T.uint32(mask)
    per_thread(lambda t, x: T.any_sync(t == 17, mask), "int32")
    per_thread(lambda t, x: T.all_sync(t % 2 == 0, mask), "int32")
    per_thread(lambda t, x: T.ballot_sync(t % 5, mask), "int64")


def test_votes_of_booleans_and_of_wide_integers():
    assert per_thread(lambda t, x: T.any_sync(t == 40), "int32") == [0] * 32 + [1] * 32
    assert per_thread(lambda t, x: T.ballot(t >= 32), "int64") == [0] * 32 + [0xFFFFFFFF] * 32
    wide = torch.full((64,), 1 << 40, dtype=torch.int64)
    assert per_thread(lambda t, x: T.all_sync(x), "int32", wide) == [1] * 64


def test_the_position_of_lanes_in_a_ballot():
    assert per_thread(lambda t, x: T.__ffs(T.ballot(t % 32 > 11)), "int32") == [13] * 64
    third = per_thread(lambda t, x: T.__fns(T.cast(T.ballot(t % 4 == 1), "uint32"), 0, 3), "int32")
    assert third == [9] * 64


def test_matches_of_integers_and_floats():
    per_thread(lambda t, x: T.match_any_sync(t // 3), "int64")
    per_thread(lambda t, x: T.match_all_sync(t // 32), "int64")
    per_thread(lambda t, x: T.match_all_sync(t // 31), "int64")
    repeated = torch.tensor([0.5, 1.5, 0.5, 2.5] * 16)
    per_thread(lambda t, x: T.match_any_sync(x), "int64", repeated)


@pytest.mark.parametrize("threads", [32, 64, 100])
def test_votes_of_the_block(threads):
    for vote in (T.syncthreads_count, T.syncthreads_and, T.syncthreads_or):
        per_thread(lambda t, x, vote=vote: vote(t % 3 == 0), "int32", threads=threads)
        per_thread(lambda t, x, vote=vote: vote(t >= 0), "int32", threads=threads)


def test_only_active_lanes_take_part():
    @T.prim_func
    def program(B: T.Tensor((5, 64), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            if tx % 32 < 20 - tx // 32:
                B[0, tx] = T.warp_reduce_sum(tx)
                if tx % 2 == 1:
                    B[1, tx] = T.cast(T.activemask(), "int32")
                    B[2, tx] = T.all_sync(tx % 2 == 1)
                    B[3, tx] = T.warp_reduce_max(tx)
                    B[4, tx] = T.cast(T.match_any_sync(tx // 8), "int32")

    check(program, torch.zeros(5, 64, dtype=torch.int32))


def test_lane_and_warp_numbers():
    for index in (T.get_lane_idx, T.get_warp_idx, T.get_warp_idx_sync):
        per_thread(lambda t, x, index=index: index(), "int32")
        per_thread(lambda t, x, index=index: index(16), "int32")


def test_one_active_thread_of_each_group_is_elected():
    @T.prim_func
    def program(B: T.Tensor((3, 96), "int32")):
        with T.Kernel(1, threads=96):
            tx = T.get_thread_binding()
            B[0, tx] = T.cast(T.shuffle_elect(32), "int32")
            B[1, tx] = T.cast(T.shuffle_elect(0), "int32")
            if tx % 5 == 3:
                B[2, tx] = T.cast(T.shuffle_elect(32), "int32") + 1

    b = check(program, torch.zeros(3, 96, dtype=torch.int32))[0]
    assert b[0].nonzero().flatten().tolist() == [0, 32, 64] and b[1].sum() == 1


def test_exchanges_nested_in_expressions_conditions_and_indices():
    @T.prim_func
    def program(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((64,), "int32")
            tile[tx] = A[tx]
            T.sync_threads()
            x = T.shfl_xor(T.shfl_up(tile[T.shfl_xor(tx, 1)], 1) + tx, 2)
            if T.any_sync(x > 0) != 0:
                x_plus = T.shfl_sync(x, T.warp_reduce_min(tx) % 32)
                B[tx] = x + x_plus
            else:
                B[tx] = -1

    check(
        program, torch.randint(-5, 9, (64,), dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    )


@pytest.mark.parametrize(
    "vote", [T.any_sync, T.all_sync, T.ballot_sync, T.ballot, T.syncthreads_count]
)
def test_a_float_is_no_predicate(vote):
    with pytest.raises(TypeError, match="requires an integer or boolean predicate"):

        @T.prim_func
        def program(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "int64")):
            with T.Kernel(1, threads=32):
                tx = T.get_thread_binding()
                B[tx] = T.cast(vote(A[tx]), "int64")
