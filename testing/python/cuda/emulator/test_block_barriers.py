"""Barriers of a block: who meets whom, and what is said when they never do."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import run

from tilelang.errors import EmulatorError

REVERSE = """
#include <tl/sync.h>
extern "C" __global__ void kernel(int* out) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = threadIdx.x;
  tl::sync_threads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
"""


@pytest.mark.parametrize("threads", [1, 31, 32, 48, 128, 1024])
def test_a_barrier_makes_shared_memory_visible(threads):
    out = np.zeros((2, threads), np.int32)
    run(REVERSE, out, block=threads, grid=2, dyn_smem=4 * threads)
    assert (out == np.arange(threads)[::-1]).all()


def test_three_dimensional_blocks_and_static_shared_memory():
    source = """
    extern "C" __global__ void kernel(int* out) {
      __shared__ int tile[4][3][2];
      tile[threadIdx.z][threadIdx.y][threadIdx.x] =
          100 * threadIdx.z + 10 * threadIdx.y + threadIdx.x;
      __syncthreads();
      int i = threadIdx.x + 2 * (threadIdx.y + 3 * threadIdx.z);
      out[24 * (blockIdx.y * gridDim.x + blockIdx.x) + i] = (&tile[0][0][0])[23 - i];
    }
    """
    out = np.zeros((2, 3, 24), np.int32)
    run(source, out, block=(2, 3, 4), grid=(3, 2))
    values = [100 * z + 10 * y + x for z in range(4) for y in range(3) for x in range(2)]
    assert (out == values[::-1]).all()


def test_threads_that_have_exited_are_not_waited_for():
    source = """
    extern "C" __global__ void kernel(int* out) {
      if (threadIdx.x >= 40) return;
      out[threadIdx.x] = __syncthreads_count(threadIdx.x % 2);
    }
    """
    out = np.zeros(40, np.int32)
    run(source, out, block=64)
    assert (out == 20).all()


def test_predicates_are_combined():
    source = """
    #include <tl/sync.h>
    extern "C" __global__ void kernel(int* out, int odd) {
      bool predicate = threadIdx.x != odd;
      int count = tl::syncthreads_count(predicate);
      int all = tl::syncthreads_and(predicate);
      int any = tl::syncthreads_or(!predicate);
      out[threadIdx.x] = count * 100 + all * 10 + any;
    }
    """
    out = np.zeros(64, np.int32)
    run(source, out, 5, block=64)
    assert (out == 63 * 100 + 1).all()
    run(source, out, 64, block=64)
    assert (out == 64 * 100 + 10).all()


def test_named_barriers_connect_producers_and_consumers():
    source = """
    #include <tl/sync.h>
    extern "C" __global__ void kernel(int* out) {
      __shared__ int tile[32];
      if (threadIdx.x < 32) {
        for (int i = 0; i < 4; ++i) {
          tl::named_barrier_sync(1, 64);
          tile[threadIdx.x] = i * 100 + threadIdx.x;
          tl::named_barrier_arrive(2, 64);
        }
      } else {
        for (int i = 0; i < 4; ++i) {
          tl::named_barrier_arrive(1, 64);
          tl::sync_threads(2, 64);
          out[i * 32 + threadIdx.x - 32] = tile[63 - threadIdx.x];
        }
      }
    }
    """
    out = np.zeros((4, 32), np.int32)
    run(source, out, block=64, checks=["race", "uninit"])
    assert (out == 100 * np.arange(4)[:, None] + np.arange(32)[::-1]).all()


def test_a_deadlock_names_who_waits_where():
    source = """
    #include <tl/sync.h>
    extern "C" __global__ void kernel(int* out) {
      if (threadIdx.x < 32) {
        tl::named_barrier_sync(3, 64);
      }
      tl::sync_threads();
    }
    """
    with pytest.raises(EmulatorError) as error:
        run(source, np.zeros(1, np.int32), block=64)
    message = str(error.value)
    assert "deadlock: block (0, 0, 0) hangs" in message
    assert "threads 0-31 wait at barrier 3 for 64 threads at kernel.cu:5" in message
    assert "threads 32-63 wait at barrier 0 at kernel.cu:7" in message
    assert "tl::named_barrier_sync(3, 64);" in message


def test_lines_of_the_program_are_named_through_line_directives(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("a\nb\nT.sync_threads(3, 64)  # never reached by the others\n")
    source = f"""
    #include <tl/sync.h>
    extern "C" __global__ void kernel() {{
      if (threadIdx.x >= 32) return;
#line 3 "{program}"
      tl::named_barrier_sync(3, 64);
    }}
    """
    with pytest.raises(EmulatorError) as error:
        run(source, block=64)
    assert f"{program}:3" in str(error.value)
    assert "never reached by the others" in str(error.value)


def test_threads_of_a_warp_must_meet_at_one_barrier():
    source = """
    extern "C" __global__ void kernel() {
      if (threadIdx.x % 2 == 0) {
        __syncthreads();
      } else {
        __syncthreads();
      }
    }
    """
    with pytest.raises(EmulatorError, match="threads of one warp meet at different barriers"):
        run(source, block=32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("tl::named_barrier_sync(16, 64)", "barrier 16 does not exist"),
        ("tl::named_barrier_sync(1, 20)", "barrier 1 for 20 threads is not for whole warps"),
        (
            "tl::named_barrier_sync(1, threadIdx.x < 32 ? 64 : 96)",
            "barrier 1 for 96 threads, but others wait at it for 64",
        ),
    ],
)
def test_wrong_barriers_are_refused(call, message):
    source = f"""
    #include <tl/sync.h>
    extern "C" __global__ void kernel() {{ {call}; }}
    """
    with pytest.raises(EmulatorError, match=message):
        run(source, block=64)


GRID = """
#include <tl/sync.h>
extern "C" __global__ void kernel(int* out, int rounds) {
  __shared__ int own[32];
  extern __shared__ int sum[];
  own[threadIdx.x] = 0;
  sum[threadIdx.x] = 1;
  for (int i = 0; i < rounds; ++i) {
    out[blockIdx.x * 32 + threadIdx.x] = i + blockIdx.x;
    tl::sync_grid();
    own[threadIdx.x] += out[(blockIdx.x + 1) % gridDim.x * 32 + threadIdx.x];
    tl::sync_global();
  }
  out[blockIdx.x * 32 + threadIdx.x] = own[threadIdx.x] * sum[31 - threadIdx.x];
}
"""


@pytest.mark.parametrize("checks", [(), ("race", "bounds")])
def test_all_blocks_meet_at_a_barrier_of_the_grid(checks):
    out = np.zeros((5, 32), np.int32)
    run(GRID, out, 3, grid=5, dyn_smem=128, checks=checks)
    blocks = np.arange(5)[:, None]
    assert (out == 3 * ((blocks + 1) % 5) + 3).all()


def test_many_blocks_meet():
    source = """
    #include <tl/sync.h>
    extern "C" __global__ void kernel(int* out) {
      atomicAdd(out, 1);
      tl::sync_grid();
      out[1 + blockIdx.x * blockDim.x + threadIdx.x] = out[0];
    }
    """
    out = np.zeros(1 + 200 * 256, np.int32)
    run(source, out, block=256, grid=200)
    assert (out == 200 * 256).all()


def test_a_block_that_misses_the_barrier_of_the_grid_is_a_deadlock():
    source = """
    #include <tl/sync.h>
    extern "C" __global__ void kernel() { if (blockIdx.x != 1) tl::sync_grid(); }
    """
    message = "2 blocks wait at a barrier of the grid, and 1 have ended without it"
    with pytest.raises(EmulatorError, match=message):
        run(source, grid=3)


def test_waiting_in_a_loop_ends_when_others_can_run():
    source = """
    extern "C" __global__ void kernel(int* flag) {
      if (threadIdx.x == 0) while (atomicAdd(&flag[1], 0) != 1) {}
      if (threadIdx.x == 63) atomicExch(&flag[1], 1);
      __syncthreads();
      flag[threadIdx.x + 2] = 1;
    }
    """
    flag = np.zeros(66, np.int32)
    run(source, flag, block=64)
    assert (flag[1:] == 1).all()


def test_waiting_for_nothing_is_reported():
    source = """
    extern "C" __global__ void kernel(int* flag) { while (atomicAdd(flag, 0) == 0) {} }
    """
    with pytest.raises(EmulatorError, match="livelock: .* threads 0-31 run"):
        run(source, np.zeros(1, np.int32))
