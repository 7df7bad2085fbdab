"""Explicit vector dtypes: values of several lanes, buffers of vectors, casts, bits."""

import pytest
import torch
from ways import check

import tilelang
import tilelang.language as T
from tilelang.errors import UnsupportedError


def test_arithmetic_on_vectors_through_views():
    @T.prim_func
    def program(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1):
            a, b = T.view(A, dtype="float32x4"), T.view(B, dtype="float32x4")
            for i in T.serial(8):
                x = a[i] * T.float32x4(2.0) - a[7 - i]
                b[i] = T.max(x, a[i]) + b[7 - i]

    check(program, torch.randn(32), torch.randn(32))


def test_a_store_reads_all_lanes_first():
    @T.prim_func
    def program(A: T.Tensor((8,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            pairs = T.view(A, dtype="int32x2")
            lanes = T.view(A, dtype="int32")
            for i in T.serial(2):
                old = pairs[i]
                pairs[i] = pairs[3 - i] + old
                pairs[3 - i] = old - pairs[3 - i]
            out = T.view(B, dtype="int32x2")
            out[1] = T.int32x2(lanes[3], lanes[2])  # two scalars as a vector
            out[0] = T.int32x2(lanes[0])

    a = torch.randint(-99, 99, (8,), dtype=torch.int32)
    check(program, a, torch.zeros(4, dtype=torch.int32))


@pytest.mark.parametrize(
    "source, target",
    [("float16x4", "float32x4"), ("int8x4", "int32x4"), ("float32x2", "bfloat16x2")],
)
def test_casts_of_vectors(source, target):
    one, two = T.dtype(source).element, T.dtype(target).element

    @T.prim_func
    def program(A: T.Tensor((16,), one), B: T.Tensor((16,), two)):
        with T.Kernel(1):
            a, b = T.view(A, dtype=source), T.view(B, dtype=target)
            for i in T.serial(16 // T.dtype(source).lanes):
                b[i] = T.cast(a[i], target)

    a = (torch.randn(16) * 50).to(one.as_torch())
    check(program, a, torch.zeros(16, dtype=two.as_torch()))


@pytest.mark.parametrize(
    "source, target",
    [
        ("float32x2", "uint64"),
        ("uint32", "uint8x4"),
        ("float16x4", "float32x2"),
        ("int64", "int16x4"),
    ],
)
def test_bits_of_vectors_as_other_vectors(source, target):
    one, two = T.dtype(source), T.dtype(target)
    sizes = (4 * one.lanes, 4 * two.lanes)

    @T.prim_func
    def program(A: T.Tensor(sizes[:1], one.element), B: T.Tensor(sizes[1:], two.element)):
        with T.Kernel(1):
            a, b = T.view(A, dtype=source), T.view(B, dtype=target)
            for i in T.serial(4):
                b[i] = T.reinterpret(a[i], target)

    raw = torch.randint(0, 256, (4 * one.itemsize,), dtype=torch.uint8)
    got = check(
        program,
        raw.view(one.element.as_torch()),
        torch.zeros_like(raw).view(two.element.as_torch()),
    )
    assert torch.equal(got[1].view(torch.uint8), raw)


def test_functions_of_vectors():
    @T.prim_func
    def program(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(1):
            a, b = T.view(A, dtype="float32x4"), T.view(B, dtype="float32x4")
            for i in T.serial(4):
                b[i] = T.floor(a[i] * T.float32x4(8.0)) + T.abs(a[3 - i])

    check(program, torch.randn(16), torch.zeros(16))


def test_shared_and_local_tiles_of_vectors():
    @T.prim_func
    def program(A: T.Tensor((32,), "float16"), B: T.Tensor((32,), "float16")):
        with T.Kernel(1):
            a, b = T.view(A, dtype="float16x2"), T.view(B, dtype="float16x2")
            tile = T.alloc_shared((16,), "float16x2")
            total = T.alloc_local((1,), "float16x2")
            total[0] = T.float16x2(0.0)
            for i in T.serial(16):
                tile[i] = T.fma2(a[i], a[i], a[15 - i])
                total[0] = T.max2(total[0], tile[i])
            for i in T.serial(16):
                b[i] = T.sub2(tile[i], total[0])

    a = torch.randint(-4, 5, (32,)).half()
    check(program, a, torch.zeros(32).half())


def test_a_foreign_function_of_vectors_is_refused_as_c_source():
    @T.prim_func
    def program(A: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            a = T.view(A, dtype="float32x2")
            a[0] = T.call_extern("float32x2", "foreign", a[1])

    with pytest.raises(UnsupportedError, match="foreign with vectors"):
        tilelang.compile(program, target="c")
