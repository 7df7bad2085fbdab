"""Reductions of local buffers on target ``c`` with the cython execution backend."""

import pytest
import torch
from tvm.target import Target

import tilelang
import tilelang.language as T


def compiled(program):
    with Target("c"):
        return tilelang.compile(
            program, out_idx=-1, target="c", target_host="c", execution_backend="cython"
        )


def reduction(op, shape, dtype, dim, fill=None):
    """Copy in and out with explicit loops and reduce a local buffer between."""
    out_shape = tuple(extent for axis, extent in enumerate(shape) if axis != dim % len(shape))
    reduce_op = getattr(T, f"reduce_{op}")

    @T.prim_func
    def main(
        A: T.Tensor(shape, dtype), start: T.Tensor((1,), dtype), B: T.Tensor(out_shape, dtype)
    ):
        with T.Kernel(1):
            source = T.alloc_local(shape, dtype)
            result = T.alloc_local(out_shape, dtype)
            for index in T.grid(*shape):
                source[index] = A[index]
            if fill is None:
                reduce_op(source, result, dim=dim)
            else:
                for index in T.grid(*out_shape):
                    result[index] = start[0]
                reduce_op(source, result, dim=dim, clear=False)
            for index in T.grid(*out_shape):
                B[index] = result[index]

    return main


def run(op, a, dim, fill=None):
    dtype = str(a.dtype).removeprefix("torch.")
    kernel = compiled(reduction(op, tuple(a.shape), dtype, dim, fill))
    return kernel(a, torch.tensor([0 if fill is None else fill], dtype=a.dtype))


FLOATS = {
    "sum": torch.sum,
    "max": torch.amax,
    "min": torch.amin,
    "abssum": lambda a, dim: a.abs().sum(dim),
    "absmax": lambda a, dim: a.abs().amax(dim),
}
BITS = {"bitand": torch.bitwise_and, "bitor": torch.bitwise_or, "bitxor": torch.bitwise_xor}


def fold(op, a, dim):
    total, *rest = a.unbind(dim)
    for part in rest:
        total = BITS[op](total, part)
    return total


@pytest.mark.parametrize("op", FLOATS)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_floats(op, dim):
    a = torch.randn(4, 8)
    torch.testing.assert_close(run(op, a, dim), FLOATS[op](a, dim), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", BITS)
@pytest.mark.parametrize("dim", [0, 1])
def test_bits(op, dim):
    a = torch.randint(-(2**31), 2**31 - 1, (4, 8), dtype=torch.int32)
    assert torch.equal(run(op, a, dim), fold(op, a, dim))


@pytest.mark.parametrize("op", ["sum", "max", "bitand"])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_three_dimensions(op, dim):
    a = torch.randint(-1000, 1000, (3, 4, 5), dtype=torch.int32)
    expected = fold(op, a, dim) if op == "bitand" else FLOATS[op](a, dim).to(torch.int32)
    assert torch.equal(run(op, a, dim), expected)


@pytest.mark.parametrize(
    ("op", "fill", "combine"),
    [("sum", 2.0, torch.add), ("max", 0.5, torch.maximum), ("min", -0.5, torch.minimum)],
)
def test_clear_false_combines_with_what_is_there(op, fill, combine):
    a = torch.randn(4, 8)
    expected = combine(FLOATS[op](a, 1), torch.tensor(fill))
    torch.testing.assert_close(run(op, a, 1, fill), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", FLOATS)
def test_a_prime_extent(op):
    a = torch.randn(3, 17)
    torch.testing.assert_close(run(op, a, 1), FLOATS[op](a, 1), rtol=1e-5, atol=1e-5)


def test_abssum_always_starts_from_zero():
    with pytest.raises(TypeError, match="clear"):
        reduction("abssum", (4, 8), "float32", 1, fill=1.0)
