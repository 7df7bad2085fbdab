"""Outputs, pass configurations and flags that a program carries itself."""

import shutil

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.contrib.host_compiler import _installed_compiler

INT4_BYTES = torch.tensor([[0x21, 0x43], [0x65, 0x07]], dtype=torch.uint8)


def body_declared():
    @T.prim_func
    def main(A, B):
        A: T.Tensor((4, 8), T.float32)
        B: T.Tensor((4, 8), T.float32)
        C = T.empty((4, 8), T.float32)
        with T.Kernel(4, threads=32) as row:
            for j in T.Parallel(8):
                C[row, j] = A[row, j] - B[row, j]
        return C

    return main


def test_parameters_may_be_declared_in_the_body_and_outputs_returned():
    program = body_declared()
    assert list(program.attrs["tilelang_out_idx"]) == [-1] and len(program.params) == 3
    a, b = torch.randn(4, 8), torch.randn(4, 8)
    assert torch.equal(tilelang.compile(program)(a, b), a - b)


def test_outputs_may_have_sizes_computed_from_symbols():
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m,), T.int32)):
        B = T.empty((2 * m + 1,), T.int32)
        C = T.empty((m, 3), T.int32)
        with T.Kernel(T.ceildiv(2 * m + 1, 16), threads=32) as bx:
            for i in T.Parallel(16):
                B[bx * 16 + i] = bx * 16 + i
            for i, j in T.Parallel(16, 3):
                C[bx * 16 + i, j] = A[bx * 16 + i] + j
        return B, C

    kernel = tilelang.compile(main)
    for n in (1, 7, 40):
        a = torch.arange(n, dtype=torch.int32)
        b, c = kernel(a)
        assert torch.equal(b, torch.arange(2 * n + 1, dtype=torch.int32))
        assert torch.equal(c, a[:, None] + torch.arange(3, dtype=torch.int32))


def test_an_output_may_take_its_size_from_a_scalar_argument():
    n = T.dynamic("n")

    @T.prim_func
    def main(n: n):
        B = T.empty((n + 1,), T.int32)
        with T.Kernel(T.ceildiv(n + 1, 16), threads=32) as bx:
            for i in T.Parallel(16):
                B[bx * 16 + i] = 7
        return B

    kernel = tilelang.compile(main)
    for size in (0, 1, 20):
        assert torch.equal(kernel(size), torch.full((size + 1,), 7, dtype=torch.int32))


def test_several_outputs_by_index_may_have_symbolic_sizes():
    m = T.dynamic("m")

    @T.prim_func
    def main(
        A: T.Tensor((m,), T.float32), B: T.Tensor((m,), T.float32), C: T.Tensor((m * 2,), T.float32)
    ):
        with T.Kernel(T.ceildiv(m, 16), threads=32) as bx:
            for i in T.Parallel(16):
                B[bx * 16 + i] = A[bx * 16 + i] + 1.0
                if bx * 16 + i < m:
                    C[bx * 16 + i] = A[bx * 16 + i]
                    C[m + bx * 16 + i] = A[bx * 16 + i]

    kernel = tilelang.compile(main, out_idx=[1, 2])
    a = torch.randn(21)
    b, c = kernel(a)
    assert torch.equal(b, a + 1) and torch.equal(c, torch.cat([a, a]))
    assert "tilelang_out_idx" not in main.attrs


def unpacked(bytes_):
    pairs = torch.stack([bytes_ & 15, bytes_ >> 4], -1)
    return pairs.reshape(bytes_.shape[0], -1).to(torch.int8)


def test_outputs_narrower_than_a_byte_are_packed():
    @T.prim_func
    def main(A: T.Tensor((2, 4), T.int8)):
        B = T.empty((2, 4), T.int4)
        with T.Kernel(2, threads=32) as row:
            for j in T.Parallel(4):
                B[row, j] = T.cast(A[row, j], T.int4)
        return B

    found = tilelang.compile(main)(unpacked(INT4_BYTES))
    assert found.dtype == torch.int8 and found.shape == (2, 2)
    assert torch.equal(found.view(torch.uint8), INT4_BYTES)


@pytest.mark.parametrize("first", [True, False])
def test_annotations_may_stand_before_or_after_the_declarations(first):
    @T.prim_func
    def main(A):
        if first:
            T.annotate_pass_configs({"tl.disable_safe_memory_legalize": False})
            T.annotate_compile_flags("-O2 -flag")
        A: T.Tensor((8,), T.float32)
        if not first:
            T.annotate_pass_configs({"tl.disable_safe_memory_legalize": False})
            T.annotate_compile_flags(["-O2", "-flag"])
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                A[i] = 1.0

    kernel = tilelang.compile(main)
    assert kernel.pass_configs["tl.disable_safe_memory_legalize"] is False
    assert kernel.compile_flags == ("-O2", "-flag")


def test_eager_kernels_carry_annotations_too():
    @tilelang.jit(pass_configs={"tl.enable_fast_math": False}, compile_flags=["-given"])
    def kernel(A):
        T.annotate_pass_configs({"tl.enable_fast_math": True})
        T.annotate_compile_flags(["-own"])
        A: T.Tensor((8,), T.float32)
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                A[i] = 1.0

    compiled = kernel.compile(torch.empty(8))
    assert compiled.pass_configs["tl.enable_fast_math"] is False
    assert compiled.compile_flags == ("-own", "-given")


def test_flags_reach_the_c_compiler(add_factory):
    kernel = tilelang.compile(add_factory(), target="c", compile_flags="-DUNUSED=1")
    assert kernel.compile_flags == ("-DUNUSED=1",)
    with pytest.raises(tilelang.errors.DeviceCompileError, match="no-such-option"):
        tilelang.compile(add_factory(), target="c", compile_flags="--no-such-option")


def test_a_missing_c_compiler_is_named(add_factory, monkeypatch):
    with (
        tilelang.env.scope(CC="/nowhere/cc"),
        pytest.raises(tilelang.errors.DeviceCompileError, match="cannot be run"),
    ):
        tilelang.compile(add_factory(scale=61.0), target="c")
    monkeypatch.setenv("PATH", "")
    _installed_compiler.cache_clear()
    with pytest.raises(tilelang.errors.DeviceCompileError, match="no C compiler found"):
        tilelang.compile(add_factory(scale=62.0), target="c")
    _installed_compiler.cache_clear()


def test_a_c_compiler_that_hangs_is_stopped(add_factory, tmp_path):
    slow = tmp_path / "cc"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    with (
        tilelang.env.scope(CC=str(slow), TILELANG_COMPILE_TIMEOUT_SECONDS="0.2"),
        pytest.raises(tilelang.errors.DeviceCompileError, match=r"TIMEOUT_SECONDS=0\.2"),
    ):
        tilelang.compile(add_factory(scale=63.0), target="c")


def test_another_c_compiler_is_another_kernel(add_factory, tmp_path):
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("needs gcc to stand in for another compiler")
    other = tmp_path / "cc"
    other.write_text(f'#!/bin/sh\nexec {gcc} "$@"\n')
    other.chmod(0o755)
    kernel = tilelang.compile(add_factory(scale=64.0), target="c")
    with tilelang.env.scope(CC=str(other)):
        assert tilelang.compile(add_factory(scale=64.0), target="c") is not kernel
