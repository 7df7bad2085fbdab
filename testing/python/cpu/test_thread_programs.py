"""Explicit thread programs on the CPU: staging, divergence, loops, per-thread storage."""

import pytest
import torch
from ways import TARGETS, check, execute

import tilelang
import tilelang.language as T
from tilelang.errors import KernelAssertionError, SemanticError, UnsupportedError


def integers(*shape, low=-1000, high=1000):
    return torch.randint(low, high, shape, dtype=torch.int32)


def test_staging_through_shared_memory():
    @T.prim_func
    def program(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            tile = T.alloc_shared((64,), "float32")
            tile[tx] = A[bx, tx]
            T.sync_threads()
            B[bx, tx] = tile[63 - tx]

    check(program, torch.randn(4, 64), torch.zeros(4, 64))


def test_a_tree_reduction_with_barriers_in_a_loop():
    @T.prim_func
    def program(A: T.Tensor((128,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((128,), "int32")
            tile[tx] = A[tx]
            T.sync_threads()
            for step in T.serial(7):
                if tx < 64 >> step:
                    tile[tx] += tile[tx + (64 >> step)]
                T.sync_threads()
            if tx == 0:
                B[0] = tile[0]

    a = integers(128)
    assert check(program, a, out_idx=-1)[-1].item() == a.sum()


def test_threads_in_two_and_three_dimensions():
    @T.prim_func
    def program(A: T.Tensor((8, 16), "float32"), B: T.Tensor((16, 8), "float32")):
        with T.Kernel(1, threads=(16, 4, 2)):
            x, y, z = T.get_thread_bindings()
            tile = T.alloc_shared((8, 17), "float32")
            tile[y + 4 * z, x] = A[y + 4 * z, x]
            T.sync_threads()
            linear = x + 16 * (y + 4 * z)
            B[linear // 8, linear % 8] = tile[linear % 8, linear // 8]

    a = torch.randn(8, 16)
    assert torch.equal(check(program, a, out_idx=-1)[-1], a.t())


@pytest.mark.parametrize("threads", [48, 96, 33])
def test_partial_warps(threads):
    @T.prim_func
    def program(B: T.Tensor((4, threads), "int32")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding()
            B[0, tx] = T.warp_reduce_sum(tx)
            B[1, tx] = T.shfl_down(tx * 3, 5)
            B[2, tx] = T.cast(T.ballot(tx % 3 == 0), "int32")
            B[3, tx] = T.syncthreads_count(tx % 2 == 0)

    check(program, out_idx=-1, targets=("llvm",))


def test_local_arrays_and_variables_belong_to_their_thread():
    @T.prim_func
    def program(A: T.Tensor((16, 4), "int32"), B: T.Tensor((16, 4), "int32")):
        with T.Kernel(1, threads=16):
            tx = T.get_thread_binding()
            mine = T.alloc_local((4,), "int32")
            total = T.alloc_var("int32", init=0)
            T.copy(A[tx, 0:4], mine)
            for i in T.serial(4):
                total += mine[i] * (tx + 1)
            T.sync_threads()
            for i in T.vectorized(4):
                B[tx, i] = mine[3 - i] + total

    check(program, integers(16, 4), torch.zeros(16, 4, dtype=torch.int32))


def test_a_tile_op_into_per_thread_storage_runs_in_every_thread():
    @T.prim_func
    def program(A: T.Tensor((4,), "int32"), B: T.Tensor((32, 4), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            mine = T.alloc_local((4,), "int32")
            total = T.alloc_local((1,), "int32")
            T.copy(A[0:4], mine)
            T.reduce_sum(mine, total, dim=0)
            T.sync_threads()
            for i in T.serial(4):
                B[tx, i] = mine[i] + total[0] * tx

    check(program, integers(4), torch.zeros(32, 4, dtype=torch.int32))


@pytest.mark.parametrize("use", ["parallel", "copy", "gemm"])
def test_tile_constructs_in_a_branch_of_some_threads_cover_the_tile(use):
    @T.prim_func
    def program(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding(0)
            tile = T.alloc_shared((32, 32), "float32")
            total = T.alloc_fragment((32, 32), "float32")
            T.clear(total)
            T.copy(A, tile)
            if tx >= 128 and tx < 200:
                if use == "parallel":
                    for i, j in T.Parallel(32, 32):
                        total[i, j] = tile[j, i]
                elif use == "copy":
                    T.copy(tile, total)
                else:
                    T.gemm(tile, tile, total)
            if tx > 300:
                T.fill(total, 7.0)
            T.copy(total, B)

    a = torch.randint(-4, 5, (32, 32)).float()
    check(program, a, torch.zeros(32, 32))


def test_both_branches_see_the_condition_of_before():
    @T.prim_func
    def program(B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            x = T.alloc_var("int32")
            x = tx
            if x < 10:
                x = 100 + T.shfl_sync(x, 3)
            else:
                x = x - T.shfl_sync(x, 20)
            B[tx] = x

    check(program, out_idx=-1)


def test_loops_of_different_lengths_around_exchanges():
    @T.prim_func
    def program(B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            x = T.alloc_var("int32", init=1)
            for i in T.serial(tx // 32 * 3, 5 + tx // 32):
                x += T.shfl_xor(x, 1) + i
            while x > 100 + tx // 8:
                x -= T.warp_reduce_min(tx) + 17
            B[tx] = x

    check(program, out_idx=-1)


def test_threads_leave_loops_around_barriers_one_by_one():
    @T.prim_func
    def program(A: T.Tensor((32,), "int32"), B: T.Tensor((2, 32), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            x = T.alloc_var("int32", init=0)
            turns = T.alloc_var("int32", init=0)
            for i in T.serial(10):
                if i == A[tx]:
                    break
                x += T.warp_reduce_sum(x % 5 + i)
                if x % 3 == 0:
                    x += 1
                    if tx % 2 == 0:
                        continue
                    x += 2
                turns += T.cast(T.any_sync(tx >= 0), "int32")
            B[0, tx] = x
            B[1, tx] = turns

    # Which lanes of a warp are together behind a divergent loop exit, GPUs leave open.
    args = integers(32, low=0, high=14), torch.zeros(2, 32, dtype=torch.int32)
    check(program, *args, targets=TARGETS)


def test_a_break_that_all_threads_take_together():
    @T.prim_func
    def program(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((64,), "int32")
            tile[tx] = A[tx]
            T.sync_threads()
            for i in T.serial(20):
                if tile[0] > 50:
                    break
                T.sync_threads()
                tile[tx] += tx + i + 1
                T.sync_threads()
            B[tx] = tile[tx]

    check(program, integers(64, low=0, high=9), torch.zeros(64, dtype=torch.int32))


def test_a_while_loop_over_shared_memory():
    @T.prim_func
    def program(B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            count = T.alloc_shared((1,), "int32")
            if tx == 0:
                count[0] = 5
            B[tx] = 0
            T.sync_threads()
            while count[0] > 0:
                B[tx] += tx
                T.sync_threads()
                if tx == 31:
                    count[0] -= 1
                T.sync_threads()

    assert check(program, out_idx=-1)[-1].tolist() == [5 * t for t in range(32)]


def test_barriers_and_tile_ops_under_annotations():
    @T.prim_func
    def program(A: T.Tensor((60,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((64,), "float32")
            T.annotate_safe_value({A: 5.0})
            T.copy(A[0:64], tile)
            T.sync_threads()
            B[tx] = tile[63 - tx]

    check(program, torch.randn(60), torch.zeros(64))


def test_atomics_of_threads_and_their_previous_values():
    @T.prim_func
    def program(
        C: T.Tensor((4,), "int32"), B: T.Tensor((64,), "int32"), D: T.Tensor((64,), "int32")
    ):
        with T.Kernel(2, threads=64):
            tx = T.get_thread_binding()
            counts = T.alloc_shared((4,), "int32")
            if tx < 4:
                counts[tx] = 0
            T.sync_threads()
            before = T.atomic_add(counts[tx % 4], 1, return_prev=True)
            T.sync_threads()
            T.atomic_max(C[tx % 4], before)
            T.atomic_add(B[before * 4 + tx % 4], 1)
            D[tx] = counts[tx % 4]

    check(
        program,
        torch.zeros(4, dtype=torch.int32),
        torch.zeros(64, dtype=torch.int32),
        torch.zeros(64, dtype=torch.int32),
    )


def test_values_bound_in_one_segment_are_used_in_another():
    @T.prim_func
    def program(A: T.Tensor((64,), "float16"), B: T.Tensor((64,), "float16")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((64,), "float16")
            x = A[tx] * 2
            row = tx % 8
            tile[tx] = x
            T.sync_threads()
            A[tx] = 0
            B[tx] = x + tile[row]

    check(program, torch.randn(64).half(), torch.zeros(64).half())


@pytest.mark.parametrize("target", TARGETS)
def test_a_pointer_that_depends_on_the_thread(target):
    @T.prim_func
    def program(p: T.ptr, B: T.Tensor((32, 2), "float32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            rows = T.make_tensor(p, (32, 2), "float32")
            mine = T.make_tensor(T.address_of(rows[tx, 0]), (2,), "float32")
            T.sync_threads()
            B[tx, 0] = mine[1]
            T.sync_threads()
            B[tx, 1] = mine[0]

    a, b = torch.randn(32, 2), torch.zeros(32, 2)
    tilelang.compile(program, target=target)(a.data_ptr(), b)
    assert torch.equal(b, a.flip(1))


def test_a_parallel_loop_gives_every_thread_what_it_writes():
    @T.prim_func
    def program(A: T.Tensor((1,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            x = T.alloc_var("int32", init=0)
            x = A[0]
            tile = T.alloc_shared((8,), "int32")
            for i in T.Parallel(8):
                tile[i] = x + i
            B[tx] = tile[tx % 8] + x

    check(program, integers(1), torch.zeros(32, dtype=torch.int32))


@pytest.mark.parametrize("target", TARGETS)
def test_a_parallel_loop_cannot_read_what_threads_disagree_on(target):
    @T.prim_func
    def program(A: T.Tensor((32,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            x = T.alloc_var("int32")
            x = A[T.get_thread_binding()]
            for i in T.Parallel(8):
                B[i] = x

    same = torch.full((32,), 7, dtype=torch.int32)
    assert execute(program, [same], target, out_idx=-1)[-1].tolist() == [7] * 8
    with pytest.raises(KernelAssertionError, match="x differs between threads"):
        execute(program, [torch.arange(32, dtype=torch.int32)], target, out_idx=-1)


def test_a_parallel_loop_cannot_name_the_thread():
    @T.prim_func
    def program(B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            for i in T.Parallel(8):
                B[i] = tx

    with pytest.raises(SemanticError, match="tx differs between threads"):
        tilelang.compile(program, target="llvm")


def test_a_number_of_threads_known_only_at_run_time_is_refused():
    @T.prim_func
    def program(B: T.Tensor((64,), "int32"), n: T.int32):
        for _ in T.thread_binding(1, "blockIdx.x"):
            for tx in T.thread_binding(n, "threadIdx.x"):
                B[tx] = 1

    with pytest.raises(UnsupportedError, match="constant number of threads"):
        tilelang.compile(program, target="llvm")


def test_barriers_of_the_grid_are_refused_by_name():
    @T.prim_func
    def program(B: T.Tensor((1,), "int32")):
        with T.Kernel(2):
            T.sync_grid()
            B[0] = 1

    with pytest.raises(UnsupportedError, match="T.sync_grid"):
        tilelang.compile(program, target="llvm")
