"""A program for the tests of the JIT."""

import pytest

import tilelang.language as T


def make_add(n=64, dtype="float32", block=16, scale=1.0):
    """``C = A * scale + B`` over ``n`` elements."""

    @T.prim_func
    def add(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i] * scale + B[bx * block + i]

    return add


@pytest.fixture(scope="session")
def add_factory():
    """Makes the program ``add``."""
    return make_add
