"""``tilelang.contrib.nvcc``: versions, compiles and what architectures have."""

from __future__ import annotations

import pytest

from tilelang.contrib import nvcc
from tilelang.env import env
from tilelang.errors import DeviceCompileError, TargetError

SOURCE = 'extern "C" __global__ void two(float* a) { a[threadIdx.x] *= 2; }'
HOPPER = {"kind": "cuda", "arch": "sm_90a"}


def test_the_version_is_that_of_the_compiler_in_use():
    major, minor = nvcc.get_cuda_version()
    assert (major, minor) >= (12, 0)


def fake_nvcc(folder, text):
    (folder / "bin").mkdir()
    path = folder / "bin" / "nvcc"
    path.write_text(f"#!/bin/sh\necho '{text}'\n")
    path.chmod(0o755)


def test_the_version_of_a_toolkit(tmp_path):
    fake_nvcc(tmp_path, "Cuda compilation tools, release 12.4, V12.4.131")
    assert nvcc.get_cuda_version(str(tmp_path)) == (12, 4)
    with env.scope(CUDA_HOME=str(tmp_path), TILELANG_CUDA_COMPILER="nvcc"):
        assert nvcc.get_cuda_version() == (12, 4)
        assert nvcc.find_cuda_path() == str(tmp_path.resolve())


def test_a_toolkit_that_is_none(tmp_path):
    with pytest.raises(DeviceCompileError, match="cannot be run"):
        nvcc.get_cuda_version(str(tmp_path))
    fake_nvcc(tmp_path, "hello")
    with pytest.raises(DeviceCompileError, match="names no release: 'hello"):
        nvcc.get_cuda_version(str(tmp_path))


def test_compiles():
    assert nvcc.compile_cuda(SOURCE, arch="sm_80")[:4] == b"\x7fELF"
    ptx = nvcc.compile_cuda(SOURCE, "ptx", "sm_80", "-DX").decode()
    assert ".target sm_80" in ptx and ".entry two" in ptx
    assert ".entry two" in nvcc.get_ptx_from_source(SOURCE, ["-DX"])
    with pytest.raises(ValueError, match="'ptx' or 'cubin', found 'sass'"):
        nvcc.compile_cuda(SOURCE, "sass")


def test_compute_versions_of_targets():
    assert nvcc.get_target_compute_version(HOPPER) == "9.0"
    assert nvcc.get_target_compute_version({"kind": "cuda", "arch": "sm_120"}) == "12.0"
    assert nvcc.get_target_arch_and_code(HOPPER) == ("sm_90a", ["sm_90a"])
    assert nvcc.parse_compute_version("8.9") == (8, 9)
    with pytest.raises(ValueError, match="like '9.0', found '90'"):
        nvcc.parse_compute_version("90")
    with pytest.raises(TargetError, match="llvm is no CUDA target"):
        nvcc.get_target_compute_version("llvm")


@pytest.mark.parametrize(
    ("name", "first", "before"),
    [
        ("have_fp16", "5.3", "5.2"),
        ("have_int8", "6.1", "6.0"),
        ("have_tensorcore", "7.0", "6.2"),
        ("have_bf16", "8.0", "7.5"),
        ("have_mbarrier", "8.0", "7.5"),
        ("have_fp8", "8.9", "8.6"),
        ("have_tma", "9.0", "8.9"),
        ("have_pdl", "9.0", "8.9"),
    ],
)
def test_what_an_architecture_has(name, first, before):
    have = getattr(nvcc, name)
    assert have(first) and not have(before) and have("12.0") and have(HOPPER)


def test_hopper():
    assert nvcc.is_hopper(HOPPER) and not nvcc.is_hopper({"kind": "cuda", "arch": "sm_100a"})
    assert nvcc.have_cudagraph()


def test_other_names():
    with pytest.raises(AttributeError, match="has no attribute 'have_wings'"):
        _ = nvcc.have_wings
