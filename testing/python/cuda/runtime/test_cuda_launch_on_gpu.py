"""Launches on a real device: streams, graphs, shared memory, clusters, errors."""

import gc
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
import torch
from fake_cuda_driver import cuda_tensor, plan_of

from tilelang.backend import create_backend_context
from tilelang.cuda.device_code import compile_source
from tilelang.engine.expr_program import Sym
from tilelang.engine.launch_plan import ArgRef, Param, Workspace
from tilelang.errors import ArgumentValueError, LaunchError
from tilelang.jit.adapter import KernelBundle, find_adapter
from tilelang.testing import requires_cuda, requires_cuda_compute_version, requires_package

pytestmark = requires_cuda.marks()

N = Sym(0)
GRID = (("//", ("+", N, 127), 128), 1, 1)
SCALE = """
extern "C" __global__ void scale(const float* a, float* b, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] * factor;
}
"""
# Every block adds its reversed part of `a`, kept in all of its dynamic shared memory.
REVERSE = """
extern __shared__ float part[];
extern "C" __global__ void scale(const float* a, float* b, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) part[i] = a[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) b[i] = part[n - 1 - i];
}
"""
RANKS = """
extern "C" __global__ void scale(int* ranks) {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) ranks[blockIdx.x] = rank;
}
"""
WORKSPACE = """
extern "C" __global__ void scale(const float* a, float* b, float* memory, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) memory[i] = a[i] + 1;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) b[i] = memory[n - 1 - i];
}
"""
WAYS = [
    "tvm_ffi",
    "cython",
    pytest.param("nvrtc", marks=requires_package("cuda.bindings").marks()),
]


def build(source, plan, way="tvm_ffi"):
    """The callable of hand-written CUDA text."""
    target = create_backend_context("cuda", None, way).target
    bundle = KernelBundle(plan, source, binaries=compile_source(source, target, ()))
    return find_adapter(way)(bundle).func


def scale_plan(**kernel):
    params = (
        cuda_tensor("A", N),
        cuda_tensor("B", N, role="out"),
        Param("factor", "scalar", "float32"),
        Param("n", "scalar", "int32", symbol=0),
    )
    return plan_of(*params, kernel={"grid": GRID, **kernel})


def reverse_plan(shared):
    params = (cuda_tensor("A", N), cuda_tensor("B", N, access="w"))
    args = (ArgRef("param", 0), ArgRef("param", 1), ArgRef("symbol", 0))
    return plan_of(*params, kernel={"dyn_smem": shared, "args": args})


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


def test_results_are_right(way):
    a = torch.randn(1000, device="cuda")
    b = build(SCALE, scale_plan(), way)(a, 2.0, 1000)
    torch.testing.assert_close(b, a * 2, rtol=0, atol=0)
    assert b.device == a.device


def test_an_empty_tensor_launches_nothing(way):
    b = build(SCALE, scale_plan(), way)(torch.empty(0, device="cuda"), 2.0, 0)
    assert tuple(b.shape) == (0,)


def test_calls_run_on_the_current_stream(way):
    run = build(SCALE, scale_plan(), way)
    a = torch.ones(1000, device="cuda")
    run(a, 1.0, 1000)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        a.fill_(3.0)  # seen only by work behind it in this stream
        b = run(a, 2.0, 1000)
    stream.synchronize()
    assert b.eq(6.0).all()


def test_calls_are_captured_in_graphs(way):
    run = build(SCALE, scale_plan(), way)  # its code is loaded while capturing
    a = torch.ones(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        b = run(a, 2.0, 1000)
    del run
    gc.collect()
    for value in (1.0, 5.0):
        a.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        assert b.eq(2 * value).all()


def test_a_new_thread_may_call_first(way):
    run = build(SCALE, scale_plan(), way)
    a = torch.ones(8, device="cuda")
    torch.cuda.synchronize()
    results = []
    thread = threading.Thread(target=lambda: results.append(run(a, 2.0, 8)))
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert results[0].eq(2.0).all()


def test_large_shared_memory_works(way):
    count = 60 * 1024 // 4
    run = build(REVERSE, reverse_plan(("*", N, 4)), way)
    a, b = torch.randn(count, device="cuda"), torch.empty(count, device="cuda")
    run(a, b)
    assert b.equal(a.flip(0))


def test_too_much_shared_memory_is_refused(way):
    available = torch.cuda.get_device_properties(0).shared_memory_per_block_optin
    run = build(REVERSE, reverse_plan(available + 16), way)
    a = torch.randn(8, device="cuda")
    with pytest.raises(LaunchError, match=f"needs {available + 16} bytes .* {available} are avail"):
        run(a, a.clone())
    torch.cuda.synchronize()  # the context is as good as before


def test_workspaces_live_as_long_as_they_are_used(way):
    params = (cuda_tensor("A", N), cuda_tensor("B", N, role="out"))
    args = (*(ArgRef("param", i) for i in range(2)), ArgRef("workspace", 0), ArgRef("symbol", 0))
    memory = (Workspace("float32", (N,)),)
    run = build(WORKSPACE, plan_of(*params, workspaces=memory, kernel={"args": args}), way)
    inputs = [torch.randn(5000, device="cuda") for _ in range(20)]
    for a, b in zip(inputs, [run(a) for a in inputs], strict=True):
        assert b.equal(a.flip(0) + 1)


@pytest.mark.parametrize("flag", ["cooperative", "pdl"])
def test_launch_flags_are_accepted(way, flag):
    if flag == "pdl" and torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("programmatic dependent launch needs sm_90")
    run = build(SCALE, scale_plan(flags=(flag,)), way)
    a = torch.ones(1000, device="cuda")
    for _ in range(3):
        a = run(a, 2.0, 1000)
    assert a.eq(8.0).all()


def test_a_cooperative_grid_that_does_not_fit_is_explained(way):
    run = build(SCALE, scale_plan(flags=("cooperative",)), way)
    count = 128 * 1_000_000
    with pytest.raises(LaunchError, match="1000000 were asked for, and [1-9]"):
        run(torch.empty(count, device="cuda"), 2.0, count)
    torch.cuda.synchronize()


@requires_cuda_compute_version(9, 0)
@pytest.mark.parametrize("size", [2, 8, 16])
def test_blocks_form_clusters(way, size):
    plan = plan_of(
        cuda_tensor("R", 32, dtype="int32"), kernel={"grid": (32, 1, 1), "cluster": (size, 1, 1)}
    )
    ranks = torch.full((32,), -1, dtype=torch.int32, device="cuda")
    build(RANKS, plan, way)(ranks)
    assert ranks.tolist() == [block % size for block in range(32)]


def test_unaligned_views_are_refused(way):
    params = (cuda_tensor("A", N, align=16), cuda_tensor("B", N, access="w"))
    args = (ArgRef("param", 0), ArgRef("param", 1), ArgRef("symbol", 0))
    run = build(REVERSE, plan_of(*params, kernel={"dyn_smem": 4096, "args": args}), way)
    a, b = torch.randn(65, device="cuda"), torch.empty(64, device="cuda")
    with pytest.raises(ArgumentValueError, match="aligned to 16 bytes, got an address 4 bytes"):
        run(a[1:], b)
    run(a[1:].clone(), b)
    assert b.equal(a[1:].flip(0))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_devices_take_turns(way):
    run = build(SCALE, scale_plan(), way)
    for device in (1, 0, 1):
        a = torch.ones(100, device=f"cuda:{device}")
        b = run(a, 3.0, 100)
        assert b.device == a.device and b.eq(3.0).all()
    assert torch.cuda.current_device() == 0


def test_a_lost_context_is_told():
    """In a process of its own, which no longer can use the device afterwards."""
    script = textwrap.dedent("""
        import torch
        from test_cuda_launch_on_gpu import build, plan_of, Param
        plan = plan_of(Param("p", "pointer", "uint8"))
        run = build('extern "C" __global__ void scale(int* p) { *p = 1; }', plan)
        run(16)
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            pass
        run(16)
    """)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=Path(__file__).parent
    )
    assert "LaunchError" in done.stderr and "context of this process is lost" in done.stderr
