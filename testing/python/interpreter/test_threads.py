"""Thread programs: one value a thread, barriers, votes, shuffles, divergence."""

import numpy as np
import pytest
import torch

import tilelang.language as T
from tilelang.errors import UnsupportedError
from tilelang.interpreter import InterpreterError, interpret


def per_thread(function, threads=64, dtype="int32", **options):
    """What ``function(thread)`` gives in each thread of one block."""

    @T.prim_func
    def program(B: T.Tensor((threads,), dtype)):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding(0)
            B[tx] = T.cast(function(tx), dtype)

    return interpret(program, out_idx=-1, **options).tolist()


def test_threads_have_indices():
    assert per_thread(lambda tx: tx * 3) == [3 * t for t in range(64)]


def test_threads_in_three_dimensions():
    @T.prim_func
    def program(B: T.Tensor((2, 3, 4), "int32")):
        with T.Kernel(1, threads=(4, 3, 2)):
            x, y, z = T.get_thread_bindings()
            B[z, y, x] = x + 10 * y + 100 * z

    b = interpret(program, out_idx=-1)
    assert b[1, 2, 3] == 123 and b[0, 1, 2] == 12 and b.unique().numel() == 24


def test_threads_exchange_through_shared_memory():
    @T.prim_func
    def program(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((64,), "float32")
            tile[tx] = A[tx]
            T.sync_threads()
            B[tx] = tile[63 - tx]

    a = torch.randn(64)
    assert torch.equal(interpret(program, a, out_idx=-1), a.flip(0))


def test_local_memory_belongs_to_a_thread():
    @T.prim_func
    def program(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=16):
            tx = T.get_thread_binding()
            mine = T.alloc_local((4,), "int32")
            total = T.alloc_var("int32", init=0)
            T.copy(A[tx * 4 : tx * 4 + 4], mine)
            for i in T.serial(4):
                total += mine[i]
            for i in T.vectorized(4):
                B[tx * 4 + i] = mine[3 - i] + total

    a = torch.arange(64, dtype=torch.int32)
    b = interpret(program, a, out_idx=-1).reshape(16, 4)
    rows = a.reshape(16, 4)
    assert torch.equal(b, rows.flip(1) + rows.sum(1, keepdim=True).int())


def test_branches_take_their_threads():
    assert per_thread(lambda tx: T.if_then_else(tx % 2 == 0, tx, -tx)) == [
        t if t % 2 == 0 else -t for t in range(64)
    ]


def test_threads_loop_different_numbers_of_times():
    @T.prim_func
    def program(B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            n = T.alloc_var("int32", init=0)
            for i in T.serial(tx):
                if i == 20:
                    break
                n += i
            while n > 100:
                n -= 100
            B[tx] = n

    def expected(t):
        n = sum(range(min(t, 20)))
        while n > 100:
            n -= 100
        return n

    assert interpret(program, out_idx=-1).tolist() == [expected(t) for t in range(32)]


@pytest.mark.parametrize("kind", ["parallel", "copy"])
@pytest.mark.parametrize("low, high", [(0, 128), (128, 256), (255, 256)])
def test_tile_constructs_fill_the_whole_tile_in_any_branch(kind, low, high):
    """They run once, as if by all threads, when any thread reaches them."""

    @T.prim_func
    def program(A: T.Tensor((128, 128), "float16"), B: T.Tensor((128, 128), "float16")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding(0)
            tile = T.alloc_shared((128, 128), "float16")
            if low <= tx and tx < high:
                if kind == "parallel":
                    for i, j in T.Parallel(128, 128):
                        tile[i, j] = A[i, j]
                else:
                    T.copy(A, tile)
            T.copy(tile, B)

    a = torch.randn(128, 128).half()
    assert torch.equal(interpret(program, a, out_idx=-1), a)


def test_a_tile_construct_no_thread_reaches_does_not_run():
    @T.prim_func
    def program(B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            if tx > 100:
                T.fill(B, 1)

    b = torch.zeros(8, dtype=torch.int32)
    interpret(program, b)
    assert b.sum() == 0


def test_a_parallel_loop_sees_what_threads_agree_on():
    @T.prim_func
    def program(A: T.Tensor((1,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            x = T.alloc_var("int32", init=0)
            x = A[0] + tx // 32
            for i in T.Parallel(8):
                B[i] = x + i

    b = interpret(program, torch.tensor([5], dtype=torch.int32), out_idx=-1)
    assert b.tolist() == list(range(5, 13))


def test_a_parallel_loop_cannot_use_the_thread_index():
    @T.prim_func
    def program(B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            for i in T.Parallel(8):
                B[i] = tx

    with pytest.raises(InterpreterError, match="tx differs between threads"):
        interpret(program, out_idx=-1)


def test_a_parallel_loop_cannot_read_what_threads_disagree_on():
    @T.prim_func
    def program(B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            x = T.alloc_var("int32")
            x = T.get_thread_binding()
            for i in T.Parallel(8):
                B[i] = x

    with pytest.raises(InterpreterError, match="differs between threads"):
        interpret(program, out_idx=-1)


def barrier(limit, *arguments):
    @T.prim_func
    def program(B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            if tx < limit:
                T.sync_threads(*arguments)
            B[tx] = tx

    return program


def test_all_threads_must_reach_a_barrier():
    interpret(barrier(64), out_idx=-1)
    with pytest.raises(InterpreterError, match="only 32 of 64 threads reach this barrier"):
        interpret(barrier(32), out_idx=-1)


def test_a_named_barrier_counts_its_threads():
    interpret(barrier(32, 1, 32), out_idx=-1)
    with pytest.raises(InterpreterError, match="waits for 48 threads, but 32 reach it"):
        interpret(barrier(32, 1, 48), out_idx=-1)


def test_a_barrier_without_thread_indices_needs_no_threads():
    @T.prim_func
    def program(A: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=64):
            T.sync_threads()
            T.atomic_add(A[0], 1)

    a = torch.zeros(1, dtype=torch.int32)
    interpret(program, a)
    assert a.tolist() == [1]


@pytest.mark.parametrize(
    "function, source",
    [
        (lambda x: T.shfl_down(x, 3), lambda t: t + 3 if t % 32 + 3 < 32 else t),
        (lambda x: T.shfl_up(x, 3), lambda t: t - 3 if t % 32 >= 3 else t),
        (lambda x: T.shfl_xor(x, 5), lambda t: t ^ 5),
        (lambda x: T.shfl_sync(x, 7), lambda t: t // 32 * 32 + 7),
        (lambda x: T.shfl_xor(x, 1, 8), lambda t: t ^ 1),
    ],
)
def test_shuffles_read_other_lanes_of_the_warp(function, source):
    assert per_thread(lambda tx: function(tx * 10)) == [source(t) * 10 for t in range(64)]


def test_a_butterfly_reduces_a_warp():
    @T.prim_func
    def program(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            x = T.alloc_var("float32")
            x = A[tx]
            for step in T.serial(5):
                x = x + T.shfl_xor(x, 1 << step)
            B[tx] = x

    a = torch.arange(64.0)
    b = interpret(program, a, out_idx=-1)
    assert b.tolist() == [float(a[:32].sum())] * 32 + [float(a[32:].sum())] * 32


def test_warp_reductions():
    assert per_thread(lambda tx: T.warp_reduce_max(tx)) == [31] * 32 + [63] * 32
    assert per_thread(lambda tx: T.warp_reduce_sum(tx))[0] == sum(range(32))


def test_votes():
    assert per_thread(lambda tx: T.any_sync(tx == 40)) == [0] * 32 + [1] * 32
    assert per_thread(lambda tx: T.all_sync(tx < 40)) == [1] * 32 + [0] * 32
    assert per_thread(lambda tx: T.ballot(tx % 2), dtype="int64") == [0xAAAAAAAA] * 64
    assert per_thread(lambda tx: T.activemask(), dtype="int64") == [0xFFFFFFFF] * 64


def test_matches():
    groups = per_thread(lambda tx: T.match_any_sync(tx // 16), dtype="int64")
    assert groups == ([0xFFFF] * 16 + [0xFFFF0000] * 16) * 2
    assert per_thread(lambda tx: T.match_all_sync(tx // 32), dtype="int64") == [0xFFFFFFFF] * 64


def test_block_votes():
    assert per_thread(lambda tx: T.syncthreads_count(tx < 20)) == [20] * 64
    assert per_thread(lambda tx: T.syncthreads_and(tx < 20)) == [0] * 64
    assert per_thread(lambda tx: T.syncthreads_or(tx < 20)) == [1] * 64


def test_lane_and_warp_numbers():
    assert per_thread(lambda tx: T.get_lane_idx()) == [t % 32 for t in range(64)]
    assert per_thread(lambda tx: T.get_warp_idx()) == [t // 32 for t in range(64)]
    assert per_thread(lambda tx: T.get_lane_idx(), warp_size=64) == list(range(64))
    assert per_thread(lambda tx: T.get_warp_group_idx(), threads=256)[::128] == [0, 1]


def test_one_thread_of_each_group_is_elected():
    elected = per_thread(lambda tx: T.cast(T.shuffle_elect(32), "int32"))
    assert [t for t, e in enumerate(elected) if e] == [0, 32]
    assert sum(per_thread(lambda tx: T.cast(T.shuffle_elect(0), "int32"))) == 1


def test_a_vote_only_hears_active_threads():
    @T.prim_func
    def program(B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            B[tx] = -1
            if tx < 8:
                B[tx] = T.all_sync(tx < 8)

    assert interpret(program, out_idx=-1).tolist() == [1] * 8 + [-1] * 24


def test_threads_that_write_different_values_to_one_place_race():
    @T.prim_func
    def program(B: T.Tensor((1,), "int32"), same: T.int32):
        with T.Kernel(1, threads=32):
            B[0] = T.if_then_else(same == 1, 5, T.get_thread_binding())

    b = torch.zeros(1, dtype=torch.int32)
    interpret(program, b, 1)
    assert b.tolist() == [5]
    with pytest.raises(InterpreterError, match="threads write different values"):
        interpret(program, b, 0)


def test_a_partial_warp():
    assert per_thread(lambda tx: T.warp_reduce_sum(T.cast(1, "int32") + tx * 0), threads=40) == (
        [32] * 32 + [8] * 8
    )


@pytest.mark.parametrize("name", ["sync_grid", "sync_global"])
def test_barriers_of_the_grid_are_refused_by_name(name):
    @T.prim_func
    def program(B: T.Tensor((1,), "int32")):
        with T.Kernel(2):
            getattr(T, name)()
            B[0] = 1

    with pytest.raises(UnsupportedError, match=rf"T\.{name} needs all blocks at the same time"):
        interpret(program, out_idx=-1)


def test_asynchronous_constructs_are_refused_by_name():
    @T.prim_func
    def program(B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            T.ptx_wait_group(0)
            B[0] = 1

    with pytest.raises(UnsupportedError, match="T.ptx_wait_group runs on GPUs and in the emulator"):
        interpret(program, out_idx=-1)


def test_tile_ops_on_local_memory_run_in_each_thread():
    @T.prim_func
    def program(A: T.Tensor((8, 4), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=8):
            tx = T.get_thread_binding()
            row = T.alloc_local((4,), "float32")
            total = T.alloc_local((1,), "float32")
            for j in T.serial(4):
                row[j] = A[tx, j]
            T.reduce_sum(row, total, dim=0)
            B[tx] = total[0]

    a = np.arange(32, dtype=np.float32).reshape(8, 4)
    assert interpret(program, a, out_idx=-1).tolist() == a.sum(1).tolist()
