"""``T.any_of`` and ``T.all_of`` on the emulator."""

from __future__ import annotations

import pytest
import torch
from emulated_ops import compiles, emulate

import tilelang.language as T


def logical(kind, size, threads, dtype="int32", where="shared"):
    alloc = T.alloc_shared if where == "shared" else T.alloc_fragment

    @T.prim_func
    def program(A: T.Tensor((2, size), dtype), B: T.Tensor((2,), "int32")):
        with T.Kernel(2, threads=threads) as bx:
            tile = alloc((size,), dtype)
            T.copy(A[bx, :], tile)
            B[bx] = 0
            if getattr(T, f"{kind}_of")(tile):
                B[bx] = 1

    return program


@pytest.mark.parametrize("kind", ["any", "all"])
@pytest.mark.parametrize(("size", "threads"), [(4, 128), (300, 128), (192, 48), (5, 1)])
@pytest.mark.parametrize("where", ["shared", "fragment"])
def test_one_element_decides(kind, size, threads, where):
    a = torch.full((2, size), int(kind == "all"), dtype=torch.int32)
    a[1, size - 1] = int(kind == "any")
    b = emulate(logical(kind, size, threads, where=where), a)
    assert b.tolist() == [int(kind == "all"), int(kind == "any")]


@pytest.mark.parametrize("dtype", ["bool", "float16", "uint8"])
def test_dtypes(dtype):
    a = torch.zeros(2, 64).to(getattr(torch, dtype))
    a[0, 40] = 1
    assert emulate(logical("any", 64, 32, dtype), a).tolist() == [1, 0]


def test_barriers_may_stand_where_all_threads_agreed():
    @T.prim_func
    def program(A: T.Tensor((256,), "int32"), B: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((256,), "int32")
            T.copy(A, tile)
            if T.any_of(tile[0:100]):
                T.cumsum(tile)
                for i in T.Parallel(256):
                    B[i] = tile[255 - i]
            else:
                T.copy(tile, B)

    a = torch.zeros(256, dtype=torch.int32)
    a[101] = 5
    assert torch.equal(emulate(program, a), a)
    a[7] = 3
    assert torch.equal(emulate(program, a), a.cumsum(0).flip(0).int())
    compiles(program)
