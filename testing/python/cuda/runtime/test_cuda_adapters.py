"""CUDA kernels of every execution backend, made and called on a machine without a GPU."""

import dataclasses
import gc

import pytest
import torch
import tvm
from fake_cuda_driver import on_device

import tilelang
import tilelang.language as T
from tilelang.backend import BackendContext, PassPipeline, create_backend_context
from tilelang.engine.lower import lower_with_context
from tilelang.env import env
from tilelang.errors import LaunchError, UnsupportedError
from tilelang.jit.adapter import KernelBundle, find_adapter
from tilelang.testing import requires_package

TARGET = {"kind": "cuda", "arch": "sm_90a"}
BACKENDS = [
    "tvm_ffi",
    "cython",
    pytest.param("nvrtc", marks=requires_package("cuda.bindings").marks()),
]


def scale_program():
    n = T.dynamic("n")

    @T.prim_func
    def scale(A: T.Tensor((n,), "float32"), factor: T.float32, B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                B[block * 128 + i] = A[block * 128 + i] * factor

    return scale


@pytest.fixture(params=BACKENDS)
def kernel(request, tmp_path):
    with env.scope(TILELANG_CACHE_DIR=str(tmp_path), TILELANG_CUDA_DRIVER="libno_driver.so.1"):
        yield tilelang.compile(scale_program(), target=TARGET, execution_backend=request.param)


def test_a_kernel_is_built_and_shown_without_a_gpu(kernel):
    assert "scale_kernel" in kernel.get_kernel_source()
    binaries = kernel.adapter.bundle.binaries
    assert binaries["kernel.cubin"].startswith(b"\x7fELF")
    assert binaries["kernel.archs"] == b"sm_90a"


def test_its_call_says_that_there_is_no_driver(kernel):
    tensor = torch.zeros(8)
    with pytest.raises(LaunchError, match="NVIDIA GPU is needed, .* libno_driver"):
        kernel(tensor, 2.0, tensor)


def test_it_is_restored_from_its_files(kernel):
    bundle = kernel.adapter.bundle
    restored = KernelBundle.from_files(bundle.to_files())
    again = find_adapter(kernel.execution_backend)(restored)
    assert restored.binaries == dict(bundle.binaries) and restored.plan == bundle.plan
    with pytest.raises(LaunchError, match="NVIDIA GPU is needed"):
        again.func(torch.zeros(8), 2.0, torch.zeros(8))


def test_a_second_process_would_find_it_in_the_cache(tmp_path):
    def compiled():
        return tilelang.compile(scale_program(), target=TARGET, execution_backend="tvm_ffi")

    with env.scope(TILELANG_CACHE_DIR=str(tmp_path)):
        first = compiled()
        files = dict(first.adapter.bundle.binaries)
        del first  # the last use in this process
        gc.collect()
        second = compiled()
    assert second.from_cache and dict(second.adapter.bundle.binaries) == files
    assert second.n_regs > 0


def test_its_resources_and_ptx_are_told(kernel, capsys):
    assert 0 < kernel.n_regs < 64 and kernel.n_spills == 0 and kernel.n_max_threads == 1024
    assert kernel.resource_usage["kernels"]["scale_kernel"]["registers"] == kernel.n_regs
    kernel.show_ptx()
    assert ".target sm_90a" in capsys.readouterr().out


def test_device_code_is_no_shared_library(kernel, tmp_path):
    with pytest.raises(UnsupportedError, match="export_library"):
        kernel.export_library(tmp_path / "kernel.so")


@pytest.mark.parametrize("backend", ["tvm_ffi", "cython"])
def test_a_compiled_plan_launches_on_the_driver(driver, tmp_path, backend):
    with env.scope(TILELANG_CACHE_DIR=str(tmp_path)):
        kernel = tilelang.compile(scale_program(), target=TARGET, execution_backend=backend)
    bundle = dataclasses.replace(
        kernel.adapter.bundle,
        binaries={"kernel.cubin": b"scale_kernel 8 4 8 4\0", "kernel.archs": b"sm_90a"},
    )
    a, b = torch.zeros(300), torch.zeros(300)
    adapter = find_adapter(backend)(bundle)
    adapter.func(on_device(a), 2.0, on_device(b))
    grid, args = driver.called("launch")[0].split("args")
    assert "grid 3,1,1 block 128,1,1" in grid
    assert sorted(args.split()) == sorted(
        [f"{a.data_ptr():#x}", "0x40000000", f"{b.data_ptr():#x}", hex(300)]
    )


def test_what_lowering_learns_of_a_launch_is_in_the_plan():
    context = create_backend_context(TARGET, None, "tvm_ffi")
    facts = {
        "tl.dyn_smem": 4096,
        "tl.cluster": [2, 1, 1],
        "tl.launch_flags": ["pdl"],
        "tl.param_align": {"A": 16},
    }

    def lower(mod, target):
        lowered = context.module.lower(mod, target)
        return tvm.IRModule(
            {name: func.with_attrs(facts) for name, func in lowered.functions.items()}
        )

    module = dataclasses.replace(
        context.module, pipelines={"cuda": PassPipeline("cuda", lower)}, callbacks={}
    )
    changed = BackendContext(module, context.target, context.target_host, context.execution_backend)
    plan = lower_with_context(scale_program(), changed).plan
    (kernel,) = plan.kernels
    assert (kernel.dyn_smem, kernel.cluster, kernel.flags) == (4096, (2, 1, 1), ("pdl",))
    assert [param.align for param in plan.params] == [16, None, None]
    assert type(plan).from_json(plan.to_json()) == plan
