"""Numbers in printed kernels: the emulator runs them, and they are those of the interpreter."""

from __future__ import annotations

import shutil

import pytest
import torch

import tilelang
from tilelang import language as T
from tilelang.interpreter import interpret

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")

N = 256
TARGET = {"kind": "cuda", "arch": "sm_90a"}
BYTES = {"int4": 2, "uint4": 2, "float4_e2m1fn": 2}


def random(dtype, seed):
    """Any bits; packed types as bytes of two elements."""
    generator = torch.Generator().manual_seed(seed)
    kind = T.dtype(dtype).as_torch()
    count = N // BYTES.get(dtype, 1) * torch.empty(0, dtype=kind).element_size()
    codes = torch.randint(0, 256, (count,), generator=generator).to(torch.uint8)
    return codes.view(kind) if dtype != "bool" else codes % 2 == 0


def bits(tensor):
    return tensor.view(torch.uint8)


def same(a, b):
    if a.dtype.is_floating_point and a.dtype.itemsize > 1:
        return ((a == b) | (a.isnan() & b.isnan())).all()
    if a.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        return ((a.float() == b.float()) | (a.float().isnan() & b.float().isnan())).all()
    return torch.equal(bits(a), bits(b))


def agree(program, *inputs, out):
    kernel = tilelang.compile(program, target=TARGET, execution_backend="emulator")
    results = [torch.zeros_like(random(out, 9)) for _ in range(2)]
    kernel(*inputs, results[0])
    interpret(program, *inputs, results[1])
    assert same(*results), results


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("float32", "int8"),
        ("float32", "float8_e5m2"),
        ("float16", "int64"),
        ("uint64", "bfloat16"),
        ("int4", "float4_e2m1fn"),
        ("float8_e4m3fn", "int4"),
        ("int32", "uint16"),
    ],
)
def test_conversions(source, target):
    @T.prim_func
    def convert(A: T.Tensor((N,), source), B: T.Tensor((N,), target)):
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(N // 2):
                B[bx * 128 + i] = T.cast(A[bx * 128 + i], target)

    agree(convert, random(source, 1), out=target)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "int4"])
def test_integers_wrap(dtype):
    @T.prim_func
    def mix(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(N // 2):
                a = A[bx * 128 + i]
                b = B[bx * 128 + i]
                C[bx * 128 + i] = (a * b + a) // b - T.max(a, b) % 3 + (a << 2) + (b >> 1)

    agree(mix, random(dtype, 1), random(dtype, 2), out=dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_short_floats_round_after_every_operator(dtype):
    @T.prim_func
    def mix(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(N // 2):
                a = A[bx * 128 + i]
                b = B[bx * 128 + i]
                C[bx * 128 + i] = T.max((a - b) * b, T.min(a / b, a))

    agree(mix, random(dtype, 1), random(dtype, 2), out=dtype)


def test_a_failed_assertion_stops_the_kernel(capfd):
    @T.prim_func
    def check(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i]
            T.device_assert(B[0] > 0, "first is positive")

    kernel = tilelang.compile(check, target=TARGET, execution_backend="emulator")
    kernel(torch.ones(N, dtype=torch.int32), torch.zeros(N, dtype=torch.int32))
    with pytest.raises(tilelang.errors.TileLangError):
        kernel(torch.zeros(N, dtype=torch.int32), torch.zeros(N, dtype=torch.int32))
    assert "first is positive" in "".join(capfd.readouterr())
