"""The device compiler: options, errors with the user's line, what it reports, PTX."""

from __future__ import annotations

import pytest
import tvm_ffi
from tvm.target import Target

from tilelang.cuda.compile import DeviceBinary, compile_source, show_ptx, show_sass
from tilelang.cuda.compile.binary import Resources, parse_resources
from tilelang.cuda.compile.diagnostics import rejection
from tilelang.cuda.compile.disassemble import find_disassembler
from tilelang.cuda.compile.nvcc import find_nvcc
from tilelang.cuda.compile.nvrtc import nvrtc_version
from tilelang.cuda.compile.options import compile_options
from tilelang.cuda.headers import emulator_include_dir, headers_stamp, include_dir
from tilelang.env import env
from tilelang.errors import DeviceCompileError, EnvVarError

GOOD = """
#include <tl/types.h>
extern "C" __global__ void twice(float* a) { a[threadIdx.x] *= 2.0f; }
"""
BAD = """
extern "C" __global__ void first(float* a) { a[0] = 1.0f; }
extern "C" __global__ void second(float* a) {
  a[0] = no_such_name;
}
"""
LINES = {"first": ("user.py", 3), "second": ("user.py", 7)}


def available(find):
    try:
        find()
    except DeviceCompileError:
        return False
    return True


requires_nvrtc = pytest.mark.skipif(not available(nvrtc_version), reason="needs NVRTC")
requires_nvcc = pytest.mark.skipif(not available(find_nvcc), reason="needs nvcc")


@requires_nvrtc
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a"])
def test_source_becomes_a_cubin(arch):
    binary = compile_source(GOOD, arch)
    assert binary.kind == "cubin" and binary.code.startswith(b"\x7fELF")
    assert binary.resources["twice"].registers > 0


@requires_nvrtc
def test_a_rejected_compile_names_the_users_line(tmp_path):
    with env.scope(TILELANG_TMP_DIR=tmp_path), pytest.raises(DeviceCompileError) as caught:
        compile_source(BAD, "sm_80", lines=LINES)
    error = caught.value
    assert "no_such_name" in error.message and ">    4 |   a[0] = no_such_name;" in error.message
    assert (error.span.source_name.name, int(error.span.line)) == ("user.py", 7)
    (log,) = tmp_path.glob("rejected-*.log")
    assert str(log) in error.message and BAD in log.read_text()


@requires_nvrtc
def test_an_unknown_option_is_reported():
    with pytest.raises(DeviceCompileError, match="--no-such-option"):
        compile_source(GOOD, "sm_80", ["--no-such-option"])


@requires_nvrtc
def test_flags_reach_the_compiler():
    define = compile_source("#ifndef N\n#error no N\n#endif\n" + GOOD, "sm_80", ["-D N=4"])
    assert isinstance(define, DeviceBinary)
    text = 'extern "C" __global__ void k(float* a) { a[0] = sinf(a[1]); }'
    fast = compile_source(text, "sm_80", configs={"tl.enable_fast_math": True})
    assert fast.resources["k"].stack_bytes == 0
    assert len(fast.code) < len(compile_source(text, "sm_80").code)


@requires_nvcc
def test_nvcc_makes_one_binary_for_several_architectures():
    binary = compile_source(GOOD, ["sm_80", "sm_90a"])
    assert binary.kind == "fatbin" and binary.resources["twice"].registers > 0
    with env.scope(TILELANG_CUDA_COMPILER="nvcc"):
        assert compile_source(GOOD, "sm_80").kind == "cubin"
        with pytest.raises(DeviceCompileError, match=r"nvcc rejected.*no_such_name"):
            compile_source(BAD, "sm_80", lines=LINES)


def test_an_unknown_compiler_is_refused():
    with env.scope(TILELANG_CUDA_COMPILER="clang"), pytest.raises(EnvVarError, match="clang"):
        env.cuda_compiler()


@requires_nvrtc
def test_ptx_can_be_shown():
    assert ".entry twice" in show_ptx(GOOD, "sm_80")


@requires_nvrtc
def test_machine_code_is_shown_or_says_what_is_missing():
    if find_disassembler() is None:
        with pytest.raises(DeviceCompileError, match="pip install nvidia-cuda-nvdisasm"):
            show_sass(GOOD, "sm_80")
    else:
        assert "FADD" in show_sass(GOOD, "sm_80")


@requires_nvrtc
def test_the_callbacks_compile_and_check():
    target = Target({"kind": "cuda", "arch": "sm_80"})
    code = tvm_ffi.get_global_func("tilelang_callback_cuda_compile")(GOOD, target)
    assert bytes(code).startswith(b"\x7fELF")
    tvm_ffi.get_global_func("tilelang_callback_cuda_validate")(GOOD, target)


@pytest.mark.parametrize(
    ("flag", "nvrtc", "nvcc"),
    [
        ("-maxrregcount 64", ["--maxrregcount=64"], ["--maxrregcount=64"]),
        ("--maxrregcount=64", ["--maxrregcount=64"], ["--maxrregcount=64"]),
        ("-O3", [], ["-O3"]),
        ("-Xcompiler -fPIC", [], ["-Xcompiler", "-fPIC"]),
        ("-lineinfo", ["--generate-line-info"], ["--generate-line-info"]),
        ("-Xptxas -v,-O1", ["--ptxas-options=-O1"], ["--ptxas-options=-O1"]),
        ("-I /x -DA=1", ["-I/x", "-DA=1"], ["-I/x", "-DA=1"]),
        ("-std=c++20", ["-std=c++20"], ["-std=c++20"]),
    ],
)
def test_options(flag, nvrtc, nvcc):
    plain = compile_options([], {}, host=False)
    for host, expected in ((False, nvrtc), (True, nvcc)):
        found = compile_options([flag], {}, host=host)
        assert [option for option in found if option not in plain] == expected


def test_pass_configuration_becomes_options():
    configs = {
        "tl.enable_fast_math": True,
        "tl.ptxas_register_usage_level": 7,
        "tl.device_compile_flags": ["-DX"],
    }
    options = compile_options([], configs, host=False)
    assert {"--use_fast_math", "--ptxas-options=--register-usage-level=7", "-DX"} <= set(options)


def test_resources_are_read_from_the_report():
    log = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
ptxas         .     16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 168 registers, used 2 barriers, 132 bytes smem, 16 bytes cumulative stack
"""
    assert parse_resources(log) == {"k": Resources(168, 16, 8, 4, 132, 2)}


def test_an_error_behind_a_line_directive_is_at_the_users_line():
    error = rejection("NVRTC", GOOD, 'user.py(9): error: identifier "x" is undefined', LINES)
    assert (error.span.source_name.name, int(error.span.line)) == ("user.py", 9)


@requires_nvrtc
def test_line_directives_reach_the_error(tmp_path):
    text = BAD.replace("  a[0] = no_such_name;", '#line 31 "user.py"\n  a[0] = no_such_name;')
    with env.scope(TILELANG_TMP_DIR=tmp_path), pytest.raises(DeviceCompileError) as caught:
        compile_source(text, "sm_80", lines=LINES)
    assert int(caught.value.span.line) == 31


def test_headers_are_found():
    assert (include_dir() / "tl" / "types.h").is_file()
    assert (emulator_include_dir() / "tl" / "scalar_ptx.h").is_file()
    assert len(headers_stamp()) == 16


def test_headers_can_be_replaced(tmp_path):
    (tmp_path / "tl").mkdir()
    (tmp_path / "tl" / "common.h").write_text("#pragma once\n")
    with env.scope(TL_TEMPLATE_PATH=tmp_path):
        assert include_dir() == tmp_path and headers_stamp() != ""
    assert include_dir() != tmp_path


def test_an_architecture_the_compiler_lacks_is_named_with_those_it_has():
    with pytest.raises(DeviceCompileError, match=r"does not compile for sm_99; it has .*sm_90"):
        compile_source("", "sm_99")
