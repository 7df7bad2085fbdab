"""``T.gemm`` on the CPU: dtypes, orders in memory, odd tiles, and the instructions of a target."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.cpu.features import features_of
from tilelang.cpu.op.gemm.dot import dot_instruction
from tilelang.cpu.op.gemm.microkernel import block_shape
from tilelang.cpu.target import local_cpu_target
from tilelang.interpreter.accuracy import sum_bound

_ACCUMULATORS = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float32",
    "float64": "float64",
    "int8": "int32",
    "uint8": "int32",
    "int32": "int32",
}
_TRANSPOSES = list(itertools.product((False, True), repeat=2))
_FEW_SIZES = [(64, 64, 32), (17, 37, 35)]
_SIZES = [*_FEW_SIZES, (3, 130, 70), (50, 16, 129), (9, 80, 64), (16, 32, 5), (1, 1, 1)]


def product(m, n, k, dtypes, transpose_a=False, transpose_b=False, clear=False):
    """One tile product ``c = a @ b``, or ``c += a @ b`` without ``clear``."""
    dtype_a, dtype_b, accum = dtypes
    shape_a = (k, m) if transpose_a else (m, k)
    shape_b = (n, k) if transpose_b else (k, n)

    @T.prim_func
    def main(
        a: T.Tensor(shape_a, dtype_a), b: T.Tensor(shape_b, dtype_b), c: T.Tensor((m, n), accum)
    ):
        with T.Kernel(1, threads=32):
            a_tile = T.alloc_shared(shape_a, dtype_a)
            b_tile = T.alloc_shared(shape_b, dtype_b)
            acc = T.alloc_fragment((m, n), accum)
            T.copy(a, a_tile)
            T.copy(b, b_tile)
            T.copy(c, acc)
            T.gemm(
                a_tile,
                b_tile,
                acc,
                transpose_A=transpose_a,
                transpose_B=transpose_b,
                clear_accum=clear,
            )
            T.copy(acc, c)

    return main


def numbers(shape, dtype):
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        return torch.randn(shape, dtype=torch.float64).to(kind)
    info = torch.iinfo(kind)
    return torch.randint(info.min, info.max + 1, shape, dtype=torch.int64).to(kind)


def wrapped(values):
    """int64 values modulo 2^32, as int32."""
    return ((values + 2**31) % 2**32 - 2**31).to(torch.int32)


def check(m, n, k, dtypes, transposes, clear, target="llvm"):
    """Run the product and compare it with one in 64 bits."""
    torch.manual_seed(m * n + k)
    program = product(m, n, k, dtypes, *transposes, clear)
    kernel = tilelang.compile(program, target=target)
    a, b = numbers((m, k), dtypes[0]), numbers((k, n), dtypes[1])
    c = numbers((m, n), dtypes[2])
    result = c.clone()
    kernel(
        a.T.contiguous() if transposes[0] else a, b.T.contiguous() if transposes[1] else b, result
    )
    if not result.is_floating_point():
        exact = a.long() @ b.long() + (0 if clear else c.long())
        assert torch.equal(result, wrapped(exact))
        return
    start = torch.zeros_like(c) if clear else c
    exact = a.double() @ b.double() + start.double()
    magnitude = a.double().abs() @ b.double().abs() + start.double().abs()
    bound = sum_bound(k + 1, magnitude.numpy(), dtypes[2])
    assert np.all(np.abs((result.double() - exact).numpy()) <= bound)


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("transposes", _TRANSPOSES)
@pytest.mark.parametrize("dtype", list(_ACCUMULATORS))
def test_products_of_every_order_and_size(dtype, transposes, clear):
    own_path = dtype in ("float32", "bfloat16", "int8")
    for sizes in _SIZES if own_path and not clear else _FEW_SIZES:
        check(*sizes, (dtype, dtype, _ACCUMULATORS[dtype]), transposes, clear)


@pytest.mark.parametrize("transposes", _TRANSPOSES)
@pytest.mark.parametrize("dtype", list(_ACCUMULATORS))
def test_products_from_c_source(dtype, transposes):
    check(17, 37, 35, (dtype, dtype, _ACCUMULATORS[dtype]), transposes, False, "c")


@pytest.mark.parametrize("dtypes", [("int8", "uint8", "int32"), ("uint8", "int8", "int32")])
@pytest.mark.parametrize("transposes", _TRANSPOSES)
def test_bytes_of_different_signs(dtypes, transposes):
    for sizes in ((16, 48, 64), (9, 20, 7)):
        check(*sizes, dtypes, transposes, False)


def run_extremes(a_value, b_value, start, k, target):
    m, n = 9, 33
    program = product(m, n, k, ("int8", "int8", "int32"))
    c = torch.full((m, n), start, dtype=torch.int32)
    a, b = (torch.full(s, v, dtype=torch.int8) for s, v in (((m, k), a_value), ((k, n), b_value)))
    tilelang.compile(program, target=target)(a, b, c)
    expected = wrapped(torch.full((m, n), start + k * a_value * b_value, dtype=torch.int64))
    assert torch.equal(c, expected)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("values", [(-128, -128), (127, -128), (-128, 127), (127, 127), (-1, -128)])
def test_extreme_bytes_are_exact(values, target):
    run_extremes(*values, 5, 250, target)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(
    ("values", "start"), [((-128, -128), 2**31 - 7), ((127, -128), -(2**31) + 7)]
)
def test_accumulators_wrap(values, start, target):
    run_extremes(*values, start, 64, target)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_bfloat16_keeps_infinities_and_nan(value):
    m, n, k = 8, 32, 34
    a, b = torch.ones(m, k).bfloat16(), torch.ones(k, n).bfloat16()
    a[3, 5] = value
    c = torch.zeros(m, n)
    tilelang.compile(product(m, n, k, ("bfloat16", "bfloat16", "float32")), target="llvm")(a, b, c)
    assert torch.equal(c, torch.full((m, n), float(k)).index_fill_(0, torch.tensor(3), value)) or (
        value != value and c[3].isnan().all() and torch.equal(c[:3], torch.full((3, n), float(k)))
    )


def test_regions_of_deeper_buffers():
    stages, m, n, k = 3, 16, 48, 32

    @T.prim_func
    def main(
        a: T.Tensor((stages, m, k), "bfloat16"),
        b: T.Tensor((stages, n, k), "bfloat16"),
        c: T.Tensor((stages, m, n), "float32"),
    ):
        with T.Kernel(1, threads=32):
            a_tiles = T.alloc_shared((stages, m, k), "bfloat16")
            b_tiles = T.alloc_shared((stages, n, k), "bfloat16")
            acc = T.alloc_fragment((stages, m, n), "float32")
            T.copy(a, a_tiles)
            T.copy(b, b_tiles)
            for s in T.serial(stages):
                T.gemm(
                    a_tiles[s, :, :],
                    b_tiles[s, :, :],
                    acc[s, :, :],
                    transpose_B=True,
                    clear_accum=True,
                )
            T.copy(acc, c)

    a, b = torch.randn(stages, m, k).bfloat16(), torch.randn(stages, n, k).bfloat16()
    c = torch.empty(stages, m, n)
    tilelang.compile(main, target="llvm")(a, b, c)
    torch.testing.assert_close(c, a.float() @ b.float().transpose(1, 2), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_parts_of_tiles(dtype):
    accum = _ACCUMULATORS[dtype]

    @T.prim_func
    def main(
        a: T.Tensor((40, 70), dtype), b: T.Tensor((70, 90), dtype), c: T.Tensor((40, 90), accum)
    ):
        with T.Kernel(1, threads=32):
            a_tile = T.alloc_shared((40, 70), dtype)
            b_tile = T.alloc_shared((70, 90), dtype)
            acc = T.alloc_fragment((40, 90), accum)
            T.copy(a, a_tile)
            T.copy(b, b_tile)
            T.clear(acc)
            T.gemm(a_tile[7:39, 3:67], b_tile[3:67, 5:69], acc[1:33, 11:75])
            T.copy(acc, c)

    a, b = numbers((40, 70), dtype), numbers((70, 90), dtype)
    c = torch.empty(40, 90, dtype=getattr(torch, accum))
    tilelang.compile(main, target="llvm")(a, b, c)
    expected = torch.zeros(40, 90, dtype=torch.float64)
    expected[1:33, 11:75] = a[7:39, 3:67].double() @ b[3:67, 5:69].double()
    torch.testing.assert_close(c.double(), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8"])
@pytest.mark.parametrize("model", ["x86-64-v3", "x86-64"])
def test_processors_without_dot_products(dtype, model):
    local = features_of(tilelang.tvm.target.Target(local_cpu_target()))
    if model == "x86-64-v3" and not local.has("avx2", "fma"):
        pytest.skip("this machine cannot run the code of an x86-64-v3")
    if not local.has("sse2"):
        pytest.skip("this machine is no x86-64")
    dtypes = (dtype, dtype, _ACCUMULATORS[dtype])
    for transposes in _TRANSPOSES:
        check(33, 40, 27, dtypes, transposes, False, {"kind": "llvm", "mcpu": model})


_INSTRUCTIONS = {"bfloat16": "llvm.x86.avx512bf16.dpbf16ps.512", "int8": "llvm.x86.avx512.vpdpbusd"}


def source(dtype, model):
    program = product(32, 64, 32, (dtype, dtype, _ACCUMULATORS[dtype]))
    target = {"kind": "llvm", "mcpu": model, "mtriple": "x86_64-unknown-linux-gnu"}
    return tilelang.lower(program, target=target).kernel_source


@pytest.mark.parametrize("dtype", list(_INSTRUCTIONS))
@pytest.mark.parametrize(
    ("model", "has"),
    [
        ("znver4", {"bfloat16", "int8"}),
        ("icelake-server", {"int8"}),
        ("alderlake", {"int8"}),
        ("x86-64-v4", set()),
        ("x86-64-v3", set()),
    ],
)
def test_instructions_follow_the_target(dtype, model, has):
    assert (_INSTRUCTIONS[dtype] in source(dtype, model)) == (dtype in has)


def test_flags_take_instructions_away():
    target = tilelang.tvm.target.Target(
        {
            "kind": "llvm",
            "mcpu": "znver4",
            "mtriple": "x86_64-unknown-linux-gnu",
            "mattr": ["-avx512vnni", "-avx512bf16"],
        }
    )
    features = features_of(target)
    assert dot_instruction("int8", "int8", "int32", features) is None
    assert dot_instruction("bfloat16", "bfloat16", "float32", features) is None


@pytest.mark.parametrize("registers", [16, 32])
@pytest.mark.parametrize("m", [1, 2, 5, 8, 64])
@pytest.mark.parametrize("vectors", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("column", [1024, 65536])
def test_blocks_fit_the_registers(registers, m, vectors, column):
    rows, width = block_shape(registers, m, vectors, column)
    assert 1 <= rows <= m and 1 <= width <= vectors
    assert rows * width + (width if rows > 1 else 1) < registers
