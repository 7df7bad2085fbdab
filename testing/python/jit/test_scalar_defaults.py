"""A scalar parameter of a program with a default value may be left out of a call."""

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.errors import ArgumentTypeError, TraceTypeError
from tilelang.interpreter import interpret


@T.prim_func
def affine(
    A: T.Tensor((8,), "float32"),
    B: T.Tensor((8,), "float32"),
    shift: T.int32 = 3,
    factor: T.float32 = 0.5,
):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            B[i] = A[i] * factor + shift


@pytest.fixture(scope="module", params=["tvm_ffi", "cython"])
def kernel(request):
    target = "c" if request.param == "cython" else "llvm"
    return tilelang.compile(affine, out_idx=1, target=target, execution_backend=request.param)


CALLS = {
    "both left out": ((), {}, 3, 0.5),
    "one left out": ((7,), {}, 7, 0.5),
    "the first one left out": ((), {"factor": 2.0}, 3, 2.0),
    "none left out": ((1, 4.0), {}, 1, 4.0),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_default_stands_in(kernel, call):
    args, names, shift, factor = CALLS[call]
    a = torch.arange(8.0)
    assert torch.equal(kernel(a, *args, **names), a * factor + shift)


@pytest.mark.parametrize("call", ["both left out", "one left out", "none left out"])
def test_the_interpreter_knows_the_default(call):
    args, _, shift, factor = CALLS[call]
    a = torch.arange(8.0)
    assert torch.equal(interpret(affine, a, *args, out_idx=1), a * factor + shift)


def test_a_graph_takes_the_default(kernel):
    a = torch.arange(8.0)
    captured = torch.compile(lambda x: kernel(x), backend="eager", fullgraph=True)
    assert torch.equal(captured(a), a * 0.5 + 3)


def test_programs_that_differ_in_a_default_are_two_kernels():
    def make(default):
        @T.prim_func
        def add(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32"), n: T.int32 = default):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(8):
                    B[i] = A[i] + n

        return tilelang.compile(add, out_idx=1, target="llvm")

    a = torch.arange(8, dtype=torch.int32)
    one, two = make(1), make(2)
    assert torch.equal(one(a), a + 1) and torch.equal(two(a), a + 2)


def test_a_tensor_may_not_be_left_out(kernel):
    with pytest.raises(ArgumentTypeError, match="missing A"):
        kernel(shift=1)
    with pytest.raises(ArgumentTypeError, match="missing A"):
        kernel()


def test_a_default_that_is_no_number_is_refused_where_it_stands():
    with pytest.raises(TraceTypeError, match="(?s)default of parameter 'n'.*'three'"):

        @T.prim_func
        def add(A: T.Tensor((8,), "int32"), n: T.int32 = "three"):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(8):
                    A[i] = A[i] + n
