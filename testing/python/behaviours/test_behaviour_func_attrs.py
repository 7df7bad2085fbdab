"""Outputs a program declares itself, packed outputs, attributes, conflicts."""

import pytest
import torch

import tilelang
import tilelang.language as T

CONFIGS = {tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True}


@T.prim_func
def add_one(A):
    m = T.dynamic("m")
    A: T.Tensor((m,), "float32")
    B = T.empty((m,), "float32")
    with T.Kernel(T.ceildiv(m, 32), threads=32) as bx:
        for i in T.Parallel(32):
            B[bx * 32 + i] = A[bx * 32 + i] + 1.0
    return B


def test_bare_parameters_and_returned_outputs_become_an_attribute():
    assert list(add_one.attrs["tilelang_out_idx"]) == [-1]
    assert len(add_one.params) == 2


@pytest.mark.devices
def test_a_compiled_function_returns_its_new_tensor():
    kernel = tilelang.compile(add_one)
    a = torch.randn(45)
    assert torch.equal(kernel(a), a + 1)
    names = [gv.name_hint for gv in tilelang.lower(add_one).device_mod.functions]
    assert names and all("add_one_kernel" in name for name in names)


def grow(scalar):
    if scalar:

        @T.prim_func
        def main(n: T.int32):
            C = T.empty((2 * n + 1,), "int32")
            with T.Kernel(1, threads=1):
                for i in T.serial(2 * n + 1):
                    C[i] = i * 3
            return C

        return main

    @T.prim_func
    def main(A):
        m = T.dynamic("m")
        A: T.Tensor((m,), "int32")
        C = T.empty((2 * m + 1,), "int32")
        with T.Kernel(1, threads=1):
            for i in T.serial(2 * m + 1):
                C[i] = i * 3
        return C

    return main


@pytest.mark.devices
@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("size", [0, 1, 7])
def test_an_output_may_have_an_expression_as_its_size(scalar, size):
    kernel = tilelang.compile(grow(scalar))
    argument = size if scalar else torch.zeros(size, dtype=torch.int32)
    assert kernel(argument).tolist() == [3 * i for i in range(2 * size + 1)]


@pytest.mark.devices
def test_several_outputs_are_a_list():
    @T.prim_func
    def main(A):
        m = T.dynamic("m")
        A: T.Tensor((m, 4), "float32")
        B = T.empty((m,), "float32")
        C = T.empty((4, m), "float32")
        with T.Kernel(1, threads=32):
            for i in T.serial(m):
                B[i] = A[i, 0]
                for j in T.serial(4):
                    C[j, i] = A[i, j]
        return B, C

    assert list(main.attrs["tilelang_out_idx"]) == [-2, -1]
    a = torch.randn(5, 4)
    found = tilelang.compile(main)(a)
    assert isinstance(found, list)
    assert torch.equal(found[0], a[:, 0]) and torch.equal(found[1], a.T)


def packed_copy(dtype, extent):
    @T.prim_func
    def main(A):
        A: T.Tensor((4, extent), dtype)
        B = T.empty((4, extent), dtype)
        with T.Kernel(1, threads=32):
            T.copy(A, B)
        return B

    return main


@pytest.mark.devices
def test_int4_outputs_are_int8_of_half_the_extent():
    a = torch.randint(-128, 128, (4, 8), dtype=torch.int8)
    b = tilelang.compile(packed_copy("int4", 16))(a)
    assert b.dtype == torch.int8 and b.shape == (4, 8) and torch.equal(a, b)


def fp4(*shape):
    storage = T.dtype("float4_e2m1fn").as_torch()
    return torch.randint(-128, 128, shape, dtype=torch.int8).view(storage)


@pytest.mark.devices
def test_fp4_outputs_are_pairs_of_half_the_extent():
    a = fp4(4, 8)
    b = tilelang.compile(packed_copy("float4_e2m1fn", 16))(a)
    assert b.dtype == getattr(torch, "float4_e2m1fn_x2", torch.int8) and b.shape == (4, 8)
    assert torch.equal(a.view(torch.int8), b.view(torch.int8))


@pytest.mark.devices
def test_the_pair_dtype_keeps_its_extent():
    a = fp4(4, 8)
    b = tilelang.compile(packed_copy("float4_e2m1fnx2", 8))(a)
    assert b.shape == (4, 8) and torch.equal(a.view(torch.int8), b.view(torch.int8))


@pytest.mark.devices
@pytest.mark.parametrize("dtype", ["int4", "float4_e2m1fn"])
def test_symbolic_extents_are_packed_too(dtype):
    kernel = tilelang.compile(packed_copy(dtype, T.dynamic("n")))
    for columns in (3, 8):
        a = torch.randint(-128, 128, (4, columns), dtype=torch.int8)
        b = kernel(a.view(T.dtype(dtype).as_torch()))
        assert b.shape == (4, columns) and torch.equal(a, b.view(torch.int8))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("which", ["configs", "flags", "both"])
def test_configs_and_flags_of_a_lazy_program_are_attributes(first, which):
    @T.macro
    def annotate():
        if which != "flags":
            T.annotate_pass_configs(CONFIGS)
        if which != "configs":
            T.annotate_compile_flags("-O1")

    @T.prim_func
    def main(A):
        if first:
            annotate()
        A: T.Tensor((32,), "float32")
        if not first:
            annotate()
        B = T.empty((32,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = A[i] + 1.0
        return B

    check_attributes(main, which)
    a = torch.randn(32)
    assert torch.equal(tilelang.compile(main, target="c")(a), a + 1)


@pytest.mark.parametrize("which", ["configs", "flags", "both"])
def test_configs_and_flags_of_an_eager_kernel_are_attributes(which):
    @tilelang.jit(target="c")
    def kernel(A):
        if which != "flags":
            T.annotate_pass_configs(CONFIGS)
        A: T.Tensor((32,), "float32")
        if which != "configs":
            T.annotate_compile_flags(["-O1"])
        B = T.empty((32,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = A[i] + 1.0
        return B

    check_attributes(kernel.get_tir(), which)
    a = torch.randn(32)
    assert torch.equal(kernel(a), a + 1)


def check_attributes(program, which):
    assert ("tilelang_pass_configs" in program.attrs) == (which != "flags")
    assert ("tilelang_compile_flags" in program.attrs) == (which != "configs")
    if which != "flags":
        assert bool(program.attrs["tilelang_pass_configs"]["tl.enable_fast_math"])
    if which != "configs":
        assert list(program.attrs["tilelang_compile_flags"]) == ["-O1"]


def test_flags_and_configs_reach_the_kernel():
    @T.prim_func
    def main(A: T.Tensor((32,), "float32")):
        T.annotate_pass_configs(CONFIGS)
        T.annotate_compile_flags("-O1")
        with T.Kernel(1, threads=32):
            T.clear(A)

    kernel = tilelang.compile(main, target="c")
    assert kernel.pass_configs["tl.enable_fast_math"] is True
    assert list(kernel.compile_flags) == ["-O1"]


def test_outputs_cannot_be_named_twice():
    with pytest.raises(ValueError, match="Out index conflict"):
        tilelang.compile(add_one, out_idx=[-1])


@pytest.mark.devices
def test_out_idx_of_dynamic_outputs_marks_the_compiled_function_only():
    m = T.dynamic("m")

    @T.prim_func
    def split(
        A: T.Tensor((m, 4), "float32"), B: T.Tensor((m,), "float32"), C: T.Tensor((m, 3), "float32")
    ):
        with T.Kernel(1, threads=32):
            for i in T.serial(m):
                B[i] = A[i, 0]
                for j in T.serial(3):
                    C[i, j] = A[i, j + 1]

    kernel = tilelang.compile(split, out_idx=[1, 2])
    a = torch.randn(6, 4)
    found = kernel(a)
    assert isinstance(found, list)
    assert torch.equal(found[0], a[:, 0]) and torch.equal(found[1], a[:, 1:])
    assert list(kernel.prim_func.attrs["tilelang_out_idx"]) == [-2, -1]
    assert "tilelang_out_idx" not in split.attrs


@pytest.mark.devices
def test_a_serial_loop_over_a_symbolic_extent_in_one_thread():
    n = T.dynamic("n")

    @T.prim_func
    def total(A: T.Tensor((n,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=1):
            B[0] = 0
            for i in T.serial(n):
                B[0] += A[i]

    kernel = tilelang.compile(total, out_idx=-1)
    for size in (0, 1, 33):
        a = torch.randint(-9, 9, (size,), dtype=torch.int32)
        assert kernel(a).item() == a.sum().item()


def test_an_output_that_is_not_returned():
    with pytest.raises(ValueError, match="return"):

        @T.prim_func
        def main(A):
            A: T.Tensor((8,), "float32")
            B = T.empty((8,), "float32")
            with T.Kernel(1, threads=32):
                T.copy(A, B)
