"""Eager mode: a call compiles on first use and runs."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import tvm

import tilelang
import tilelang.language as T
from tilelang.errors import ArgumentTypeError, ArgumentValueError, TraceError
from tilelang.jit import JITKernel


@tilelang.jit
def scale(A, factor: T.float32, block: int = 16):
    N = T.const("N")
    A: T.Tensor((N,), T.float32)
    B = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] * factor
    return B


def fresh(kernel, **changes):
    return kernel.with_options(**changes)


def test_a_call_returns_the_output():
    a = torch.randn(50)
    assert torch.equal(scale(a, 2.0), a * 2)
    assert torch.equal(scale(factor=3.0, A=a, block=32), a * 3)
    assert scale.mode == "eager" and not scale.is_lazy_mode()


def test_there_is_one_kernel_for_each_size_and_compile_time_value():
    kernel = fresh(scale)
    for n, block in ((8, 16), (9, 16), (8, 32), (8, 16)):
        kernel(torch.randn(n), 1.5, block)
    assert len(kernel._kernels) == 3


def test_run_time_scalars_share_a_kernel():
    kernel = fresh(scale)
    a = torch.randn(8)
    for factor in (1, 2.5, -3.0):
        assert torch.equal(kernel(a, factor), a * factor)
    assert len(kernel._kernels) == 1


def test_a_repeated_call_takes_the_fast_way(monkeypatch):
    kernel = fresh(scale)
    a = torch.randn(8)
    kernel(a, 2.0)
    monkeypatch.setattr(kernel, "_binder", None)
    assert torch.equal(kernel(a, 4.0), a * 4)
    assert torch.equal(kernel(A=a, factor=5.0), a * 5)


def test_compile_returns_the_kernel_for_tensors_or_sizes():
    kernel = fresh(scale)
    a = torch.randn(24)
    by_size = kernel.compile(N=24)
    assert isinstance(by_size, JITKernel) and kernel.compile(a, 1.0) is by_size
    assert kernel.compile(torch.empty(24)) is by_size
    assert torch.equal(by_size(a, 2.0), a * 2)


def test_get_tir_and_source_need_no_tensors():
    program = scale.get_tir(N=40)
    assert program.params[0].shape[0] == 40
    assert list(program.attrs["tilelang_out_idx"]) == [-1]
    assert "scale" in scale.get_kernel_source(N=40)


def test_par_compile_takes_sizes():
    kernel = fresh(scale)
    small, large = kernel.par_compile([{"N": 8}, {"N": 16, "block": 8}], num_workers=2)
    a = torch.randn(16)
    assert torch.equal(large(a, 2.0), a * 2) and torch.equal(small(a[:8], 2.0), a[:8] * 2)
    assert kernel.compile(N=8) is small


@tilelang.jit
def sums(A: T.Tensor((4, 8), T.int32), B):
    B: T.Tensor((4, 8), T.int32)
    C = T.empty((4, 8), T.int32)
    D = T.empty((4, 8), T.int32)
    with T.Kernel(1, threads=32):
        for i, j in T.Parallel(4, 8):
            C[i, j] = A[i, j] + B[i, j]
            D[i, j] = A[i, j] - B[i, j]
    return C, D


def test_several_outputs_are_a_list():
    a, b = (torch.randint(-9, 9, (4, 8), dtype=torch.int32) for _ in range(2))
    found = sums(a, b)
    assert isinstance(found, list)
    assert torch.equal(found[0], a + b) and torch.equal(found[1], a - b)


@tilelang.jit
def fill(A, value: T.int32):
    M, N = T.const("M, N")
    A: T.StridedTensor((M, N), (N * 2, 2), T.int32)
    with T.Kernel(M, threads=32) as bx:
        for j in T.Parallel(N):
            A[bx, j] = value


def test_without_outputs_arguments_are_written():
    base = torch.zeros(3, 8, dtype=torch.int32)
    assert fill(base[:, ::2], 7) is None
    assert torch.equal(base[:, ::2], torch.full((3, 4), 7, dtype=torch.int32))
    assert torch.equal(base[:, 1::2], torch.zeros(3, 4, dtype=torch.int32))


@tilelang.jit
def gather_rows(A, row_stride_only: bool = False):
    M, N, S = T.const("M, N, S")
    A: T.StridedTensor((M, N), (S, 1), T.float32)
    B = T.empty((M, N), T.float32)
    with T.Kernel(M, threads=32) as bx:
        for j in T.Parallel(N):
            B[bx, j] = A[bx, j]
    return B


def test_sizes_are_read_from_strides():
    for pitch in (8, 12):
        a = torch.randn(3, pitch)[:, :5]
        assert torch.equal(gather_rows(a), a)
    assert len(gather_rows._kernels) == 2


@tilelang.jit
def half_rows(A, rows: int = 2):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), T.float32)
    B = T.empty((M // rows, N), T.float32)
    with T.Kernel(M // rows, threads=32) as bx:
        for j in T.Parallel(N):
            B[bx, j] = A[bx, j]
    return B


def test_compile_time_values_of_equal_value_and_other_type_are_told_apart():
    kernel = fresh(half_rows)
    a = torch.randn(4, 8)
    kernel(a, 1)
    kernel(a, True)
    kernel(a, 1)
    assert len(kernel._kernels) == 2


@tilelang.jit
def add_constant(A: T.Tensor((8,), T.float32), values=(1.0,), sign=1.0, **extra):
    B = T.empty((8,), T.float32)
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            B[i] = (A[i] + values[0]) * T.float32(sign) + T.float32(sum(extra.get("more", [])))
    return B


@pytest.mark.parametrize(
    "kwargs", [{}, {"values": [2.0]}, {"values": (2,)}, {"sign": -1.0}, {"more": [1, 2]}]
)
def test_any_value_can_be_a_compile_time_argument(kwargs):
    a = torch.randint(-9, 9, (8,)).float()
    expected = (a + kwargs.get("values", (1.0,))[0]) * kwargs.get("sign", 1.0)
    for _ in range(2):
        assert torch.equal(add_constant(a, **kwargs), expected + sum(kwargs.get("more", [])))


@tilelang.jit
def times(A: T.Tensor((8,), T.float32), sign: float = 1.0):
    B = T.empty((8,), T.float32)
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            B[i] = A[i] * T.float32(sign)
    return B


def test_signed_zeros_are_told_apart():
    for sign in (0.0, -0.0, 0.0, -0.0):
        found = times(torch.ones(8), sign=sign)
        assert torch.equal(torch.signbit(found), torch.signbit(torch.ones(8) * sign))
    assert len(times._kernels) == 2


def test_the_enclosing_target_counts_also_after_fast_calls():
    kernel = fresh(scale)
    a = torch.randn(8)
    kernel(a, 2.0), kernel(a, 2.0)
    with tvm.target.Target("c"):
        assert torch.equal(kernel(a, 2.0), a * 2)
    kinds = {found.target.kind.name for found in kernel._kernels.values()}
    assert kinds == {"llvm", "c"}


def test_the_target_of_the_decorator_wins():
    kernel = fresh(scale, target="c")
    with tvm.target.Target("llvm"):
        kernel(torch.randn(8), 2.0)
    assert {found.target.kind.name for found in kernel._kernels.values()} == {"c"}


def test_numpy_arrays_are_accepted():
    a = np.arange(12, dtype=np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(scale(a, 2.0), a * 2)


@tilelang.jit
def unpack(A):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), T.int4)
    B = T.empty((M, N), T.int8)
    with T.Kernel(M, threads=32) as bx:
        for j in T.Parallel(N):
            B[bx, j] = T.cast(A[bx, j], T.int8)
    return B


def test_sizes_of_packed_dtypes_count_elements():
    packed = torch.tensor([[0x21, 0x43, -0x10 & 0xFF], [0x78, 0x0F, 0x10]]).to(torch.uint8)
    low, high = (packed & 15).to(torch.int8), (packed >> 4).to(torch.int8)
    expected = torch.stack([low, high], -1).reshape(2, 6)
    expected = torch.where(expected > 7, expected - 16, expected)
    assert torch.equal(unpack(packed.view(torch.int8)), expected)
    assert unpack.compile(M=2, N=6) in unpack._kernels.values()


@tilelang.jit
def symbolic(A, B):
    n = T.dynamic("n")
    A: T.Tensor((n,), T.float32)
    B: T.Tensor((n,), T.float32)
    with T.Kernel(T.ceildiv(n, 16), threads=32) as bx:
        for i in T.Parallel(16):
            B[bx * 16 + i] = A[bx * 16 + i] + 1.0


def test_symbolic_sizes_share_one_kernel_and_one_fast_call():
    for n in (1, 16, 33, 100):
        a, b = torch.randn(n), torch.empty(n)
        symbolic(a, b)
        assert torch.equal(b, a + 1)
    assert len(symbolic._kernels) == 1 and len(symbolic._fast_calls) == 1


def test_the_table_of_fast_calls_is_bounded(monkeypatch):
    monkeypatch.setattr(sys.modules["tilelang.jit.eager"], "_MAX_FAST_CALLS", 2)
    kernel = fresh(scale)
    for n in (4, 5, 6, 4):
        a = torch.randn(n)
        assert torch.equal(kernel(a, 2.0), a * 2)
    assert len(kernel._fast_calls) <= 2


def test_kernels_may_name_parameters_like_anything():
    @tilelang.jit
    def odd(self, cls: int = 1, key: int = 2, *, run: int = 3):
        N = T.const("N")
        self: T.Tensor((N,), T.float32)
        out = T.empty((N,), T.float32)
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                out[i] = self[i] + T.float32(cls + key + run)
        return out

    a = torch.zeros(4)
    for _ in range(2):
        assert torch.equal(odd(a, run=4), a + 7)


def test_a_kernel_may_take_no_arguments_at_all():
    @tilelang.jit
    def counting(n: int = 8):
        out = T.empty((n,), T.int32)
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                out[i] = i
        return out

    for n in (8, 5, 8):
        assert torch.equal(counting(n), torch.arange(n, dtype=torch.int32))
    assert torch.equal(counting(), torch.arange(8, dtype=torch.int32))


def test_threads_may_call_a_kernel_for_the_first_time_together():
    kernel = fresh(scale)
    a = torch.randn(200)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: kernel(a[: 100 + n % 3], 2.0), range(12)))
    for n, tensor in enumerate(found):
        assert torch.equal(tensor, a[: 100 + n % 3] * 2)
    assert len(kernel._kernels) == 3


def test_the_interpreter_can_run_a_kernel_that_was_compiled_before():
    kernel = fresh(scale)
    a = torch.randn(8)
    kernel(a, 2.0)
    with tilelang.env.scope(TILELANG_INTERPRET="1"):
        interpreted = kernel.compile(a, 2.0)
    assert interpreted.adapter.name == "interpreter"
    assert torch.equal(interpreted(a, 3.0), kernel(a, 3.0))


def test_out_idx_is_refused():
    with pytest.raises(TraceError, match="eager kernel"):
        tilelang.jit(scale.func, out_idx=-1)


def call_forms():
    a = torch.randn(8)
    return [
        (lambda: scale(), TypeError, "scale.. missing 2 required positional arguments"),
        (lambda: scale(a), TypeError, "missing 1 required positional argument: 'factor'"),
        (lambda: scale(a, 2.0, 16, 5), TypeError, "positional arguments but"),
        (lambda: scale(a, 2.0, A=a), TypeError, "multiple values for argument 'A'"),
        (lambda: scale(a, 2.0, blok=3), TypeError, "unexpected keyword argument 'blok'"),
        (lambda: scale(a, 2.0, blok="x"), ArgumentTypeError, "'blok'"),
        (lambda: scale(a, 2.0, bytearray(b"x")), TypeError, "unhashable"),
        (lambda: scale(None, 2.0), ArgumentTypeError, "'A' is None, but it gives size 'N'"),
        (lambda: scale(3, 2.0), ArgumentTypeError, "'A' must be a tensor, found int"),
        (lambda: scale(a.view(2, 4), 2.0), ArgumentValueError, "'A' has rank 2"),
        (lambda: scale(a, 2.0, N=5), ArgumentValueError, "size 'N' is 8"),
        (lambda: scale(a.double(), 2.0), ArgumentTypeError, "'A'.*float32.*float64"),
        (lambda: scale(a, "2.0"), ArgumentTypeError, "'factor'"),
        (lambda: scale(a.to_sparse(), 2.0), ArgumentTypeError, "'A'.*dense tensor"),
        (lambda: scale(a.to("meta"), 2.0), (TypeError, ValueError), "meta"),
        (lambda: scale.compile(), TraceError, "'N'"),
    ]


@pytest.mark.parametrize("number", range(len(call_forms())))
def test_wrong_calls_raise_one_short_error(number):
    call, error, message = call_forms()[number]
    with pytest.raises(error, match=message):
        call()
    assert torch.equal(scale(torch.ones(8), 2.0), torch.ones(8) * 2)
