"""Members of a kernel."""

import pytest
import torch
import tvm_ffi

import tilelang
from tilelang.errors import UnsupportedError


@pytest.fixture(scope="module")
def kernel(add_factory):
    return tilelang.compile(add_factory(), out_idx=-1, target="llvm", verbose=False)


def test_it_knows_what_it_is(kernel):
    assert (kernel.name, kernel.backend, kernel.execution_backend) == ("add", "cpu", "tvm_ffi")
    assert kernel.target.kind.name == "llvm" and kernel.target_host.kind.name == "llvm"
    assert kernel.backend_context.execution_backend is kernel.execution_backend_spec
    assert [(p.name, p.dtype, tuple(p.shape)) for p in kernel.params] == [
        (name, "float32", (64,)) for name in "ABC"
    ]
    assert kernel.out_idx == [2] and kernel.verbose is False
    assert repr(kernel) == "<JITKernel add(A, B) on cpu>"


def test_source_is_shown_and_written(kernel, tmp_path, capsys):
    text = kernel.get_kernel_source()
    assert "add_kernel" in text and kernel.kernel_source == text
    kernel.show_source()
    assert capsys.readouterr().out.strip() == text.strip()
    kernel.print_source_code(file=tmp_path / "printed")
    kernel.export_sources(tmp_path / "kernel", tmp_path / "host")
    assert (tmp_path / "printed").read_text() == (tmp_path / "kernel").read_text() == text
    assert (tmp_path / "host").read_text() == kernel.get_host_source() == kernel.host_source
    kernel.show_source("both")
    with pytest.raises(ValueError, match="which is"):
        kernel.show_source("neither")


def test_the_native_callable_is_exposed(kernel):
    a, b = torch.randn(64), torch.randn(64)
    assert kernel.torch_function is kernel.adapter.func
    assert torch.equal(kernel.torch_function(a, b), kernel(a, b))


def test_tuning_results_are_kept(add_factory):
    kernel = tilelang.compile(add_factory(scale=31.0))
    with pytest.raises(ValueError, match="not been tuned"):
        kernel.get_tuner_result()
    assert kernel.update_tuner_result(0.5, {"block": 16}, None) is kernel
    assert kernel.get_tuner_result() == {
        "latency": 0.5,
        "config": {"block": 16},
        "ref_latency": None,
    }
    assert kernel.latency == 0.5 and kernel.config == {"block": 16}


@pytest.mark.parametrize("member", ["show_ptx", "show_sass"])
def test_gpu_text_is_refused_elsewhere(kernel, member):
    with pytest.raises(UnsupportedError, match="not available on backend 'cpu'"):
        getattr(kernel, member)()


@pytest.mark.parametrize("member", ["export_ptx", "export_sass"])
def test_gpu_files_are_refused_elsewhere(kernel, member, tmp_path):
    with pytest.raises(UnsupportedError):
        getattr(kernel, member)(tmp_path / "file")
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize("member", ["resource_usage", "n_regs", "n_spills", "n_max_threads"])
def test_device_resources_are_refused_elsewhere(kernel, member):
    with pytest.raises(UnsupportedError, match="resource usage"):
        getattr(kernel, member)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_library_is_exported(add_factory, target, tmp_path):
    kernel = tilelang.compile(add_factory(), target=target)
    kernel.export_library(tmp_path / "add.so")
    assert tvm_ffi.load_module(tmp_path / "add.so").implements_function("add_kernel")


def test_the_report_tells_origin_and_time(kernel):
    text = kernel.report()
    assert "add" in text and "target" in text and "add_kernel" in text
    assert "load" in kernel.phases


def test_a_profiler_runs_the_kernel(kernel):
    profiler = kernel.get_profiler()
    profiler.assert_allclose(lambda a, b: a + b, atol=1e-5, rtol=1e-5)
    kernel.run_once()
