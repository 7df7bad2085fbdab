"""Launching CPU kernels: blocks, slots, outputs, workspaces, failures."""

import threading

import numpy as np
import pytest
import torch
from launch_helpers import M, N, launch, memory, scalar, slot_array, tensor

from tilelang._native import make_cpu_launcher
from tilelang.engine.launch_plan import ArgRef, KernelLaunch, LaunchPlan, Workspace


class Blocks:
    """A worker that records which blocks it was asked to run."""

    def __init__(self):
        self.ranges = []
        self.lock = threading.Lock()

    def __call__(self, slots, begin, end, scratch):
        with self.lock:
            self.ranges.append((begin, end))

    def ids(self):
        return sorted(i for begin, end in self.ranges for i in range(begin, end))


def fill(value, count, index=-1):
    """A worker that fills one tensor argument."""

    def worker(slots, begin, end, scratch):
        words = slot_array(slots, 2)
        memory(words[index], count)[:] = value

    return worker


@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 1, 1), (3, 5, 2), (1000, 1, 1)])
def test_every_block_runs_once(grid):
    blocks = Blocks()
    launch(tensor("A", N), worker=blocks, grid=grid)(torch.ones(3))
    assert blocks.ids() == list(range(grid[0] * grid[1] * grid[2]))


def test_grid_is_evaluated_from_the_arguments():
    blocks = Blocks()
    ceildiv = ("//", ("+", N, 3), 4)
    run = launch(tensor("A", N, M), worker=blocks, grid=(ceildiv, M, 1))
    run(torch.ones(9, 2))
    assert blocks.ids() == list(range(6))


@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
def test_zero_grid_launches_nothing(shape):
    blocks = Blocks()
    launch(tensor("A", N, M), worker=blocks, grid=(N, M, 1))(torch.empty(shape))
    assert blocks.ranges == []


def test_negative_grid_is_refused():
    blocks = Blocks()
    run = launch(tensor("A", N), worker=blocks, grid=(("-", N, 8), 1, 1))
    with pytest.raises(ValueError, match=r"cannot launch a grid of \[n - 8, 1, 1\] = \[-5, 1, 1\]"):
        run(torch.ones(3))
    assert blocks.ranges == []


def test_slots_follow_the_argument_list():
    seen = []

    def worker(slots, begin, end, scratch):
        seen.append(slot_array(slots, 4))

    kernel = KernelLaunch(
        "k", args=(ArgRef("symbol", 0), ArgRef("param", 1), ArgRef("param", 0), ArgRef("symbol", 1))
    )
    plan = LaunchPlan(
        "f", ("n", "m"), (tensor("A", N, M), scalar("x", "float32")), kernels=(kernel,)
    )
    value = torch.ones(3, 5)
    make_cpu_launcher(plan, [worker])(value, 1.0)
    assert seen == [[3, 0x3F800000, value.data_ptr(), 5]]


def test_kernels_run_in_order():
    order = []
    kernels = tuple(KernelLaunch(f"k{i}", grid=(4, 1, 1)) for i in range(3))
    workers = [lambda *_, i=i: order.append(i) for i in range(3)]
    make_cpu_launcher(LaunchPlan("f", kernels=kernels), workers)()
    assert order == sorted(order)
    assert set(order) == {0, 1, 2}


@pytest.mark.parametrize("size", [1, 100, 4096])
def test_scratch_is_aligned_and_private(size):
    live = []
    lock = threading.Lock()

    def worker(slots, begin, end, scratch):
        view = memory(scratch.value, size, "uint8")
        with lock:
            live.append(scratch.value)
        view[:] = begin % 251
        assert (view == begin % 251).all()

    run = launch(tensor("A", N), worker=worker, grid=(64, 1, 1), kernel={"scratch_bytes": size})
    run(torch.ones(1))
    assert all(address % 64 == 0 for address in live)


def test_no_scratch_is_a_null_pointer():
    seen = []
    launch(tensor("A", N), worker=lambda *a: seen.append(a[3].value))(torch.ones(1))
    assert seen == [None]


# -- outputs ----------------------------------------------------------------------------------


def test_one_output():
    run = launch(tensor("A", N), tensor("B", N, role="out"), worker=fill(7.0, 5))
    out = run(torch.ones(5))
    assert type(out) is torch.Tensor
    assert torch.equal(out, torch.full((5,), 7.0))


def test_several_outputs_are_a_list():
    params = tensor("A", N), tensor("B", N, role="out"), tensor("C", 2, N, role="out")
    out = launch(*params)(torch.ones(5))
    assert type(out) is list
    assert [tuple(t.shape) for t in out] == [(5,), (2, 5)]
    assert all(type(t) is torch.Tensor for t in out)


def test_one_output_as_a_list():
    params = tensor("A", N), tensor("B", N, role="out")
    (out,) = launch(*params, returns_list=True)(torch.ones(5))
    assert out.shape == (5,)


def test_outputs_without_tensor_arguments():
    run = launch(scalar("n", "int32", symbol=0), tensor("B", N, role="out"), worker=fill(2.0, 6))
    out = run(6)
    assert type(out) is torch.Tensor
    assert torch.equal(out, torch.full((6,), 2.0))


def test_outputs_of_numpy_arguments_are_torch_tensors():
    out = launch(tensor("A", N), tensor("B", N, role="out"))(np.ones(4, np.float32))
    assert type(out) is torch.Tensor


def test_output_shapes_are_expressions():
    twice = ("+", ("*", N, 2), 1)
    assert launch(tensor("A", N), tensor("B", twice, role="out"))(torch.ones(5)).shape == (11,)
    assert launch(tensor("A", N), tensor("B", N, role="out"))(torch.empty(0)).shape == (0,)
    assert launch(tensor("A", N), tensor("B", role="out"))(torch.ones(1)).shape == ()


@pytest.mark.parametrize(
    ("declared", "stored", "extent"),
    [
        ("bfloat16", torch.bfloat16, 10),
        ("bool", torch.bool, 10),
        ("uint32", torch.uint32, 10),
        ("float8_e4m3", torch.float8_e4m3fn, 10),
        ("float8_e5m2fnuz", torch.float8_e5m2fnuz, 10),
        ("float8_e3m4", torch.uint8, 10),
        ("int4", torch.int8, 5),
        ("uint4", torch.uint8, 5),
        ("float4_e2m1fn", torch.float4_e2m1fn_x2, 5),
        ("float4_e2m1fnx2", torch.float4_e2m1fn_x2, 10),
    ],
)
def test_output_storage(declared, stored, extent):
    out = launch(tensor("A", N), tensor("B", 3, N, dtype=declared, role="out"))(torch.ones(10))
    assert out.dtype == stored
    assert out.shape == (3, extent)


def test_negative_output_shape_is_refused():
    run = launch(tensor("A", N), tensor("B", ("-", N, 4), role="out"))
    with pytest.raises(ValueError, match=r"output 'B' would have shape \[n - 4\] = \[-1\]"):
        run(torch.ones(3))


def test_output_that_does_not_fit_memory():
    run = launch(scalar("n", "int64", symbol=0), tensor("B", N, role="out"))
    with pytest.raises((MemoryError, RuntimeError), match="f: cannot allocate output 'B'"):
        run(2**60)
    assert run(4).shape == (4,)


def test_outputs_do_not_leak():
    run = launch(tensor("A", N), tensor("B", N, role="out"))
    value = torch.ones(1 << 18)
    resource = pytest.importorskip("resource", reason="memory is measured with getrusage")
    run(value)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(500):
        run(value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


# -- workspaces -------------------------------------------------------------------------------


def workspace_plan(*workspaces):
    args = (ArgRef("param", 0), *(ArgRef("workspace", i) for i in range(len(workspaces))))
    kernel = KernelLaunch("k", args=args)
    return LaunchPlan("f", ("n",), (tensor("A", N),), workspaces=workspaces, kernels=(kernel,))


def test_workspaces_are_disjoint_and_aligned():
    def worker(slots, begin, end, scratch):
        _, first, second = slot_array(slots, 3)
        assert first % 64 == 0
        assert second % 64 == 0
        assert second >= first + 4 * 1000 or first >= second + 8
        memory(first, 1000)[:] = 1
        memory(second, 8, "uint8")[:] = 2
        assert (memory(first, 1000) == 1).all()

    plan = workspace_plan(Workspace("float32", (N,)), Workspace("int4", (16,)))
    run = make_cpu_launcher(plan, [worker])
    for _ in range(3):
        run(torch.ones(1000))
    assert run(torch.ones(1000)) is None


def test_workspace_of_impossible_size_is_refused():
    huge = ("*", N, 1 << 62)
    run = make_cpu_launcher(workspace_plan(Workspace("float32", (huge,))), [lambda *_: None])
    with pytest.raises(ValueError, match="a workspace would have shape"):
        run(torch.ones(1))


# -- failures ---------------------------------------------------------------------------------


def test_nothing_is_written_when_an_argument_is_bad():
    blocks = Blocks()
    run = launch(tensor("A", N), tensor("B", N, access="w"), worker=blocks)
    with pytest.raises(ValueError, match="'B'"):
        run(torch.ones(3), torch.ones(4))
    assert blocks.ranges == []


@pytest.mark.parametrize("error", [ValueError("boom"), KeyError("boom"), IndexError("boom")])
def test_worker_exceptions_reach_the_caller_once(error):
    def worker(slots, begin, end, scratch):
        raise error

    run = launch(tensor("A", N), worker=worker, grid=(100, 1, 1))
    for _ in range(3):
        with pytest.raises(type(error), match="boom"):
            run(torch.ones(1))


def test_a_failed_call_leaves_the_launcher_usable():
    bad = threading.Event()
    blocks = Blocks()

    def worker(slots, begin, end, scratch):
        if bad.is_set():
            raise RuntimeError("bad")
        blocks(slots, begin, end, scratch)

    run = launch(tensor("A", N), worker=worker, grid=(50, 1, 1))
    bad.set()
    with pytest.raises(RuntimeError, match="bad"):
        run(torch.ones(1))
    bad.clear()
    run(torch.ones(1))
    assert blocks.ids() == list(range(50))


def test_one_plan_per_worker():
    with pytest.raises(ValueError, match="the plan has 0 kernels, got 1 workers"):
        make_cpu_launcher(LaunchPlan("f"), [lambda *_: None])
