"""``T.cumsum`` and ``T.cummax`` on the emulator."""

from __future__ import annotations

import pytest
import torch
from emulated_ops import compiles, emulate

import tilelang.language as T


def scan(kind, shape, dim, reverse, threads, dtype="int32", where="shared"):
    alloc = T.alloc_shared if where == "shared" else T.alloc_fragment

    @T.prim_func
    def program(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=threads):
            tile = alloc(shape, dtype)
            T.copy(A, tile)
            getattr(T, kind)(tile, dim=dim, reverse=reverse)
            T.copy(tile, B)

    return program


def expected(kind, a, dim, reverse):
    a = a.flip(dim) if reverse else a
    out = a.cumsum(dim, dtype=a.dtype) if kind == "cumsum" else a.cummax(dim).values
    return out.flip(dim) if reverse else out


def of_ints(*shape):
    return torch.randint(-1000, 1000, shape, dtype=torch.int32)


@pytest.mark.parametrize("threads", [1, 48, 96, 128])
@pytest.mark.parametrize("shape", [(1,), (7,), (1000,), (4096,)])
def test_a_line(shape, threads):
    a = of_ints(*shape)
    b = emulate(scan("cumsum", shape, 0, False, threads), a)
    assert torch.equal(b, expected("cumsum", a, 0, False))


@pytest.mark.parametrize("kind", ["cumsum", "cummax"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("shape", [(5, 7), (3, 257), (200, 2)])
def test_the_rows_of_a_tile(kind, shape, dim, reverse):
    a = of_ints(*shape)
    b = emulate(scan(kind, shape, dim, reverse, 128), a)
    assert torch.equal(b, expected(kind, a, dim, reverse))


@pytest.mark.parametrize("threads", [1, 64, 80, 256])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_three_dimensions_in_a_fragment(dim, threads):
    a = of_ints(3, 20, 9)
    b = emulate(scan("cumsum", (3, 20, 9), dim, True, threads, where="fragment"), a)
    assert torch.equal(b, expected("cumsum", a, dim, True))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_floats_are_summed_in_a_wide_type(dtype):
    kind = getattr(torch, dtype)
    a = torch.randn(6, 300).to(kind)
    b = emulate(scan("cumsum", (6, 300), 1, False, 128, dtype), a)
    wide = a.double().cumsum(1)
    tolerance = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 8e-3, "float64": 1e-12}[dtype]
    torch.testing.assert_close(b.double(), wide, rtol=tolerance, atol=tolerance)


def test_nan_are_ignored_in_a_maximum():
    a = torch.randn(4, 100)
    a[0, :3], a[1, 50], a[2, 99] = float("nan"), float("nan"), float("nan")
    b = emulate(scan("cummax", (4, 100), 1, False, 128, "float32"), a)
    filled = a.nan_to_num(nan=float("-inf"))
    assert torch.equal(b, filled.cummax(1).values)


@pytest.mark.parametrize("threads", [32, 96])
def test_slices_and_a_destination(threads):
    @T.prim_func
    def program(A: T.Tensor((4, 3, 50), "int32"), B: T.Tensor((2, 3, 60), "int32")):
        with T.Kernel(1, threads=threads):
            source = T.alloc_shared((4, 3, 50), "int32")
            target = T.alloc_shared((2, 3, 60), "int32")
            T.copy(A, source)
            T.clear(target)
            T.cumsum(source[2, 0:3, 5:45], target[1, 0:3, 20:60], dim=2)
            T.copy(target, B)

    a = of_ints(4, 3, 50)
    b = emulate(program, a)
    assert torch.equal(b[1, :, 20:], a[2, :, 5:45].cumsum(1, dtype=torch.int32))
    assert not b[0].any() and not b[1, :, :20].any()


def test_global_memory_and_a_size_known_at_run_time():
    rows = T.dynamic("rows")

    @T.prim_func
    def program(A: T.Tensor((rows, 40), "int32"), B: T.Tensor((rows, 40), "int32")):
        with T.Kernel(T.ceildiv(rows, 16), threads=64) as bx:
            T.cumsum(A[bx * 16 : bx * 16 + 16, 0:40], B[bx * 16 : bx * 16 + 16, 0:40], dim=1)

    a = of_ints(37, 40)
    assert torch.equal(emulate(program, a), a.cumsum(1, dtype=torch.int32))


def test_scans_of_one_kernel_follow_each_other():
    @T.prim_func
    def program(A: T.Tensor((32, 96), "int32"), B: T.Tensor((32, 96), "int32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((32, 96), "int32")
            T.copy(A, tile)
            T.cumsum(tile, dim=0)
            T.cumsum(tile, dim=1, reverse=True)
            T.cummax(tile, dim=0)
            T.copy(tile, B)

    a = of_ints(32, 96)
    sums = a.cumsum(0).flip(1).cumsum(1).flip(1).int()
    assert torch.equal(emulate(program, a), sums.cummax(0).values)


def test_the_device_compiler_takes_it():
    compiles(scan("cumsum", (5, 1000), 1, True, 256, "float16"))
