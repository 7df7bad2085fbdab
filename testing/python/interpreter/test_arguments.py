"""Binding of arguments: sizes, strides, scalars, outputs, and bad input."""

import numpy as np
import pytest
import torch

import tilelang.language as T
from tilelang.errors import ArgumentTypeError, ArgumentValueError
from tilelang.interpreter import interpret


@T.prim_func
def scale(A: T.Tensor((4, 8), "float32"), x: T.float32, B: T.Tensor((4, 8), "float32")):
    with T.Kernel(1):
        for i, j in T.Parallel(4, 8):
            B[i, j] = A[i, j] * x


def test_outputs_are_allocated_and_returned():
    a = torch.randn(4, 8)
    assert torch.equal(interpret(scale, a, 2.0, out_idx=-1), a * 2)


def test_all_tensors_may_be_given():
    a, b = torch.randn(4, 8), torch.zeros(4, 8)
    assert interpret(scale, a, 2.0, b) is None
    assert torch.equal(b, a * 2)
    interpret(scale, a, 3.0, b, out_idx=-1)
    assert torch.equal(b, a * 3)


def test_several_outputs_come_as_a_list():
    @T.prim_func
    def program(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32"), C: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                B[i] = A[i] + 1
                C[i] = A[i] + 2

    b, c = interpret(program, torch.zeros(4, dtype=torch.int32), out_idx=[1, 2])
    assert b.tolist() == [1] * 4 and c.tolist() == [2] * 4


@pytest.mark.parametrize(
    "form, extent, wrong",
    [
        (lambda n: n * 4, 16, 17),
        (lambda n: n + 1, 5, 0),
        (lambda n: n * 3 + 1, 13, 12),
    ],
)
def test_a_size_is_solved_from_an_expression(form, extent, wrong):
    n = T.dynamic("n")
    shape = form(n)

    @T.prim_func
    def program(A: T.Tensor((shape,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(n):
                B[i] = A[i]

    a = torch.arange(extent, dtype=torch.int32)
    assert interpret(program, a, out_idx=-1).tolist() == [0, 1, 2, 3]
    with pytest.raises(ArgumentValueError, match="'A': no value of n gives the sizes"):
        interpret(program, torch.zeros(wrong, dtype=torch.int32), out_idx=-1)


def test_sizes_must_agree():
    n = T.dynamic("n")

    @T.prim_func
    def program(A: T.Tensor((n,), "int32"), B: T.Tensor((n, 2), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(n):
                B[i, 0] = A[i]

    a, b = torch.zeros(4, dtype=torch.int32), torch.zeros(5, 2, dtype=torch.int32)
    with pytest.raises(ArgumentValueError, match=r"argument 'B': expected shape \(n = 4, 2\)"):
        interpret(program, a, b)


def test_a_size_may_be_a_scalar_argument():
    n = T.dynamic("n")

    @T.prim_func
    def program(n: n, B: T.Tensor((2 * n + 1,), "int32")):
        with T.Kernel(1):
            for i in T.serial(2 * n + 1):
                B[i] = i

    assert interpret(program, 3, out_idx=-1).tolist() == list(range(7))


def strided(dtype="float32"):
    m, n, s, t = T.dynamic("m, n, s, t")

    @T.prim_func
    def program(A: T.StridedTensor((m, n), (s, t), dtype), B: T.Tensor((m, n), dtype)):
        with T.Kernel(1):
            for i, j in T.Parallel(m, n):
                B[i, j] = A[i, j]

    return program


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.T,
        lambda t: t[1:5, 2:7],
        lambda t: t[::2, ::3],
        lambda t: t[:1].expand(4, -1),
        lambda t: t[0:0],
    ],
)
def test_strided_tensors_are_read_in_place(view):
    a = view(torch.randn(6, 9))
    assert torch.equal(interpret(strided(), a, out_idx=-1), a)


def test_strided_tensors_are_written_in_place():
    m, s = T.dynamic("m, s")

    @T.prim_func
    def program(A: T.StridedTensor((m,), (s,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(m):
                A[i] = 1.0

    a = torch.zeros(4, 6)
    interpret(program, a[:, 2])
    assert a[:, 2].tolist() == [1] * 4 and a.sum() == 4


def test_negative_strides():
    a = np.arange(12, dtype=np.float32).reshape(3, 4)[::-1, ::-2]
    assert np.array_equal(interpret(strided(), a, out_idx=-1).numpy(), a)


def test_none_stands_for_a_tensor_that_is_not_touched():
    @T.prim_func
    def program(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            T.fill(B, 1)

    b = torch.zeros(4, dtype=torch.int32)
    interpret(program, None, b)
    assert b.tolist() == [1] * 4
    with pytest.raises(ArgumentTypeError, match="argument 'B': expected a tensor, got None"):
        interpret(program, None, None)


def test_zero_length_tensors():
    n = T.dynamic("n")

    @T.prim_func
    def program(A: T.Tensor((n, 4), "float32"), B: T.Tensor((n, 4), "float32")):
        with T.Kernel(T.ceildiv(n, 2)) as bx:
            T.copy(A[bx * 2 : bx * 2 + 2, :], B[bx * 2 : bx * 2 + 2, :])

    assert interpret(program, torch.zeros(0, 4), out_idx=-1).shape == (0, 4)


@pytest.mark.parametrize(
    "dtype, value", [("int8", -7), ("uint64", 2**63), ("bool", True), ("float16", 1.5)]
)
def test_scalars_of_every_kind(dtype, value):
    @T.prim_func
    def program(x: T.dtype(dtype), B: T.Tensor((1,), dtype)):
        with T.Kernel(1):
            B[0] = x

    assert interpret(program, value, out_idx=-1).tolist() == [value]


def test_a_scalar_argument_is_data():
    @T.prim_func
    def program(x: T.int32, B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            B[0] = (x * 2) // 2

    assert interpret(program, 2**30, out_idx=-1).tolist() == [-(2**30)]


A = torch.zeros(4, 8)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((A,), r"expected 2 arguments \(A, x\), got 1"),
        ((A, 1.0, A, A), r"got 4"),
        ((A.double(), 1.0), "argument 'A': expected dtype float32, got float64"),
        ((A.numpy().astype(np.int32), 1.0), "argument 'A': expected dtype float32, got int32"),
        (([1.0], 1.0), "argument 'A': expected a tensor, got list"),
        ((A, "two"), "argument 'x': expected a number for float32, got 'two'"),
        ((A, torch.zeros(2)), "argument 'x': expected a number for float32, got Tensor"),
        ((A.to("meta"), 1.0), "argument 'A': expected a dense tensor with memory, got a meta"),
        ((A.to_sparse(), 1.0), "argument 'A': .*got a sparse_coo tensor"),
    ],
)
def test_wrong_types(arguments, message):
    with pytest.raises(ArgumentTypeError, match=message):
        interpret(scale, *arguments, out_idx=-1)


@pytest.mark.parametrize(
    "tensor, message",
    [
        (torch.zeros(4), r"argument 'A': expected 2 dimensions, got shape \(4,\)"),
        (torch.zeros(4, 9), r"argument 'A': expected shape \(4, 8\), got \(4, 9\)"),
        (torch.zeros(8, 4).T, r"argument 'A': expected strides \(8, 1\), got \(1, 4\)"),
    ],
)
def test_wrong_shapes(tensor, message):
    with pytest.raises(ArgumentValueError, match=message):
        interpret(scale, tensor, 1.0, out_idx=-1)


@pytest.mark.parametrize("value", [128, -129])
def test_a_scalar_must_fit(value):
    @T.prim_func
    def program(x: T.int8, B: T.Tensor((1,), "int8")):
        with T.Kernel(1):
            B[0] = x

    with pytest.raises(ArgumentValueError, match=f"argument 'x': {value} does not fit int8"):
        interpret(program, value, out_idx=-1)


def test_bad_arguments_leave_outputs_alone():
    b = torch.full((4, 8), 5.0)
    with pytest.raises(ArgumentValueError):
        interpret(scale, torch.zeros(4, 9), 1.0, b)
    assert (b == 5).all()


@pytest.mark.parametrize("out_idx", [3, -4])
def test_output_positions_must_exist(out_idx):
    with pytest.raises(ArgumentTypeError, match="out of range"):
        interpret(scale, A, 1.0, out_idx=out_idx)
