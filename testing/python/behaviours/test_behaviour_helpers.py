"""Helper modules and members that published tests and scripts import."""

import importlib
import inspect

import pytest
import tvm

import tilelang
from tilelang.jit import JITImpl, JITKernel

# What is called with these parameter names, in this order, with these defaults.
SIGNATURES = {
    "tilelang.testing.main": "()",
    "tilelang.testing.requires_cuda_compute_version": (
        "(major_version, minor_version=0, mode='ge')"
    ),
    "tilelang.testing.requires_cuda_compute_version_ge": "(major_version, minor_version=0)",
    "tilelang.testing.requires_cuda_compute_version_gt": "(major_version, minor_version=0)",
    "tilelang.testing.requires_cuda_compute_version_eq": "(major_version, minor_version=0)",
    "tilelang.testing.requires_cuda_compute_version_lt": "(major_version, minor_version=0)",
    "tilelang.testing.requires_cuda_compute_version_le": "(major_version, minor_version=0)",
    "tilelang.testing.torch_assert_close": (
        "(tensor_a, tensor_b, rtol=0.01, atol=0.001, max_mismatched_ratio=0.001, verbose=False, "
        "equal_nan=True, check_device=True, check_dtype=True, check_layout=True, "
        "check_stride=False, base_name='LHS', ref_name='RHS')"
    ),
    "tilelang.testing.set_random_seed": "(seed=42)",
    "tilelang.testing.requires_package": "(*names)",
    "tilelang.testing.process_func": "(func, name=None, /, **kwargs)",
    "tilelang.testing.regression": "(prefixes=('regression_',), verbose=True)",
    "tilelang.utils.language.to_buffer_region": "(obj, access_type='rw', extents=None)",
    "tilelang.enable_cache": "()",
    "tilelang.disable_cache": "()",
    "tilelang.is_cache_enabled": "()",
    "tilelang.backend.target.determine_target": "(target='auto', return_object=False)",
    "tilelang.backend.target.auto_detect_target": "()",
    "tilelang.backend.target.list_target_detectors": "()",
    "tilelang.backend.register_backend": "(module)",
    "tilelang.backend.get_backend": "(name)",
    "tilelang.backend.list_backends": "()",
    "tilelang.env.get_default_target": "()",
    "tilelang.env.get_pass_profile_threshold_ms": "()",
    "tilelang.layout.Layout": "(shape, forward_fn)",
    "tilelang.layout.Fragment": (
        "(shape, forward_fn=None, forward_thread_fn=None, replicate=1, forward_index_fn=None)"
    ),
    "tilelang.layout.make_swizzled_layout": "(buffer, k_major=True, allow_pad=True)",
    "tilelang.layout.make_linear_layout": "(buffer)",
    "tilelang.layout.make_full_bank_swizzled_layout": "(buffer)",
    "tilelang.layout.make_half_bank_swizzled_layout": "(buffer)",
    "tilelang.layout.make_quarter_bank_swizzled_layout": "(buffer)",
    "tilelang.layout.fragment.Fragment": (
        "(shape, forward_fn=None, forward_thread_fn=None, replicate=1, forward_index_fn=None)"
    ),
    "tilelang.layout.swizzle.make_swizzled_layout": "(buffer, k_major=True, allow_pad=True)",
}

# These take more than is documented; what is documented comes first.
EXTENDED = {
    "tilelang.compile": (
        "func out_idx execution_backend target target_host verbose pass_configs compile_flags"
    ),
    "tilelang.par_compile": (
        "funcs out_idx execution_backend target target_host verbose pass_configs compile_flags "
        "num_workers ignore_error"
    ),
    "tilelang.lower": (
        "func_or_mod target target_host runtime_only enable_host_codegen enable_device_compile"
    ),
    "tilelang.backend.create_backend_context": "target target_host execution_backend",
    "tilelang.backend.BackendContext": "module target target_host execution_backend",
    "tilelang.backend.target.register_target_detector": "name detect override",
    "tilelang.env.resolve_pass_profile_threshold_ms": "pass_configs",
    "tilelang.utils.tensor.torch_assert_close": "tensor_a tensor_b rtol atol max_mismatched_ratio",
}


def find(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("path", SIGNATURES)
def test_signatures(path):
    signature = inspect.signature(find(path))
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    assert str(inspect.Signature(bare)) == SIGNATURES[path]


@pytest.mark.parametrize("path", EXTENDED)
def test_documented_parameters_come_first(path):
    names = list(inspect.signature(find(path)).parameters)
    documented = EXTENDED[path].split()
    assert names[: len(documented)] == documented


@pytest.mark.parametrize(
    "name",
    ["cuda", "rocm", "metal", "llvm", "cdna", "gfx950", "cuda_or_cdna"],
)
def test_requirements_decorate_a_test(name):
    def test():
        return 3

    decorated = getattr(tilelang.testing, f"requires_{name}")(test)
    assert callable(decorated) and decorated.__name__ == "test"
    assert [mark.name for mark in decorated.pytestmark if mark.name == "skipif"]


def test_requirements_stack_and_cuda_offers_marks():
    @tilelang.testing.requires_cuda
    @tilelang.testing.requires_cuda_compute_version(9, 0)
    @tilelang.testing.requires_package("torch", "no_such_package")
    @pytest.mark.parametrize("value", [1, 2])
    def test(value):
        return value

    names = [mark.name for mark in test.pytestmark]
    assert names.count("skipif") >= 3 and "parametrize" in names
    assert all(mark.name for mark in tilelang.testing.requires_cuda.marks())


def test_ways_to_fill_tensors():
    found = {member.name: member.value for member in tilelang.TensorSupplyType}
    assert found == {
        "Integer": 1,
        "Uniform": 2,
        "Normal": 3,
        "Randn": 4,
        "Zero": 5,
        "One": 6,
        "Auto": 7,
    }


def test_jit_takes_its_documented_options_bare_or_called():
    options = {
        "out_idx": -1,
        "target": "llvm",
        "target_host": None,
        "execution_backend": "tvm_ffi",
        "verbose": False,
        "pass_configs": {},
        "debug_root_path": None,
        "compile_flags": None,
    }

    def factory(n):
        return n

    assert isinstance(tilelang.jit(factory), JITImpl)
    assert isinstance(tilelang.jit(**options)(factory), JITImpl)


@pytest.mark.parametrize("member", ["compile", "par_compile", "get_tir", "get_kernel_source"])
def test_members_of_a_jit_object(member):
    assert callable(getattr(JITImpl, member)) and callable(JITImpl.__call__)


KERNEL_MEMBERS = (
    "get_kernel_source get_host_source get_profiler run_once params adapter export_sources "
    "print_source_code show_source config latency"
)


@pytest.mark.parametrize("member", KERNEL_MEMBERS.split())
def test_members_of_a_kernel(member):
    assert hasattr(JITKernel, member) or member in JITKernel.__annotations__


CHECK_PARAMETERS = "reference_program input_tensors atol rtol max_mismatched_ratio"
BENCH_PARAMETERS = (
    "func warmup rep n_warmup n_repeat input_tensors backend quantiles return_mode "
    "dynamic_symbolic_constraints device early_stop_baseline"
)


def test_members_of_a_profiler():
    check = inspect.signature(tilelang.Profiler.assert_allclose)
    assert list(check.parameters)[1:] == CHECK_PARAMETERS.split()
    bench = inspect.signature(tilelang.Profiler.do_bench)
    assert list(bench.parameters)[1:] == BENCH_PARAMETERS.split()
    for name in ("run_once", "manual_assert_close", "assert_consistent"):
        assert callable(getattr(tilelang.Profiler, name))


def test_an_artifact_has_source_modules_and_parameters():
    fields = tilelang.engine.CompiledArtifact.__dataclass_fields__
    assert set(fields) >= {"kernel_source", "host_mod", "device_mod", "params"}


def test_tvm_is_reachable():
    assert tilelang.tvm is tvm and tilelang.DataType is tvm.DataType


def test_swizzle_modes():
    assert {mode.name for mode in tilelang.layout.SwizzleMode} == {
        "NONE",
        "SWIZZLE_32B",
        "SWIZZLE_64B",
        "SWIZZLE_128B",
    }


def test_unknown_members_are_attribute_errors():
    with pytest.raises(AttributeError, match="no_such_member"):
        tilelang.no_such_member
