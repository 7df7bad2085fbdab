"""From CUDA source to a library: what is rewritten, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import run

from tilelang.cuda.emulator import EmulatedLibrary
from tilelang.cuda.emulator.source import prepare_source
from tilelang.errors import DeviceCompileError, LaunchError

EMPTY = 'extern "C" __global__ void kernel() {}'


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void f(int n) {}",
        "__global__ static void __launch_bounds__(128) f() {}",
        "__global__ void __launch_bounds__(64, 2)\nf(const float* a) {}",
        "__global__ __launch_bounds__(32) void f() {}",
        "// __global__ void g() {}\n__global__ void f() {} /* __global__ void h() */",
        "__global__ void f(); __global__ void f() {}",
    ],
)
def test_kernels_are_found(text):
    assert prepare_source(text).kernels == ("f",)


def test_dynamic_shared_memory_is_found_and_lines_stay():
    text = (
        "extern __shared__ __align__(1024) unsigned char arena[];\n"
        "__global__ void f() {\n"
        "  extern __shared__ alignas(16) float more[];\n"
        "  __shared__ alignas(16) float fixed[4];\n"
        "}\n"
    )
    prepared = prepare_source(text)
    assert prepared.shared_names == ("arena", "more")
    lines = prepared.text.splitlines()
    assert lines[0] == "extern __dynamic_shared__ __align__(1024) unsigned char arena[];"
    assert lines[2] == "  alignas(16) extern __dynamic_shared__ float more[];"
    assert lines[3] == "  alignas(16) __shared__ float fixed[4];"


def test_source_without_a_kernel_is_refused():
    with pytest.raises(DeviceCompileError, match="no __global__ function"):
        prepare_source("int f();")


def test_what_the_compiler_rejects_is_shown():
    with pytest.raises(DeviceCompileError, match=r"kernel\.cu:2:.*nonsense"):
        EmulatedLibrary.compile('extern "C" __global__ void kernel() {\n  nonsense();\n}')


def test_missing_functions_are_found_when_linking():
    source = 'extern "C" int elsewhere(); extern "C" __global__ void kernel() { elsewhere(); }'
    with pytest.raises(DeviceCompileError, match="elsewhere"):
        EmulatedLibrary.compile(source)


def test_arguments_of_all_widths_arrive():
    source = """
    extern "C" __global__ void kernel(double* out, bool a, signed char b, short c, int d,
                                      long long e, float f, unsigned char g) {
      out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; out[5] = f; out[6] = g;
    }
    """
    out = np.zeros(7)
    run(source, out, 1, -5, -300, -70000, -(2**40), 0.5, 200, block=1)
    assert out.tolist() == [1, -5, -300, -70000, -(2**40), 0.5, 200]


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        ({"block": 1025}, r"\(1025, 1, 1\) has 1025 threads, allowed are 1 to 1024"),
        ({"block": 0}, "has 0 threads"),
        ({"dyn_smem": 300000}, "300000 bytes of shared memory are needed.*at most 232448"),
        ({"grid": -1}, "negative extent"),
    ],
)
def test_launches_that_no_device_takes(launch, message):
    with pytest.raises(LaunchError, match=message):
        run(EMPTY, **launch)


def test_an_empty_grid_runs_nothing():
    run('extern "C" __global__ void kernel() { __trap(); }', grid=0)
