"""float16 and bfloat16: float32 in traced code, an error in helpers that are not traced."""

from __future__ import annotations

import operator

import pytest

import tilelang.language as T
from tilelang.analysis import check_mixed_halves
from tilelang.errors import SemanticError

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.ge]


def program(combine):
    """A kernel that stores ``combine`` of a float16 and a bfloat16 in both orders."""

    @T.prim_func
    def main(
        H: T.Tensor((8,), "float16"), G: T.Tensor((8,), "bfloat16"), C: T.Tensor((8,), "float32")
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                C[i] = combine(H[i], G[i])

    return main


@pytest.mark.parametrize("function", OPERATORS)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_plain_helper_is_refused(function, swapped):
    def helper(x, y):
        return function(y, x) if swapped else function(x, y)

    with pytest.raises(SemanticError, match="combines a float16 and a bfloat16") as caught:
        check_mixed_halves(program(helper))
    assert __file__ in str(caught.value)


def test_a_condition_is_looked_into():
    def helper(x, y):
        return x < y

    @T.prim_func
    def main(H: T.Tensor((8,), "float16"), G: T.Tensor((8,), "bfloat16")):
        with T.Kernel(1, threads=32):
            if helper(H[0], G[0]):
                H[1] = 1

    with pytest.raises(SemanticError, match="combines a float16 and a bfloat16"):
        check_mixed_halves(main)


def same_type(x, y):
    return x + x


def explicit(x, y):
    return x + T.cast(y, "float16")


def by_way_of_float(x, y):
    return x.astype("float32") + y.astype("float32")


@T.macro
def traced(x, y):
    return x + y


@pytest.mark.parametrize("combine", [same_type, explicit, by_way_of_float, traced])
def test_what_says_its_type_is_accepted(combine):
    check_mixed_halves(program(combine))
