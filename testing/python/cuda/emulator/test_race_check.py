"""Races between threads: found where nothing orders two accesses, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import run

from tilelang.errors import EmulatorError

PREAMBLE = """
#include <tl/ldmatrix.h>
#include <tl/sync.h>
#include <tl/warp.h>
extern "C" __global__ void kernel(int* out) {
  __shared__ int tile[256];
  int t = threadIdx.x;
"""


def race(body, out=None, **launch):
    out = np.zeros(256, np.int32) if out is None else out
    run(f"{PREAMBLE}{body}\n}}", out, checks=["race"], **{"block": 64, **launch})
    return out


ORDERED = {
    "barrier": "tile[t] = t; __syncthreads(); out[t] = tile[63 - t];",
    "warp barrier": "tile[t] = t; __syncwarp(); out[t] = tile[t ^ 31];",
    "two barriers in a loop": """
        for (int i = 0; i < 3; ++i) {
          tile[t] = i; __syncthreads(); out[t] = tile[63 - t]; __syncthreads();
        }""",
    "double buffer": """
        for (int i = 0; i < 4; ++i) {
          tile[i % 2 * 64 + t] = i; __syncthreads(); out[t] = tile[i % 2 * 64 + 63 - t];
        }""",
    "all read one": "out[t] = tile[0]; __syncthreads(); if (t == 9) tile[0] = 1;",
    "atomics": "atomicAdd(&tile[0], 1); __syncthreads(); out[t] = tile[0];",
    "neighbouring bytes": "reinterpret_cast<unsigned char*>(tile)[t] = t;",
    "named barrier": """
        tile[t] = t; tl::named_barrier_sync(1, 64); out[t] = tile[63 - t];""",
    "arrive and sync": """
        if (t < 32) { tile[t] = t; tl::named_barrier_arrive(1, 64); }
        else { tl::named_barrier_sync(1, 64); out[t] = tile[t - 32]; }""",
    "through a third thread": """
        if (t == 0) tile[0] = 1;
        __syncwarp();
        if (t == 31) tile[1] = tile[0];
        tl::named_barrier_sync(1, 64);
        if (t == 40) out[0] = tile[0] + tile[1];""",
    "flag": """
        if (t == 0) { tile[0] = 5; __threadfence_block(); atomicExch(&tile[1], 77); }
        if (t == 33) { while (atomicAdd(&tile[1], 0) != 77) {}
                       __threadfence_block(); out[0] = tile[0]; }""",
    "own data": "tile[t] = t; out[t] = tile[t]; tile[t] = 3;",
}
READ_AND_WRITE = "reads it .* writes it|writes it .* reads it"
RACES = {
    "missing barrier": ("tile[t] = t; out[t] = tile[63 - t];", READ_AND_WRITE),
    "missing warp barrier": ("tile[t] = t; out[t] = tile[t ^ 1];", READ_AND_WRITE),
    "warp barrier across warps": ("tile[t] = t; __syncwarp(); out[t] = tile[63 - t];", "reads it"),
    "a shuffle orders no memory": (
        "tile[t] = t; t += tl::shfl_sync(0, 0); out[t] = tile[t ^ 1];",
        "reads it",
    ),
    "write after read": (
        "out[t] = tile[63 - t]; tile[t] = t;",
        READ_AND_WRITE,
    ),
    "barrier missing at the end of a loop": (
        "for (int i = 0; i < 2; ++i) { tile[t] = i; __syncthreads(); out[t] = tile[63 - t]; }",
        READ_AND_WRITE,
    ),
    "two writers": (
        "tile[t % 32] = t; __syncthreads(); out[t] = tile[t];",
        "writes it .* writes it",
    ),
    "one writer of a byte the others read": (
        "tile[t] = 0; __syncthreads(); if (t == 63) tile[5] = 1; else out[t] = tile[5];",
        READ_AND_WRITE,
    ),
    "plain read beside atomics": (
        "atomicAdd(&tile[0], 1); out[t] = tile[0];",
        "updates it atomically|reads it",
    ),
    "global memory": ("out[t] = t; out[t + 64] = out[63 - t];", "'argument 0', byte"),
    "the wrong barrier": (
        "tile[t] = t; tl::named_barrier_sync(1 + t / 32, 32); out[t] = tile[63 - t];",
        "with no barrier between them",
    ),
    "arriving is not waiting": (
        """if (t < 32) { tl::named_barrier_arrive(1, 64); tile[t] = t; }
           else { tl::named_barrier_sync(1, 64); out[t] = tile[t - 32]; }""",
        "with no barrier between them",
    ),
    "matrix load": (
        """tile[t] = t; tile[t + 64] = t;
           if (t < 32) {
             unsigned r[4];
             tl::ldmatrix_x4<false>(r, tile + 4 * t);
             out[t] = r[0];
           }""",
        "reads it",
    ),
}


@pytest.mark.parametrize("body", ORDERED.values(), ids=ORDERED.keys())
def test_ordered_accesses_are_no_race(body):
    race(body)


@pytest.mark.parametrize(("body", "message"), RACES.values(), ids=RACES.keys())
def test_unordered_accesses_are_a_race(body, message):
    with pytest.raises(EmulatorError, match=rf"race: block \(0, 0, 0\), .*({message})"):
        race(body)


def test_both_lines_are_named_once():
    with pytest.raises(EmulatorError) as error:
        race("tile[t] = t;\n  __syncwarp();\n  out[blockIdx.x * 64 + t] = tile[63 - t];", grid=4)
    message = str(error.value)
    assert message.count("race:") == 1
    assert "static shared memory, byte" in message
    assert "--> kernel.cu:8\n   | tile[t] = t;" in message
    assert "--> kernel.cu:10\n   | out[blockIdx.x * 64 + t] = tile[63 - t];" in message


def test_blocks_are_not_ordered():
    with pytest.raises(EmulatorError, match=r"thread 0 of another block writes it"):
        race("out[t] = t;", grid=2)
    with pytest.raises(EmulatorError, match=r"of another block reads it"):
        race("if (blockIdx.x == 0) out[t + 64] = out[t]; else out[t] = 1;", grid=2)
    race("out[blockIdx.x * 64 + t] = out[blockIdx.x * 64 + t] + 1;", grid=4)
    race("atomicAdd(&out[t], 1);", grid=4)


def test_dynamic_shared_memory_of_another_block_is_other_memory():
    race("extern __shared__ int more[]; more[t] = t;", grid=3, dyn_smem=256)


def test_without_the_check_the_result_is_that_of_one_order():
    out = np.zeros(256, np.int32)
    run(f"{PREAMBLE} tile[t] = t; out[t] = tile[63 - t]; }}", out, block=64)
    assert (out[32:64] == np.arange(32)[::-1]).all()
