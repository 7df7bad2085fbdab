"""The native CUDA launcher, against a driver that records what it is asked."""

import ctypes
import gc
import shutil

import pytest
import torch
import tvm_ffi
from fake_cuda_driver import cuda_tensor, on_device, plan_of

from tilelang.cuda.device_code import make_launcher
from tilelang.engine.expr_program import Sym
from tilelang.engine.launch_plan import ArgRef, KernelLaunch, LaunchPlan, Param, Workspace
from tilelang.env import env
from tilelang.errors import ArgumentTypeError, ArgumentValueError, LaunchError

N = Sym(0)
STREAM = 0x1234


def launcher(plan, image="scale 8 8 4", archs="sm_89", lines=None):
    return make_launcher(
        plan, {"kernel.cubin": image.encode() + b"\0", "kernel.archs": archs.encode()}, lines or {}
    )


def vector_plan(**options):
    params = (
        cuda_tensor("A", N),
        cuda_tensor("B", N, access="w"),
        Param("alpha", "scalar", "float32"),
    )
    kernel = {"grid": (("//", ("+", N, 127), 128), 1, 1), **options.pop("kernel", {})}
    return plan_of(*params, kernel=kernel, **options)


def vectors(count, device=0):
    a, b = torch.zeros(count), torch.zeros(count)
    return (a, b), (on_device(a, device), on_device(b, device))


def test_a_call_launches_with_its_arguments(driver):
    (a, b), args = vectors(300)
    run = launcher(vector_plan())
    assert run(*args, 0.5) is None
    assert driver.calls == [
        "retain 0",
        "load on 0 relaxed 1",
        "launch scale on 0 grid 3,1,1 block 128,1,1 shared 0 stream 0 "
        f"args {a.data_ptr():#x} {b.data_ptr():#x} 0x3f000000",
    ]


def test_code_is_loaded_once_a_device(driver):
    run = launcher(vector_plan())
    for device in (0, 1, 0, 1):
        run(*vectors(8, device)[1], 1.0)
    assert driver.called("load") == ["load on 0 relaxed 1", "load on 1 relaxed 1"]
    assert [line.split(" grid")[0] for line in driver.called("launch")] == [
        "launch scale on 0",
        "launch scale on 1",
        "launch scale on 0",
        "launch scale on 1",
    ]


def test_the_current_device_stays_what_it_was(driver):
    run = launcher(vector_plan())
    run(*vectors(8, 1)[1], 1.0)
    assert driver.current_device() is None
    with driver.device(0):
        run(*vectors(8, 1)[1], 1.0)
        run(*vectors(8, 0)[1], 1.0)
        assert driver.current_device() == 0
    assert len(driver.called("launch scale on 1")) == 2


@pytest.mark.skipif(
    torch.cuda.is_available(), reason="torch asks the driver of this machine for its device"
)
def test_a_call_without_tensors_runs_on_the_current_device(driver):
    plan = plan_of(
        Param("n", "scalar", "int32", symbol=0),
        cuda_tensor("A", N, role="out"),
        kernel={"args": (ArgRef("param", 0), ArgRef("param", 1))},
    )
    run = launcher(plan, "scale 4 8")
    with driver.device(1), driver.allocator():
        out = run(16)
    assert str(out.device) == "cuda:1" and driver.called("launch scale on 1")


def test_tensors_of_two_devices_are_refused(driver):
    a, b = vectors(8, 0)[1][0], vectors(8, 1)[1][1]
    with pytest.raises(ArgumentValueError, match="expected a tensor on cuda:0 like 'A'"):
        launcher(vector_plan())(a, b, 1.0)
    assert not driver.calls


def test_launches_go_to_the_stream_of_the_device(driver):
    run = launcher(vector_plan())
    _, args = vectors(8, 1)
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:1"), STREAM):
        run(*args, 1.0)
    assert f"stream {STREAM:#x}" in driver.called("launch")[0]


def test_an_empty_grid_launches_nothing(driver):
    launcher(vector_plan())(*vectors(0)[1], 1.0)
    assert not driver.calls


def test_only_the_kernels_with_blocks_are_launched(driver):
    plan = vector_plan()
    first = plan.kernels[0]
    other = KernelLaunch("other", grid=(1, 1, 1), block=(32, 1, 1), args=(ArgRef("symbol", 0),))
    both = LaunchPlan("f", plan.symbols, plan.params, kernels=(first, other))
    launcher(both, "scale 8 8 4\nother 8")(*vectors(0)[1], 1.0)
    (launch,) = driver.called("launch")
    assert launch.startswith("launch other on 0") and launch.endswith("args 0")


@pytest.mark.parametrize(
    ("fields", "attributes"),
    [
        ({}, ""),
        ({"flags": ("cooperative",)}, " attribute 2:1"),
        ({"flags": ("pdl",)}, " attribute 6:1"),
        ({"cluster": (2, 1, 1), "flags": ("pdl",)}, " attribute 4:2,1,1 attribute 6:1"),
    ],
)
def test_flags_become_launch_attributes(driver, fields, attributes):
    launcher(vector_plan(kernel={"grid": (4, 1, 1), **fields}))(*vectors(8)[1], 1.0)
    launch = driver.called("launch")[0]
    assert launch.partition("stream 0")[2].partition(" args")[0] == attributes


def test_a_cluster_above_eight_blocks_is_allowed_first(driver):
    run = launcher(vector_plan(kernel={"grid": (16, 1, 1), "cluster": (16, 1, 1)}))
    for _ in range(2):
        run(*vectors(8)[1], 1.0)
    assert driver.called("set") == ["set scale 14 = 1"]


def test_shared_memory_above_the_default_is_reserved_once(driver):
    plan = vector_plan(kernel={"dyn_smem": ("*", N, 4)})
    run = launcher(plan)
    for count in (10_000, 12_288, 20_000, 16_000, 25_000):
        run(*vectors(count)[1], 1.0)
    assert driver.called("set") == ["set scale 8 = 80000", "set scale 8 = 100000"]
    assert "shared 64000" in driver.called("launch")[3]


def test_too_much_shared_memory_is_refused_with_both_sizes(driver):
    driver.limits(static=1024)
    run = launcher(vector_plan(kernel={"dyn_smem": 101376}))
    with pytest.raises(LaunchError) as caught:
        run(*vectors(8)[1], 1.0)
    text = str(caught.value)
    assert "needs 101376 bytes of dynamic shared memory on cuda:0 (Fake GPU 0)" in text
    assert "100352 are available beside 1024 static bytes" in text
    assert not driver.called("launch")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"block": (512, 2, 2)}, r"block of \(512, 2, 2\) = 2048 threads .* can run 1 to 1024"),
        ({"block": (0, 1, 1)}, "= 0 threads"),
        ({"grid": (1, 65536, 1)}, "at most 65535 along y"),
        ({"grid": (3, 1, 1), "cluster": (2, 1, 1)}, r"no multiple of the cluster \(2, 1, 1\)"),
    ],
)
def test_impossible_launches_are_refused(driver, fields, message):
    run = launcher(vector_plan(kernel=fields), lines={"scale": ("k.py", 7)})
    with pytest.raises(LaunchError, match=message) as caught:
        run(*vectors(8)[1], 1.0)
    assert str(caught.value).startswith("k.py:7: f: ")
    assert not driver.called("launch")


def test_refused_launches_allocate_nothing(driver):
    plan = plan_of(
        cuda_tensor("A", N), cuda_tensor("B", N, role="out"), kernel={"block": (2048, 1, 1)}
    )
    with driver.allocator(), pytest.raises(LaunchError):
        launcher(plan, "scale 8 8")(vectors(8, 1)[1][0])
    assert not driver.called("allocate")


def test_outputs_and_workspaces_are_allocated_on_the_device(driver):
    plan = plan_of(
        cuda_tensor("A", N),
        cuda_tensor("B", N, role="out"),
        workspaces=(Workspace("float16", (N, 3)),),
        kernel={"args": (ArgRef("param", 0), ArgRef("param", 1), ArgRef("workspace", 0))},
    )
    a = vectors(8, 1)[1][0]
    with driver.allocator():
        b = launcher(plan, "scale 8 8 8")(a)
    assert driver.called("allocate") == ["allocate 32 on 2:1", "allocate 48 on 2:1"]
    assert (str(b.device), tuple(b.shape)) == ("cuda:1", (8,))
    assert int(driver.called("launch")[0].split()[-2], 16) == b.data_ptr()


def test_a_failed_allocation_launches_nothing(driver):
    plan = plan_of(cuda_tensor("A", N), workspaces=(Workspace("int8", (N,)),))
    driver.fail("fake_allocate", 2)
    with driver.allocator(), pytest.raises(RuntimeError, match="workspace of 8 bytes: the device"):
        launcher(plan, "scale 8")(vectors(8)[1][0])
    assert not driver.called("launch")


def test_arguments_are_checked_as_on_the_cpu(driver):
    run = launcher(vector_plan())
    (a, _), (on_a, on_b) = vectors(8)
    with pytest.raises(ArgumentTypeError, match="'alpha' .*expected float32, got str"):
        run(on_a, on_b, "x")
    with pytest.raises(ArgumentValueError, match="expected a tensor on cuda, got one on cpu"):
        run(a, on_b, 1.0)
    with pytest.raises(ArgumentValueError, match=r"expected shape \[n\] = \[8\]"):
        run(on_a, on_device(torch.zeros(9)), 1.0)
    assert not driver.calls


@pytest.mark.parametrize(("start", "past"), [(0, 0), (1, 4), (2, 8), (4, 0)])
def test_addresses_are_checked_for_the_width_of_accesses(driver, start, past):
    plan = plan_of(cuda_tensor("A", N, align=16))
    memory = torch.zeros(64)
    offset = -memory.data_ptr() // 4 % 4  # elements up to a boundary of 16 bytes
    view = on_device(memory[offset + start : offset + start + 8])
    run = launcher(plan, "scale 8")
    if past == 0:
        run(view)
        return
    with pytest.raises(ArgumentValueError) as caught:
        run(view)
    assert f"aligned to 16 bytes, got an address {past} bytes past" in str(caught.value)
    assert ".clone()" in str(caught.value)
    assert not driver.calls


def test_an_empty_tensor_may_lie_anywhere(driver):
    plan = plan_of(cuda_tensor("A", N, align=16), kernel={"grid": (1, 1, 1)})
    launcher(plan, "scale 8")(on_device(torch.zeros(5)[1:1]))
    assert driver.called("launch")


@pytest.mark.parametrize(
    ("function", "code", "message"),
    [
        ("cuLaunchKernelEx", 700, r"CUDA_ERROR_ILLEGAL_ADDRESS \(an illegal .* context .* lost"),
        ("cuLaunchKernelEx", 701, "128 threads with 40 registers each"),
        ("cuLaunchKernelEx", 720, "1 were asked for, and 8 fit"),
        ("cuLaunchKernelEx", 12345, "CUDA error 12345"),
        ("cuModuleLoadData", 209, r"compiled for sm_89; cuda:0 \(Fake GPU 0\) is sm_89"),
        ("cuDevicePrimaryCtxRetain", 3, "forked"),
        ("cuCtxGetCurrent", 700, "context of this process is lost"),
    ],
)
def test_failures_are_explained(driver, function, code, message):
    run = launcher(vector_plan())
    driver.fail(function, code)
    with pytest.raises(LaunchError, match=message):
        run(*vectors(8)[1], 1.0)


def test_a_call_works_after_a_failure_that_leaves_the_context(driver):
    run = launcher(vector_plan())
    driver.fail("cuModuleLoadData", 2)
    with pytest.raises(LaunchError):
        run(*vectors(8)[1], 1.0)
    driver.fail("", 0)
    run(*vectors(8)[1], 1.0)
    assert len(driver.called("launch")) == 1


def test_an_unknown_kernel_is_named(driver):
    with pytest.raises(LaunchError, match="finding kernel 'scale' in its code"):
        launcher(vector_plan(), "other 8")(*vectors(8)[1], 1.0)
    assert driver.called("unload")


def test_code_is_unloaded_with_the_kernel(driver):
    run = launcher(vector_plan())
    run(*vectors(8, 1)[1], 1.0)
    del run
    gc.collect()
    assert driver.called("unload") == ["unload on 1"]


def test_code_in_a_captured_graph_stays(driver):
    run = launcher(vector_plan())
    driver.capture(True)
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), STREAM):
        run(*vectors(8)[1], 1.0)
    del run
    gc.collect()
    assert not driver.called("unload") and not driver.called("synchronize")


def test_without_a_driver_the_call_says_so():
    with env.scope(TILELANG_CUDA_DRIVER="libno_such_driver.so.1"):
        run = launcher(vector_plan())
    with pytest.raises(LaunchError, match=r"f: an NVIDIA GPU is needed, .*libno_such_driver"):
        run(*vectors(8)[1], 1.0)


def test_a_driver_without_devices_is_reported(driver, tmp_path):
    copy = tmp_path / "libother.so"
    shutil.copy(driver.path, copy)
    with env.scope(TILELANG_CUDA_DRIVER=str(copy)):
        run = launcher(vector_plan())
    ctypes.CDLL(str(copy)).fake_fail(b"cuDeviceGetCount", 1)
    with pytest.raises(LaunchError, match="it finds no device"):
        run(*vectors(8)[1], 1.0)
