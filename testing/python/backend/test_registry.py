"""Registering backends and choosing one."""

from dataclasses import replace

import pytest
import tvm_ffi
from tvm.target import Target

from tilelang.backend import (
    BackendContext,
    DeviceCodegen,
    ExecutionBackendSpec,
    PassPipeline,
    create_backend_context,
    get_backend,
    list_backends,
    register_backend,
    select_backend,
    unregister_backend,
)
from tilelang.env import env
from tilelang.errors import BackendError


def identity(mod, target):
    return mod


def test_list_backends_returns_a_copy():
    list_backends().clear()
    assert list_backends()


def test_registration_is_idempotent():
    module = get_backend("cuda")
    assert register_backend(module) is module
    assert register_backend(replace(module)) is module


def test_different_declaration_is_refused():
    module = get_backend("cuda")
    changed = replace(module, callbacks={**module.callbacks, "unit.callback": lambda: None})
    with pytest.raises(ValueError, match="different declaration"):
        register_backend(changed)
    assert get_backend("cuda") is module
    assert tvm_ffi.get_global_func("unit.callback", allow_missing=True) is None


def test_sharing_a_kind_needs_predicates_on_both_sides(manifest, registered):
    plain = replace(get_backend("cuda"), name="unit-cuda", supports_target=None, callbacks={})
    with pytest.raises(ValueError, match="'unit-cuda' must define supports_target"):
        register_backend(plain)
    registered(manifest())
    with pytest.raises(ValueError, match="'unit' must define supports_target"):
        register_backend(manifest(name="second", supports_target=lambda target: False))


def test_callbacks_appear_and_disappear_with_the_backend(manifest, registered):
    registered(manifest(callbacks={"unit.callback": lambda: 42}))
    assert tvm_ffi.get_global_func("unit.callback")() == 42
    unregister_backend("unit")
    assert tvm_ffi.get_global_func("unit.callback", allow_missing=True) is None


def test_callback_of_another_backend_is_refused(manifest, registered):
    taken = {"tilelang_callback_cuda_compile": identity}
    with pytest.raises(BackendError, match="belongs to 'cuda'"):
        register_backend(manifest(callbacks=taken))
    assert "unit" not in list_backends()


def test_failed_publication_leaves_nothing_behind(manifest, monkeypatch):
    publish = tvm_ffi.register_global_func

    def fail_on_second(name, *arguments, **keywords):
        if name == "unit.second":
            raise RuntimeError("registry is full")
        return publish(name, *arguments, **keywords)

    monkeypatch.setattr(tvm_ffi, "register_global_func", fail_on_second)
    module = manifest(callbacks={"unit.first": identity, "unit.second": identity})
    with pytest.raises(BackendError, match="registry is full"):
        register_backend(module)
    assert "unit" not in list_backends()
    assert tvm_ffi.get_global_func("unit.first", allow_missing=True) is None


def test_context_binds_compile_state_and_is_immutable():
    context = create_backend_context("cuda", "c", "tvm_ffi")
    assert context.module is get_backend("cuda")
    assert context.target.kind.name == "cuda"
    assert context.target_host.kind.name == "c"
    assert context.target.host.kind.name == "c"
    assert context.execution_backend.name == "tvm_ffi"
    with pytest.raises(AttributeError):
        context.target = Target("llvm")


def test_codegen_follows_the_policy_of_the_execution_backend(manifest):
    asked = []
    codegen = DeviceCodegen(
        "test",
        build=lambda mod, target: asked.append("binary"),
        build_without_compile=lambda mod, target: asked.append("source"),
    )
    specs = (
        ExecutionBackendSpec("binary", enable_device_compile=True),
        ExecutionBackendSpec("source"),
    )
    module = manifest(device_codegens={"test": codegen}, execution_backends=specs)
    for spec in specs:
        BackendContext(module, Target("test"), Target("c"), spec).codegen_device(None)
    BackendContext(module, Target("test"), Target("c"), specs[1]).codegen_device(
        None, compile_device=True
    )
    assert asked == ["binary", "source", "binary"]


def test_host_shares_the_options_of_a_cpu_target():
    context = create_backend_context({"kind": "llvm", "mcpu": "znver4"}, "llvm")
    assert context.target_host.attrs["mcpu"] == "znver4"
    assert create_backend_context("llvm", "c").target_host.kind.name == "c"


def test_host_of_the_given_target_is_kept():
    target = Target({"kind": "cuda", "arch": "sm_80"}, host="c")
    assert create_backend_context(target).target_host.kind.name == "c"
    assert create_backend_context("cuda").target_host.kind.name == "llvm"


def test_execution_backend_from_the_environment_is_used_where_it_fits():
    with env.scope(TILELANG_EXECUTION_BACKEND="tvm_ffi"):
        assert create_backend_context("c").execution_backend.name == "tvm_ffi"
    with env.scope(TILELANG_EXECUTION_BACKEND="cython"):
        assert create_backend_context("c").execution_backend.name == "cython"
        assert create_backend_context("llvm").execution_backend.name == "tvm_ffi"


def test_unknown_execution_backend_in_the_environment_is_refused():
    with (
        env.scope(TILELANG_EXECUTION_BACKEND="nvrct"),
        pytest.raises(BackendError, match="TILELANG_EXECUTION_BACKEND is 'nvrct'"),
    ):
        create_backend_context("llvm")


def test_execution_backend_may_name_the_target_nobody_gave(manifest, registered):
    emulator = ExecutionBackendSpec("unit-emulator", default_target="test")
    registered(manifest(execution_backends=(emulator,)))
    assert create_backend_context(execution_backend="unit-emulator").name == "unit"
    with Target("llvm"), pytest.raises(BackendError, match="Invalid execution backend"):
        create_backend_context(execution_backend="unit-emulator")


def test_tensors_of_a_device_choose_its_backend():
    assert create_backend_context(device_type="cpu").name == "cpu"
    with Target("c"):
        assert create_backend_context(device_type="cpu").target.kind.name == "c"


def test_lowering_to_text_needs_nothing_that_runs(manifest, registered):
    absent = ExecutionBackendSpec("unit", is_available=lambda: False)
    registered(manifest(execution_backends=(absent,)))
    assert create_backend_context("test", runnable=False).execution_backend is absent
    assert create_backend_context("test", None, "unit", runnable=False).name == "unit"
    with pytest.raises(BackendError, match="no execution backend can run here"):
        create_backend_context("test")


def test_kind_without_a_backend_is_refused():
    with pytest.raises(BackendError, match=r"no backend compiles for target kind 'opencl'"):
        create_backend_context("opencl")


def test_two_backends_for_one_target_are_refused(manifest, registered):
    registered(manifest(name="one", supports_target=lambda target: True))
    registered(manifest(name="two", supports_target=lambda target: True))
    with pytest.raises(BackendError, match="several backends claim target.*one, two"):
        select_backend(Target("test"))


def test_unknown_backend_name_is_refused():
    with pytest.raises(BackendError, match=r"no backend 'tpu'; registered: .*\bcuda\b"):
        get_backend("tpu")


def test_context_parts_must_belong_together():
    cpu, spec = get_backend("cpu"), ExecutionBackendSpec("foreign")
    with pytest.raises(BackendError, match="does not compile for target"):
        BackendContext(cpu, Target("webgpu"), Target("c"), cpu.execution_backends[1])
    with pytest.raises(BackendError, match="is not declared by backend 'cpu'"):
        BackendContext(cpu, Target("llvm"), Target("c"), spec)
    with pytest.raises(BackendError, match="does not support target"):
        BackendContext(cpu, Target("llvm"), Target("c"), cpu.execution_backends[0])


def test_pipeline_needs_a_name_and_one_body():
    with pytest.raises(BackendError, match="needs a name"):
        PassPipeline("", identity)
    with pytest.raises(BackendError, match="either lower or steps"):
        PassPipeline("test")
    with pytest.raises(BackendError, match="either lower or steps"):
        PassPipeline("test", identity, steps=())
