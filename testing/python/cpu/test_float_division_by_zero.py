"""A float divided by a constant zero follows IEEE everywhere."""

import math

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.interpreter import interpret

VALUES = [1.0, -2.0, 0.0, -0.0, math.inf, -math.inf, math.nan, 3.0]


def quotients(dtype):
    @T.prim_func
    def main(A: T.Tensor((8,), dtype), C: T.Tensor((5, 8), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                C[0, i] = A[i] / 0
                C[1, i] = A[i] / 0.0
                C[2, i] = A[i] / -0.0
                C[3, i] = T.cast(1.0, dtype) / T.cast(0.0, dtype)
                x = A[i]
                x /= 0.0
                C[4, i] = x

    return main


def expected(values):
    plus = values / 0.0
    ones = torch.full_like(values, math.inf)
    return torch.stack([plus, plus, values / -0.0, ones, plus])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("way", ["llvm", "c", "interpreter"])
def test_it_is_infinite_or_nan(dtype, way):
    a = torch.tensor(VALUES, dtype=getattr(torch, dtype))
    program = quotients(dtype)
    if way == "interpreter":
        found = interpret(program, a, out_idx=1)
    else:
        found = tilelang.compile(program, out_idx=1, target=way)(a)
    torch.testing.assert_close(found, expected(a), rtol=0, atol=0, equal_nan=True)


def test_an_integer_divided_by_a_float_zero():
    @T.prim_func
    def main(C: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.serial(4):
                C[i] = (i - 1) / 0.0

    found = tilelang.compile(main, out_idx=0, target="llvm")()
    assert torch.equal(found.isnan(), torch.tensor([False, True, False, False]))
    assert found[[0, 2, 3]].tolist() == [-math.inf, math.inf, math.inf]
