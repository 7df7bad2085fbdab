"""Tensors of vectors: torch passes and gets them as scalars, the lanes as last dimension."""

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.errors import ArgumentTypeError, ArgumentValueError
from tilelang.interpreter import interpret


def make_double(dtype="float32x4", strided=False):
    rows = T.dynamic("rows")
    pitch = T.dynamic("pitch")
    tensor = (
        T.StridedTensor((rows, 3), (pitch, 1), dtype) if strided else T.Tensor((rows, 3), dtype)
    )

    @T.prim_func
    def double(A: tensor, B: T.Tensor((rows, 3), dtype)):
        with T.Kernel(rows, threads=32) as row:
            for i in T.Parallel(3):
                B[row, i] = A[row, i] + A[row, i]

    return double


@pytest.fixture(scope="module", params=["tvm_ffi", "interpreter"])
def run(request):
    """Run the program for inputs; returns B."""
    if request.param == "interpreter":
        return lambda *args, out_idx=1, **how: interpret(make_double(**how), *args, out_idx=out_idx)
    return lambda *args, out_idx=1, **how: tilelang.compile(
        make_double(**how), out_idx=out_idx, target="llvm"
    )(*args)


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("float32x4", torch.float32),
        ("float32x2", torch.float32),
        ("int32x4", torch.int32),
        ("float64x2", torch.float64),
    ],
)
def test_inputs_and_outputs_have_one_more_dimension(run, dtype, kind):
    lanes = int(dtype[-1])
    a = torch.arange(2 * 3 * lanes).reshape(2, 3, lanes).to(kind)
    found = run(a, dtype=dtype)
    assert found.dtype == kind and torch.equal(found, a + a)


def test_a_tensor_is_written_in_place(run):
    a, b = torch.randn(2, 3, 4), torch.zeros(2, 3, 4)
    run(a, b, out_idx=None)
    assert torch.equal(b, a + a)


def test_an_address_between_vectors(run):
    a = torch.arange(25.0)[1:].reshape(2, 3, 4)
    assert torch.equal(run(a), a + a)


def test_strides_count_vectors(run):
    a = torch.randn(2, 5, 4)[:, :3]
    assert torch.equal(run(a, strided=True), a + a)


WRONG = {
    "lanes in another number": (torch.zeros(2, 3, 2), ArgumentValueError, "4 lanes.*last dim"),
    "no lanes": (torch.zeros(2, 3), ArgumentValueError, "4 lanes.*last dim|expected 2 dim"),
    "another rank": (torch.zeros(3, 4), ArgumentValueError, "4 lanes.*last dim|expected 2 dim"),
    "another extent": (torch.zeros(2, 5, 4), ArgumentValueError, "shape.*3"),
    "lanes apart": (
        torch.zeros(2, 3, 8)[..., ::2],
        ArgumentValueError,
        "last dim",
    ),
    "another dtype": (torch.zeros(2, 3, 4).double(), ArgumentTypeError, "float32.*float64"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_what_does_not_fit_is_refused(run, mistake):
    tensor, error, message = WRONG[mistake]
    with pytest.raises(error, match=f"(?s)'A'.*{message}"):
        run(tensor)


def test_a_pitch_of_no_whole_number_of_vectors_is_refused(run):
    a = torch.zeros(2, 14).as_strided((2, 3, 4), (14, 4, 1))
    with pytest.raises(ArgumentValueError, match="(?s)'A'.*14"):
        run(a, strided=True)


def test_a_graph_knows_the_shape_of_the_output():
    kernel = tilelang.compile(make_double(), out_idx=1, target="llvm")
    a = torch.randn(4, 3, 4)
    captured = torch.compile(lambda x: kernel(x), backend="aot_eager", fullgraph=True)
    assert torch.equal(captured(a), a + a)


def test_a_profiler_makes_such_tensors():
    kernel = tilelang.compile(make_double("int32x2"), out_idx=1, target="llvm")
    (tensor,) = kernel.get_profiler().make_inputs({"rows": 2})
    assert tensor.shape == (2, 3, 2) and tensor.dtype == torch.int32
