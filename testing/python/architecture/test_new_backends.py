"""A target backend and an execution backend that no shared file knows, from outside the package."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang._native import make_cpu_launcher
from tilelang.backend import (
    BackendModule,
    DeviceCodegen,
    ExecutionBackendSpec,
    PassPipeline,
    PassStep,
    get_backend,
    register_backend,
    unregister_backend,
)
from tilelang.errors import BackendError
from tilelang.jit import adapter as adapters
from tilelang.jit.adapter import KernelAdapter, KernelBundle, register_adapter


class ToyModule:
    """What the toy code generator makes: text that names the kernels and nothing else."""

    def __init__(self, mod):
        self.entries = sorted(gv.name_hint for gv in mod.get_global_vars())

    def inspect_source(self, fmt=""):
        return f"toy kernels: {', '.join(self.entries)}"


def double_block(slots, begin, end, scratch):
    """Blocks [begin, end) of a kernel that doubles 4 elements a block."""
    pointers = ctypes.cast(slots, ctypes.POINTER(ctypes.c_uint64))
    source, result = (ctypes.cast(pointers[i], ctypes.POINTER(ctypes.c_float)) for i in (0, 1))
    for i in range(4 * begin, 4 * end):
        result[i] = 2 * source[i]


class ToyAdapter(KernelAdapter):
    """Runs every kernel as ``double_block``."""

    name = "toy"
    storable = False

    @classmethod
    def build(cls, artifact, compile_flags):
        return KernelBundle(plan=artifact.plan, kernel_source=artifact.kernel_source)

    def load(self, bundle):
        return make_cpu_launcher(bundle.plan, [double_block] * len(bundle.plan.kernels))


def tag(mod, target):
    return mod.with_attr("toy", 1)


def toy_codegen(mod, target):
    assert mod.attrs["toy"] == 1  # the pipeline ran
    return ToyModule(mod)


TOY = BackendModule(
    name="toy",
    target_kinds=("test",),
    pipelines={"test": PassPipeline("test", steps=[PassStep(tag, "the codegen looks for it")])},
    device_codegens={"test": DeviceCodegen("toy", toy_codegen, toy_codegen)},
    execution_backends=(ExecutionBackendSpec("toy"),),
)


@T.prim_func
def double(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(16, threads=4) as block:
        for i in T.Parallel(4):
            B[block * 4 + i] = A[block * 4 + i] * 2


@pytest.fixture
def toy_adapter(monkeypatch):
    monkeypatch.setattr(adapters, "_REGISTERED", {})
    register_adapter("toy", lambda: ToyAdapter)


@pytest.fixture
def toy_backend(toy_adapter):
    yield register_backend(TOY)
    unregister_backend("toy")


@pytest.fixture
def cpu_with_toy(toy_adapter):
    """The CPU backend with one more line in its manifest."""
    cpu = get_backend("cpu")
    unregister_backend("cpu")
    specs = (*cpu.execution_backends, ExecutionBackendSpec("toy"))
    yield register_backend(replace(cpu, execution_backends=specs))
    unregister_backend("cpu")
    register_backend(cpu)


def test_a_new_target_backend_compiles_and_runs(toy_backend):
    kernel = tilelang.compile(double, out_idx=-1, target="test")
    a = torch.randn(64)
    assert torch.equal(kernel(a), 2 * a)
    assert kernel.get_kernel_source().startswith("toy kernels: ")


def test_a_new_execution_backend_runs_on_an_old_target(cpu_with_toy):
    kernel = tilelang.compile(double, out_idx=-1, target="llvm", execution_backend="toy")
    a = torch.randn(64)
    assert isinstance(kernel.adapter, ToyAdapter)
    assert torch.equal(kernel(a), 2 * a)


def test_jit_reaches_a_new_backend(toy_backend):
    @tilelang.jit(out_idx=-1, target="test")
    def factory():
        return double

    a = torch.randn(64)
    assert torch.equal(factory()(a), 2 * a)


def test_lower_reaches_a_new_backend(toy_backend):
    artifact = tilelang.lower(double, target="test")
    assert artifact.kernel_source.startswith("toy kernels: ")
    assert artifact.target.kind.name == "test"


def test_a_new_adapter_takes_no_used_name(toy_adapter):
    with pytest.raises(BackendError, match="tvm_ffi"):
        register_adapter("tvm_ffi", lambda: ToyAdapter)


def test_without_the_backend_its_target_is_refused():
    with pytest.raises(BackendError, match="no backend compiles for target kind 'test'"):
        tilelang.compile(double, target="test")


def test_without_the_spec_line_the_adapter_is_refused(toy_adapter):
    with pytest.raises(BackendError, match="Invalid execution backend 'toy'"):
        tilelang.compile(double, target="llvm", execution_backend="toy")
