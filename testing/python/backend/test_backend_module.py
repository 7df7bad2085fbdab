"""Manifests: what ships, what each rule refuses."""

from dataclasses import FrozenInstanceError, replace

import pytest
import tvm
import tvm_ffi
from tvm.target import Target

from tilelang.backend import (
    STANDARD_HOST_CODEGENS,
    DeviceCodegen,
    ExecutionBackendSpec,
    HostCodegenHook,
    PassPipeline,
    create_backend_context,
    get_backend,
    list_backends,
)
from tilelang.errors import BackendError, CodegenError, UnsupportedError

MANIFESTS = {
    "cuda": (("cuda",), ("tvm_ffi", "nvrtc", "cython", "emulator")),
    "cutedsl": (("cuda",), ("cutedsl",)),
    "rocm": (("hip",), ("tvm_ffi", "cython")),
    "metal": (("metal",), ("torch", "tvm_ffi")),
    "cpu": (("c", "llvm"), ("cython", "tvm_ffi")),
    "webgpu": (("webgpu",), ("tvm_ffi",)),
}


def identity(mod, target):
    return mod


def test_shipped_manifests_have_documented_kinds_and_execution_backends():
    found = {
        name: (module.target_kinds, tuple(spec.name for spec in module.execution_backends))
        for name, module in list_backends().items()
    }
    assert found == MANIFESTS


@pytest.mark.parametrize(
    ("kind", "backend", "codegen"),
    [
        ("c", "cpu", "c"),
        ("llvm", "cpu", "llvm"),
        ("cuda", "cuda", "cuda"),
        ("hip", "rocm", "hip"),
        ("metal", "metal", "metal"),
        ("webgpu", "webgpu", "webgpu"),
    ],
)
def test_every_kind_resolves_to_its_backend(kind, backend, codegen):
    context = create_backend_context(kind, "c", "auto")
    assert context.name == backend
    assert context.module.matches(context.target)
    assert context.module.get_device_codegen(context.target).name == codegen
    assert context.execution_backend.name in context.module.allowed_execution_backends(
        context.target
    )
    assert context.module.get_host_codegen(Target("c")).name == "c"


def test_cutedsl_shares_the_cuda_pipeline_with_its_own_codegen():
    cuda = Target({"kind": "cuda", "arch": "sm_90a"})
    cutedsl = Target({"kind": "cuda", "arch": "sm_90a", "keys": ["cuda", "gpu", "cutedsl"]})
    module = get_backend("cutedsl")
    assert module.get_pipeline(cutedsl) == get_backend("cuda").get_pipeline(cuda)
    assert module.get_device_codegen(cutedsl).name == "cutedsl"
    assert module.matches(cutedsl) and not module.matches(cuda)
    assert get_backend("cuda").matches(cuda) and not get_backend("cuda").matches(cutedsl)


def test_cpu_runs_c_with_cython_first_and_llvm_with_tvm_ffi_only():
    module = get_backend("cpu")
    assert module.allowed_execution_backends(Target("c")) == ("cython", "tvm_ffi")
    assert module.allowed_execution_backends(Target("llvm")) == ("tvm_ffi",)
    assert module.resolve_execution_backend("auto", Target("c")).name == "cython"
    assert module.resolve_execution_backend(None, Target("llvm")).name == "tvm_ffi"
    assert module.resolve_execution_backend("ctypes", Target("c")).name == "cython"


def test_every_backend_names_the_device_of_its_tensors():
    devices = {name: module.device_type for name, module in list_backends().items()}
    assert devices["cpu"] == "cpu" and devices["metal"] == "mps"
    assert devices["cuda"] == devices["cutedsl"] == devices["rocm"] == "cuda"
    assert create_backend_context("hip").device_type == "cuda"


def test_callbacks_are_published_as_global_functions():
    for backend, name in (
        ("cuda", "tilelang_callback_cuda_validate"),
        ("cuda", "tilelang_callback_cuda_compile"),
        ("rocm", "tilelang_callback_hip_compile"),
    ):
        assert name in get_backend(backend).callbacks
        assert tvm_ffi.get_global_func(name) is not None


@pytest.mark.parametrize("kind", ["hip", "metal", "webgpu"])
def test_a_backend_to_come_refuses_and_says_where_kernels_can_run(kind):
    context = create_backend_context(kind)
    with pytest.raises(UnsupportedError, match=r"cannot compile kernels yet.*cpu \(target c or"):
        context.lower(tvm.IRModule())


@pytest.mark.parametrize("kind", ["hip", "metal", "webgpu"])
def test_a_backend_to_come_generates_no_code(kind):
    with pytest.raises(UnsupportedError, match="generating device code"):
        create_backend_context(kind).codegen_device(tvm.IRModule())


def test_a_manifest_is_immutable_and_replaceable(manifest):
    module = manifest()
    with pytest.raises(FrozenInstanceError):
        module.name = "other"
    with pytest.raises(TypeError):
        module.callbacks["x"] = identity
    assert replace(module, name="other").target_kinds == ("test",)
    assert manifest() == module and hash(manifest()) == hash(module)


def test_hooks_run_in_order_on_host_ir(manifest):
    def renamed(name):
        def apply(mod, target_host, target):
            return mod.with_attr(name, target_host.kind.name + target.kind.name)

        return HostCodegenHook(name, apply)

    module = manifest(host_codegen_hooks={"test": [renamed("first"), renamed("second")]})
    mod = module.preprocess_host_codegen(tvm.IRModule(), Target("c"), Target("test"))
    assert mod.attrs["first"] == "ctest"
    assert mod.attrs["second"] == "ctest"


SPEC = ExecutionBackendSpec("unit")
RULES = [
    ({"name": ""}, "needs a name"),
    ({"device_type": ""}, "device_type is empty"),
    ({"target_kinds": ()}, "at least one kind"),
    ({"target_kinds": ("test", "test")}, "target kinds must be unique"),
    ({"pipelines": {}}, "pipelines must have exactly one entry per target kind"),
    ({"pipelines": {"test": PassPipeline("other", identity)}}, "is named 'other'"),
    ({"device_codegens": {}}, "device_codegens must have exactly one entry"),
    ({"execution_backends": ()}, "at least one execution backend"),
    ({"execution_backends": (SPEC, SPEC)}, "must be unique"),
    (
        {"execution_backends": (replace(SPEC, enable_host_codegen=True),)},
        "host_codegens are required by unit",
    ),
    (
        {"host_codegen_hooks": {"cuda": (HostCodegenHook("h", lambda m, h, t: m),)}},
        "not one of its own",
    ),
    ({"host_codegen_hooks": {"test": ()}}, "are empty"),
    ({"callbacks": {"": identity}}, "callback has an empty name"),
]


@pytest.mark.parametrize(("changes", "message"), RULES, ids=[message for _, message in RULES])
def test_invalid_manifest_is_refused(manifest, changes, message):
    with pytest.raises(ValueError, match=message):
        manifest(**changes)


@pytest.mark.parametrize("name", ["", "auto", "ctypes"])
def test_reserved_or_empty_execution_backend_name_is_refused(name):
    with pytest.raises(BackendError):
        ExecutionBackendSpec(name)


def test_foreign_target_kind_is_refused(manifest):
    with pytest.raises(BackendError, match="does not compile for target kind 'llvm'"):
        manifest().get_pipeline(Target("llvm"))


def test_missing_host_codegen_is_refused(manifest):
    with pytest.raises(BackendError, match="no host code generation for host kind 'hexagon'"):
        manifest(host_codegens=STANDARD_HOST_CODEGENS).get_host_codegen(Target("hexagon"))


def test_unknown_execution_backend_lists_the_allowed_ones():
    with pytest.raises(ValueError, match=r"Invalid execution backend 'nvrtc'.*auto, tvm_ffi"):
        get_backend("cpu").resolve_execution_backend("nvrtc", Target("llvm"))


def test_unavailable_execution_backend_lists_the_available_ones(manifest):
    absent = ExecutionBackendSpec("absent", is_available=lambda: False, requires="a unicorn")
    module = manifest(execution_backends=(absent, SPEC))
    assert module.resolve_execution_backend("auto", Target("test")).name == "unit"
    assert module.allowed_execution_backends(Target("test"), include_unavailable=False) == ("unit",)
    with pytest.raises(BackendError, match=r"needs a unicorn; available: unit"):
        module.resolve_execution_backend("absent", Target("test"))
    with pytest.raises(BackendError, match="no execution backend can run here"):
        manifest(execution_backends=(absent,)).resolve_execution_backend("auto", Target("test"))


def test_device_codegen_without_the_asked_mode_is_refused():
    with pytest.raises(BackendError, match="needs build, build_without_compile or both"):
        DeviceCodegen("none")
    with pytest.raises(BackendError, match="cannot stop at source code"):
        DeviceCodegen("binary", build=identity).lower(
            tvm.IRModule(), Target("test"), compile_device=False
        )


def test_failing_codegen_is_reported_with_its_name():
    def broken(mod, target):
        raise RuntimeError("no such intrinsic")

    with pytest.raises(CodegenError, match="code generation 'unit' failed.*no such intrinsic"):
        DeviceCodegen("unit", broken).lower(tvm.IRModule(), Target("test"), compile_device=True)
