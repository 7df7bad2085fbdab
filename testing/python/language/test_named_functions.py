"""Messages name the function that the user called."""

from __future__ import annotations

import pytest

import tilelang.language as T
from tilelang.errors import TileLangError

REDUCTIONS = ["sum", "abssum", "max", "min", "absmax", "bitand", "bitor", "bitxor"]


def trace(body):
    @T.prim_func
    def main(A: T.Tensor((64, 32), "int32")):
        with T.Kernel(1, threads=32):
            T.macro(body)(A)

    return main


def refused(body, message):
    with pytest.raises(TileLangError, match=message) as caught:
        trace(body)
    assert __file__ in str(caught.value)


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions(kind):
    function = getattr(T, f"reduce_{kind}")

    def wrong_shape(A):
        src, dst = T.alloc_fragment((64, 32), "int32"), T.alloc_fragment((63,), "int32")
        function(src, dst, dim=1)

    def wrong_dim(A):
        src, dst = T.alloc_fragment((64, 32), "int32"), T.alloc_fragment((64,), "int32")
        function(src, dst, dim=2)

    def no_tile(A):
        function(3, T.alloc_fragment((64,), "int32"), dim=1)

    refused(wrong_shape, rf"T\.reduce_{kind}: reducing dim 1")
    refused(wrong_dim, rf"T\.reduce_{kind}: dim 2 is out of range")
    refused(no_tile, rf"T\.reduce_{kind}: buffer must be")


def test_the_general_reduction():
    def wrong_dim(A):
        src, dst = T.alloc_fragment((64, 32), "int32"), T.alloc_fragment((64,), "int32")
        T.reduce(src, dst, "sum", 2, True)

    refused(wrong_dim, r"T\.reduce: dim 2 is out of range")


@pytest.mark.parametrize("name", ["alloc_shared", "alloc_fragment", "alloc_local", "alloc_global"])
def test_allocations(name):
    allocate = getattr(T, name)

    def swapped(A):
        allocate("float32", (64,))

    def no_dtype(A):
        allocate((64,), 64)

    refused(swapped, rf"T\.{name}: expected a shape.*found 'float32'.*{name}\(shape, dtype\)")
    refused(no_dtype, rf"T\.{name}: expected a dtype, found int 64")
