"""Wrong arguments of a call: one short error that names the argument, and nothing written."""

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.errors import ArgumentTypeError, ArgumentValueError

MARK = 123.0


@tilelang.jit
def update(n, target, execution_backend):
    @T.prim_func
    def main(A: T.Tensor((n, 4), "float32"), B: T.Tensor((n, 4), "float32"), shift: T.int32):
        with T.Kernel(n, threads=32) as bx:
            for j in T.Parallel(4):
                B[bx, j] = A[bx, j] + T.cast(shift, "float32")

    return main


@pytest.fixture(scope="module", params=[("llvm", "tvm_ffi"), ("c", "tvm_ffi"), ("c", "cython")])
def kernel(request):
    target, backend = request.param
    options = {"target": target, "execution_backend": backend}
    return update.with_options(**options)(8, target, backend)


def tensors():
    return torch.randn(8, 4), torch.full((8, 4), MARK)


def unaligned():
    return torch.full((33,), MARK)[1:].view(8, 4)


def test_the_right_arguments_run(kernel):
    a, b = tensors()
    kernel(a, b, 3)
    assert torch.equal(b, a + 3)
    kernel(a, shift=-1, B=b)
    assert torch.equal(b, a - 1)


def test_unaligned_views_run(kernel):
    a, b = torch.randn(33)[1:].view(8, 4), unaligned()
    kernel(a, b, 0)
    assert torch.equal(b, a)


WRONG = {
    "dtype": (lambda a, b: (a.double(), b, 0), ArgumentTypeError, "'A'.*float32.*float64"),
    "rank": (lambda a, b: (a.view(32), b, 0), ArgumentValueError, "'A'"),
    "shape": (lambda a, b: (a[:7], b, 0), ArgumentValueError, "'A'.*8.*7"),
    "stride": (
        lambda a, b: (a.t().contiguous().t(), b, 0),
        ArgumentValueError,
        "'A'.*stride|compact",
    ),
    "device": (lambda a, b: (a.to("meta"), b, 0), ArgumentTypeError, "'A'.*meta"),
    "sparse": (lambda a, b: (a.to_sparse(), b, 0), ArgumentTypeError, "'A'.*sparse"),
    "none": (lambda a, b: (None, b, 0), ArgumentTypeError, "'A'.*None"),
    "number for a tensor": (lambda a, b: (3, b, 0), ArgumentTypeError, "'A'"),
    "list for a tensor": (lambda a, b: ([1.0], b, 0), ArgumentTypeError, "'A'"),
    "tensor for a number": (lambda a, b: (a, b, b), ArgumentTypeError, "'shift'"),
    "float for an integer": (lambda a, b: (a, b, 1.5), ArgumentTypeError, "'shift'"),
    "integer too wide": (lambda a, b: (a, b, 2**40), ArgumentValueError, "'shift'"),
    "text for a number": (lambda a, b: (a, b, "1"), ArgumentTypeError, "'shift'"),
    "too few": (lambda a, b: (a, b), ArgumentTypeError, "A.*B.*shift"),
    "none at all": (lambda a, b: (), ArgumentTypeError, "A.*B.*shift"),
    "too many": (lambda a, b: (a, b, 0, 0), ArgumentTypeError, "A.*B.*shift"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_argument_is_named_and_nothing_is_written(kernel, mistake):
    make, error, message = WRONG[mistake]
    a, b = tensors()
    with pytest.raises(error, match=f"(?s){message}") as caught:
        kernel(*make(a, b))
    assert len(str(caught.value).splitlines()) <= 4
    assert torch.equal(b, torch.full((8, 4), MARK))
    kernel(a, b, 1)
    assert torch.equal(b, a + 1)


NAMED = {
    "unknown": ({"colour": 1}, "unexpected keyword argument 'colour'"),
    "twice": ({"A": None, "B": None}, "multiple values for argument 'A'"),
    "missing": ({"shift": 1}, "missing B"),
}


@pytest.mark.parametrize("mistake", NAMED)
def test_wrong_names_are_refused(kernel, mistake):
    names, message = NAMED[mistake]
    with pytest.raises(ArgumentTypeError, match=message):
        kernel(torch.randn(8, 4), **names)


def test_too_many_positional_arguments_beside_names(kernel):
    a, b = tensors()
    with pytest.raises(ArgumentTypeError, match="takes 3 arguments, found 4"):
        kernel(a, b, 0, 0, colour=1)


def test_sizes_that_contradict_each_other_are_refused():
    @tilelang.jit
    def copy(n):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, 16), threads=32) as bx:
                for i in T.Parallel(16):
                    B[bx * 16 + i] = A[bx * 16 + i]

        return main

    b = torch.full((9,), MARK)
    with pytest.raises(ArgumentValueError, match="(?s)'B'.*8.*9|'B'.*9.*8"):
        copy(T.dynamic("n"))(torch.randn(8), b)
    assert torch.equal(b, torch.full((9,), MARK))


def test_none_is_legal_for_a_tensor_nobody_touches():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), Unused: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                A[i] = 1.0

    a = torch.zeros(8)
    tilelang.compile(main)(a, None)
    assert torch.equal(a, torch.ones(8))
