"""The numeric contract, seen from whole kernels."""

import numpy as np
import pytest
import torch

import tilelang.language as T
from tilelang.interpreter import interpret

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def elementwise(function, *dtypes):
    """A kernel ``out[i] = function(in_0[i], ...)``; the last dtype is that of the result."""
    *inputs, result = dtypes
    n = T.dynamic("n")

    if len(inputs) == 1:

        @T.prim_func
        def program(A: T.Tensor((n,), inputs[0]), C: T.Tensor((n,), result)):
            with T.Kernel(1):
                for i in T.Parallel(n):
                    C[i] = function(A[i])

    else:

        @T.prim_func
        def program(
            A: T.Tensor((n,), inputs[0]), B: T.Tensor((n,), inputs[1]), C: T.Tensor((n,), result)
        ):
            with T.Kernel(1):
                for i in T.Parallel(n):
                    C[i] = function(A[i], B[i])

    return lambda *tensors: interpret(program, *tensors, out_idx=-1)


def edges(dtype):
    info = np.iinfo(dtype)
    return np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1, 3, 7], dtype)


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_data_integers_wrap(dtype, name):
    python = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b}[name]
    a = np.repeat(edges(dtype), 8)
    b = np.tile(edges(dtype), 8)
    result = elementwise(python, dtype, dtype, dtype)(a, b).numpy()
    bits = np.iinfo(dtype).bits
    exact = [python(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    assert [int(v) % 2**bits for v in result] == [v % 2**bits for v in exact]


def test_an_intermediate_result_wraps_before_it_is_used():
    """(x * 2) // 2 is not x."""
    result = elementwise(lambda x: (x * 2) // 2, "int32", "int32")(np.int32([2**30, 5, -7]))
    assert result.tolist() == [-(2**30), 5, -7]


def test_overflow_is_visible_to_comparisons():
    result = elementwise(lambda x: x + 1 > x, "int32", "bool")(np.int32([2**31 - 1, 5]))
    assert result.tolist() == [False, True]


@pytest.mark.parametrize("name", ["//", "%"])
def test_division_floors(name):
    function = {"//": lambda a, b: a // b, "%": lambda a, b: a % b}[name]
    a, b = np.repeat(np.int32([-7, -6, 0, 6, 7]), 4), np.tile(np.int32([-3, -2, 2, 3]), 5)
    expected = [function(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    assert elementwise(function, "int32", "int32", "int32")(a, b).tolist() == expected


def test_truncating_division_is_cs():
    a, b = np.int32([-7, 7, -7, 7]), np.int32([2, 2, -2, -2])
    assert elementwise(T.truncdiv, *["int32"] * 3)(a, b).tolist() == [-3, 3, 3, -3]
    assert elementwise(T.truncmod, *["int32"] * 3)(a, b).tolist() == [-1, 1, -1, 1]


def test_ceildiv_is_the_mathematical_ceiling():
    a, b = np.int32([-7, 7, -7, 7, 6]), np.int32([2, 2, -2, -2, 3])
    assert elementwise(T.ceildiv, *["int32"] * 3)(a, b).tolist() == [-3, 4, 4, -3, 2]


@pytest.mark.parametrize("dtype", INTS)
def test_shifts_by_the_width_or_more(dtype):
    bits = np.iinfo(dtype).bits
    a = np.array([1, 3, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    count = np.full(4, bits, dtype)
    left = elementwise(lambda x, n: x << n, dtype, dtype, dtype)(a, count)
    right = elementwise(lambda x, n: x >> n, dtype, dtype, dtype)(a, count)
    assert left.tolist() == [0] * 4
    assert right.tolist() == [0, 0, 0, -1 if dtype.startswith("int") else 0]


@pytest.mark.parametrize("target", ["int8", "int32", "int64", "uint8", "uint32"])
def test_float_to_integer_saturates(target):
    values = np.float32([np.nan, np.inf, -np.inf, 1e20, -1e20, 2.9, -2.9])
    info = np.iinfo(target)
    expected = [0, info.max, info.min, info.max, info.min, 2, max(-2, info.min)]
    result = elementwise(lambda x: T.cast(x, target), "float32", target)(values)
    assert result.tolist() == expected


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_narrowing_is_torchs(name):
    values = torch.cat(
        [torch.randn(4000) * 100, torch.tensor([np.inf, -np.inf, np.nan, 0.0, -0.0])]
    )
    kind = getattr(torch, name)
    result = elementwise(lambda x: T.cast(x, name), "float32", name)(values)
    bits = torch.uint16 if kind.itemsize == 2 else torch.uint8
    nan = values.isnan()
    assert torch.equal(result.view(bits)[~nan], values.to(kind).view(bits)[~nan])
    assert result.float()[nan].isnan().all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_max_and_min_return_the_number(dtype):
    kind = getattr(torch, dtype)
    a = torch.tensor([np.nan, 1.0, np.nan, 2.0], dtype=kind)
    b = torch.tensor([3.0, np.nan, np.nan, 1.0], dtype=kind)
    largest = elementwise(T.max, dtype, dtype, dtype)(a, b)
    smallest = elementwise(T.min, dtype, dtype, dtype)(a, b)
    assert largest.nan_to_num(-1).tolist() == [3, 1, -1, 2]
    assert smallest.nan_to_num(-1).tolist() == [3, 1, -1, 1]


def test_subnormals_are_kept():
    values = np.float32([2.0**-140, 2.0**-149])
    assert np.array_equal(
        elementwise(lambda x: x * 1.0, "float32", "float32")(values).numpy(), values
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_each_operator_of_a_short_float_rounds_once(dtype):
    kind = getattr(torch, dtype)
    a, b = torch.randn(1000).to(kind), torch.randn(1000).to(kind)
    result = elementwise(lambda x, y: x * y + x, dtype, dtype, dtype)(a, b)
    product = (a.float() * b.float()).to(kind)
    assert torch.equal(result, (product.float() + a.float()).to(kind))


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "erf", "rsqrt", "sigmoid"])
def test_functions_are_rounded_once_from_a_wide_result(name):
    values = torch.rand(1000) * 4 + 0.1
    exact = getattr(torch, name)(values.double())
    result = elementwise(getattr(T, name), "float32", "float32")(values)
    assert torch.equal(result, exact.float())
    half = elementwise(getattr(T, name), "bfloat16", "bfloat16")(values.bfloat16())
    wide = getattr(torch, name)(values.bfloat16().double())
    assert (half.double() - wide).abs().max() <= 2**-8 * wide.abs().max()


def test_copies_move_bits():
    """NaN payloads and negative zeros survive."""

    @T.prim_func
    def program(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            tile = T.alloc_fragment((4,), "float32")
            T.copy(A, tile)
            for i in T.Parallel(4):
                B[i] = tile[i]

    bits = torch.tensor([0x7FC12345, -0x80000000, 0x7F800001, 1], dtype=torch.int32)
    b = interpret(program, bits.view(torch.float32), out_idx=-1)
    assert torch.equal(b.view(torch.int32), bits)


def test_reinterpret_keeps_bits():
    values = np.float32([1.0, -2.5, 0.0])
    result = elementwise(lambda x: T.reinterpret(x, "int32"), "float32", "int32")(values)
    assert np.array_equal(result.numpy(), values.view(np.int32))


@pytest.mark.parametrize("dtype", ["int4", "float4_e2m1fn"])
def test_four_bit_elements_are_packed(dtype):
    @T.prim_func
    def program(A: T.Tensor((8,), dtype), B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(8):
                B[i] = T.cast(A[i], "float32")

    packed = torch.tensor([0x21, 0x43, 0x7F, 0x80 - 256], dtype=torch.int8)
    table = {
        "int4": [1, 2, 3, 4, -1, 7, 0, -8],
        "float4_e2m1fn": [0.5, 1.0, 1.5, 2.0, -6.0, 6.0, 0.0, -0.0],
    }
    assert interpret(program, packed, out_idx=-1).tolist() == table[dtype]


@pytest.mark.parametrize("dtype", ["int4", "float4_e2m1fn"])
def test_four_bit_outputs_are_packed(dtype):
    @T.prim_func
    def program(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), dtype)):
        with T.Kernel(1):
            for i in T.Parallel(8):
                B[i] = T.cast(A[i], dtype)

    b = interpret(program, torch.tensor([1.0, 2, 3, 4, -1, 6, 0, -6]), out_idx=-1)
    bits = {"int4": [0x21, 0x43, 0x6F, 0xA0], "float4_e2m1fn": [0x42, 0x65, 0x7A, 0xF0]}
    assert b.view(torch.uint8).tolist() == bits[dtype]


def test_pairs_of_four_bit_floats():
    @T.prim_func
    def program(A: T.Tensor((3,), "float4_e2m1fnx2"), B: T.Tensor((3,), "float4_e2m1fnx2")):
        with T.Kernel(1):
            tile = T.alloc_shared((3,), "float4_e2m1fnx2")
            for i in T.Parallel(3):
                tile[i] = A[i]
            for i in T.Parallel(3):
                B[i] = tile[2 - i]

    a = torch.tensor([0x21, 0x43, 0x65], dtype=torch.uint8)
    assert interpret(program, a, out_idx=-1).view(torch.uint8).tolist() == [0x65, 0x43, 0x21]
