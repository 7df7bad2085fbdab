"""cp.async: data are there after the wait, and not before."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import run

from tilelang.errors import EmulatorError

COPY = """
#include <tl/cp_async.h>
#include <tl/sync.h>
extern "C" __global__ void kernel(const float* in, float* out) {{
  __shared__ float tile[2][32];
  tile[0][threadIdx.x] = tile[1][threadIdx.x] = -1.0f;
  __syncthreads();
  tl::cp_async<4>(&tile[0][threadIdx.x], in + threadIdx.x);
  tl::cp_async_commit();
  tl::cp_async<4>(&tile[1][threadIdx.x], in + 32 + threadIdx.x, threadIdx.x < 20);
  tl::cp_async_commit();
  {wait}
  __syncthreads();
  out[threadIdx.x] = tile[0][31 - threadIdx.x];
  out[threadIdx.x + 32] = tile[1][31 - threadIdx.x];
}}
"""
GIVEN = np.arange(1, 65, dtype=np.float32)


def copied(wait, checks=()):
    out = np.zeros((2, 32), np.float32)
    run(COPY.format(wait=wait), GIVEN, out, checks=checks)
    return out


def test_all_groups_have_arrived_after_waiting_for_none_pending():
    out = copied("tl::cp_async_wait<0>();", checks=["race", "uninit", "bounds"])
    assert (out[0] == GIVEN[:32][::-1]).all()
    # What is not valid is filled with zeros.
    assert (out[1] == np.where(np.arange(32) < 20, GIVEN[32:], 0)[::-1]).all()


def test_the_newest_group_may_be_pending():
    out = copied("tl::cp_async_wait<1>();")
    assert (out[0] == GIVEN[:32][::-1]).all()
    assert np.isnan(out[1]).all()


def test_nothing_has_arrived_without_a_wait():
    assert np.isnan(copied("")).all()


def test_reading_before_the_wait_is_a_race():
    with pytest.raises(EmulatorError) as error:
        copied("tl::cp_async_wait<1>();", checks=["race"])
    message = str(error.value)
    assert "has a cp.async to it under way, started at kernel.cu:10" in message
    assert "tile[1][31 - threadIdx.x]" in message
    assert "kernel.cu:8" not in message


def test_groups_are_those_of_the_thread():
    source = """
    #include <tl/cp_async.h>
    extern "C" __global__ void kernel(const float* in, float* out) {
      __shared__ float tile[32];
      tl::cp_async<4>(&tile[threadIdx.x], in + threadIdx.x);
      tl::cp_async_commit();
      if (threadIdx.x < 16) tl::cp_async_wait<0>();
      __syncthreads();
      out[threadIdx.x] = tile[threadIdx.x];
    }
    """
    out = np.zeros(32, np.float32)
    run(source, GIVEN, out)
    assert (out[:16] == GIVEN[:16]).all() and np.isnan(out[16:]).all()


def test_overwriting_what_others_still_read_is_seen():
    """A copy may arrive at once: its target is undefined from the start."""
    source = """
    #include <tl/cp_async.h>
    extern "C" __global__ void kernel(const float* in, float* out) {
      __shared__ float tile[64];
      tile[threadIdx.x] = threadIdx.x;
      __syncthreads();
      if (threadIdx.x >= 32) {
        tl::cp_async<4>(&tile[threadIdx.x - 32], in + threadIdx.x);
        tl::cp_async_commit();
      } else {
        out[threadIdx.x] = tile[threadIdx.x];
      }
      __syncthreads();
      tl::cp_async_wait<0>();
    }
    """
    out = np.zeros(32, np.float32)
    run(source, GIVEN, out, block=64)
    assert np.isnan(out).all()
    with pytest.raises(
        EmulatorError, match=r"race: .*thread 0 reads it .*thread 32 has a cp.async"
    ):
        run(source, GIVEN, out, block=64, checks=["race"])


def test_a_source_that_changes_is_reported():
    source = """
    #include <tl/cp_async.h>
    extern "C" __global__ void kernel(float* in) {
      __shared__ float tile[32];
      tl::cp_async<4>(&tile[threadIdx.x], in + threadIdx.x);
      in[threadIdx.x] = 7.0f;
      tl::cp_async_commit();
      tl::cp_async_wait<0>();
    }
    """
    with pytest.raises(EmulatorError, match="the source of a cp.async changed"):
        run(source, GIVEN.copy())


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("tl::cp_async<16>(tile + 2, in)", "the target is not aligned"),
        ("tl::cp_async<16>(tile, in + 1)", "the source is not aligned"),
        ("tl::cp_async<8>(in, tile)", "the target is not in shared memory"),
    ],
)
def test_wrong_copies_are_refused(statement, message):
    source = f"""
    #include <tl/cp_async.h>
    extern "C" __global__ void kernel(float* in) {{
      alignas(16) __shared__ float tile[32];
      {statement};
    }}
    """
    aligned = np.zeros(64, np.float32)
    aligned = aligned[(-aligned.ctypes.data // 4) % 4 :][:32]
    with pytest.raises(EmulatorError, match=message):
        run(source, aligned)
