"""Programs written for threads: indices, shuffles, votes, barriers, foreign functions."""

from __future__ import annotations

import pytest
import torch
from emulated_ops import compiles, emulate, interpreted

import tilelang.language as T

TWICE = "__device__ float twice(float x) { return 2 * x; }"
PUT = "__device__ void put(float* to, const float* from) { *to = *from + 1; }"


def both(program, *args, **options):
    """The emulated result, which equals the interpreted one."""
    compiles(program)
    result = emulate(program, *args, **options)
    assert torch.equal(result, interpreted(program, *args, **options))
    return result


def test_votes_and_reductions_of_a_warp():
    @T.prim_func
    def program(A: T.Tensor((64,), "int32"), B: T.Tensor((10, 64), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            B[0, tx] = T.any_sync(A[tx] > 50)
            B[1, tx] = T.all_sync(A[tx] >= 32)
            B[2, tx] = T.cast(T.ballot_sync(A[tx] % 2 == 0), "int32")
            B[3, tx] = T.warp_reduce_sum(A[tx])
            B[4, tx] = T.warp_reduce_max(A[tx])
            B[5, tx] = T.warp_reduce_bitor(A[tx])
            B[6, tx] = T.cast(T.match_any_sync(A[tx] % 4), "int32")
            B[7, tx] = T.syncthreads_count(A[tx] % 3 == 0)
            B[8, tx] = T.syncthreads_or(A[tx] == 40)
            B[9, tx] = T.syncthreads_and(A[tx] < 63)

    both(program, torch.arange(64, dtype=torch.int32))


@pytest.mark.parametrize("dtype", ["int32", "float32", "float16", "float64"])
def test_shuffles(dtype):
    @T.prim_func
    def program(A: T.Tensor((64,), dtype), B: T.Tensor((5, 64), dtype)):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            B[0, tx] = T.shfl_xor(A[tx], 3)
            B[1, tx] = T.shfl_up(A[tx], 5)
            B[2, tx] = T.shfl_down(A[tx], 2)
            B[3, tx] = T.shfl_sync(A[tx], 9)
            B[4, tx] = T.shfl_down(A[tx], 1, 8)

    both(program, torch.arange(64).to(getattr(torch, dtype)))


def test_indices():
    @T.prim_func
    def program(B: T.Tensor((5, 256), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            B[0, tx] = T.get_lane_idx()
            B[1, tx] = T.get_warp_idx()
            B[2, tx] = T.get_warp_group_idx()
            B[3, tx] = T.get_lane_idx(16)
            B[4, tx] = 0
            if T.shuffle_elect(64):
                B[4, tx] = 1

    b = both(program)
    t = torch.arange(256, dtype=torch.int32)
    assert torch.equal(b[:4], torch.stack([t % 32, t // 32, t // 128, t % 16]))
    assert b[4].sum() == 4


@pytest.mark.parametrize("threads", [(64,), (8, 8), (4, 2, 8)])
def test_several_thread_dimensions_and_an_exchange(threads):
    x, y, z = (*threads, 1, 1)[:3]

    @T.prim_func
    def program(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=threads):
            number = T.get_thread_binding(0)
            if y > 1:
                number = number + T.get_thread_binding(1) * x
            if z > 1:
                number = number + T.get_thread_binding(2) * x * y
            line = T.alloc_shared((64,), "int32")
            own = T.alloc_local((2,), "int32")
            line[number] = A[number]
            T.sync_threads()
            own[0] = line[63 - number]
            own[1] = line[(number + 1) % 64]
            B[number] = own[0] * 1000 + own[1]

    both(program, torch.arange(64, dtype=torch.int32))


def test_a_barrier_the_program_lacks_is_added():
    @T.prim_func
    def program(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            line = T.alloc_shared((128,), "int32")
            line[tx] = A[tx]
            for step in T.serial(3):
                next_value = line[(tx + 1) % 128]
                line[tx] = next_value + step
            B[tx] = line[tx]

    a = torch.arange(128, dtype=torch.int32)
    assert torch.equal(emulate(program, a), a.roll(-3) + 3)


def test_foreign_functions_and_addresses():
    @T.prim_func
    def program(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.import_source(TWICE + "\n" + PUT)
            tx = T.get_thread_binding()
            T.assume(tx < 64)
            if tx < 32:
                B[tx] = T.call_extern("float32", "twice", T.__ldg(A[tx]))
            else:
                T.call_extern("void", "put", T.access_ptr(B[tx], "w"), T.address_of(A[tx]))

    a = torch.arange(64).float()
    expected = torch.cat([2 * a[:32], a[32:] + 1])
    assert torch.equal(emulate(program, a), expected)
    compiles(program)


def test_a_foreign_function_in_a_nest():
    @T.prim_func
    def program(A: T.Tensor((96,), "float32"), B: T.Tensor((96,), "float32")):
        with T.Kernel(1, threads=64):
            T.import_source(TWICE)
            tile = T.alloc_fragment((96,), "float32")
            for i in T.Parallel(96):
                tile[i] = T.call_extern("float32", "twice", T.__ldg(A[i]))
            T.copy(tile, B)

    a = torch.arange(96).float()
    assert torch.equal(emulate(program, a), 2 * a)
    compiles(program)


def test_tile_ops_on_local_arrays_run_whole_in_every_thread():
    @T.prim_func
    def program(A: T.Tensor((8,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            mine = T.alloc_local((8,), "float32")
            T.fill(mine, 3)
            total = T.alloc_var("float32", 0)
            for i in range(8):
                total += mine[i] * A[i]
            B[tx] = total

    both(program, torch.arange(8.0))
