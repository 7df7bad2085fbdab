"""Accesses out of bounds, reads of what was never written, and counters of memory traffic."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import run

from tilelang.errors import EmulatorError


def kernel(body, parameters="float* a, float* b"):
    return f"""
#include <tl/cp_async.h>
#include <tl/memory.h>
extern "C" __global__ void kernel({parameters}) {{
  extern __shared__ float tile[];
  int t = threadIdx.x;
  {body}
}}
"""


def arrays():
    both = np.zeros(64, np.float32)
    return both[:32], both[32:]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("a[t + 1] = 1.0f;", "thread 31 writes 4 bytes .* 0 bytes behind the end of 'argument 0'"),
        ("b[t] = a[t - 2];", "thread 0 reads 4 bytes .* 8 bytes before the start of 'argument 0'"),
        ("tile[t] = 0; tile[32] = a[0];", "at byte 128 of shared memory, which has 128 bytes"),
        ("tile[4 * t] = 0;", "at byte 128 of shared memory"),
        ("tl::vec_copy<16>(&a[t / 4 * 4 + 4], &b[0]);", "writes 16 bytes"),
        ("tl::cp_async<16>(tile + 32, a);", "writes 16 bytes .* byte 128 of shared memory"),
        ("tl::cp_async<4>(tile, a + 32);", "reads 4 bytes .* behind the end of 'argument 0'"),
        ("*reinterpret_cast<float*>(64) = 1.0f;", "writes 4 bytes"),
    ],
)
def test_accesses_out_of_bounds(body, message):
    with pytest.raises(EmulatorError, match=f"out of bounds: .*{message}") as error:
        run(kernel(body), *arrays(), dyn_smem=128, checks=["bounds"])
    assert "--> kernel.cu:7" in str(error.value)


def test_accesses_within_bounds():
    a, b = arrays()
    a[:] = np.arange(32)
    body = """
    static const float weights[2] = {1.0f, 2.0f};
    float local[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4; ++i) local[(i + t) % 4] += weights[i % 2];
    tl::cp_async<4>(tile + t, a + 40, false);
    tl::cp_async_commit();
    tl::cp_async_wait<0>();
    tile[t] = a[t] + local[t % 4];
    __syncthreads();
    b[t] = tile[31 - t];
    """
    run(kernel(body), a, b, dyn_smem=128, checks=["bounds", "race", "uninit"])
    assert (b == (np.arange(32) + 1)[::-1]).all()


def test_arguments_that_share_memory_still_do():
    a = np.zeros(32, np.float32)
    run(kernel("a[t] += 1.0f; b[t] += 2.0f;"), a, a, dyn_smem=4, checks=["bounds"])
    assert (a == 3).all()
    run(kernel("a[t] += 1.0f; b[t - 4] += 2.0f;"), a, a[4:], dyn_smem=4, checks=["bounds"])
    assert (a == 6).all()


@pytest.mark.parametrize(
    "body",
    [
        "if (t < 31) tile[t] = 0; __syncthreads(); a[t] = tile[t];",
        """if (t < 31) tl::cp_async<4>(tile + t, b + t);
           tl::cp_async_commit(); tl::cp_async_wait<0>(); a[t] = tile[t];""",
        "tile[31] = 0; a[0] = tile[0];",
    ],
)
def test_reads_of_unwritten_shared_memory(body):
    with pytest.raises(EmulatorError, match="uninitialised: .*nothing has been written there"):
        run(kernel(body), *arrays(), dyn_smem=128, checks=["uninit"])


def test_shared_memory_does_not_last_from_block_to_block():
    body = "if (blockIdx.x == 0) tile[t] = 0; else a[t] = tile[t];"
    with pytest.raises(EmulatorError, match=r"uninitialised: block \(1, 0, 0\)"):
        run(kernel(body), *arrays(), grid=2, dyn_smem=128, checks=["uninit"])
    a, b = arrays()
    run(kernel(body), a, b, grid=2, dyn_smem=128)
    assert np.isnan(a).all()


def test_atomics_initialise():
    run(kernel("atomicExch(&tile[t], 0.0f); a[t] = tile[t];"), *arrays(), dyn_smem=128,
        checks=["uninit"])  # fmt: skip


@pytest.mark.parametrize(
    ("index", "passes"), [("t", 1), ("2 * t", 2), ("32 * t", 32), ("0", 1), ("33 * t", 1)]
)
def test_bank_conflicts_are_counted(index, passes):
    loaded = run(
        kernel(f"a[t] = tile[{index}];"), *arrays(), dyn_smem=4 * 33 * 32, checks=["banks"]
    )
    (row,) = loaded.counters()
    assert (row.where, row.space) == ("kernel.cu:7", "shared")
    assert (row.requests, row.actual, row.ideal) == (1, passes, 1)


def test_wide_accesses_take_several_passes():
    loaded = run(
        kernel("tl::vec_copy<16>(&tile[4 * t], &a[t / 8 * 4]);"),
        *arrays(), dyn_smem=512, checks=["banks"],
    )  # fmt: skip
    assert [(row.actual, row.ideal) for row in loaded.counters()] == [(4, 4)]


@pytest.mark.parametrize(("index", "sectors"), [("t", 4), ("8 * t", 32), ("0", 1), ("t + 1", 5)])
def test_sectors_are_counted(index, sectors):
    aligned = np.zeros(400, np.float32)
    aligned = aligned[-aligned.ctypes.data // 4 % 8 :]
    loaded = run(kernel(f"tile[t] = a[{index}];"), aligned, aligned, dyn_smem=128,
                 checks=["coalesce"])  # fmt: skip
    (row,) = loaded.counters()
    assert (row.space, row.requests, row.actual) == ("global", 1, sectors)
    assert row.ideal == (1 if index == "0" else 4)


def test_an_assertion_of_the_kernel_fails():
    with pytest.raises(AssertionError, match="thread 3: assertion failed: t != 3 at kernel.cu:7"):
        run(kernel("assert(t != 3);"), *arrays(), dyn_smem=4)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("*reinterpret_cast<float*>(64 * t) = 1.0f;", "thread 0 accesses address .*no memory"),
        ("if (t == 5) a[int(1e15 * b[0] + 1e9)] = 1.0f;", "thread 5 accesses address"),
        ("int z = int(b[t]); if (t > 2) a[t] = 7 / z;", "thread 3 divides an integer by zero"),
    ],
)
def test_faults_of_the_processor_are_reports(body, message):
    for _ in range(2):  # the process survives, and so does the reporting
        with pytest.raises(EmulatorError, match=rf"fault: block \(0, 0, 0\), {message}") as error:
            run(kernel(body), *arrays(), dyn_smem=4)
        assert "--> kernel.cu:7" in str(error.value)


def test_local_arrays_larger_than_a_stack_are_a_report():
    with pytest.raises(EmulatorError, match="thread 0 needs more than its stack for local arrays"):
        run(kernel("volatile float x[300000]; x[t] = 1; a[t] = x[t + 1];"), *arrays(), dyn_smem=4)
