"""Binding of scalar and pointer arguments: the words a kernel sees."""

import ctypes
import math
import struct

import ml_dtypes
import numpy as np
import pytest
import torch
from launch_helpers import bind, scalar

from tilelang.engine.launch_plan import Param


def slot(dtype, value):
    return bind(scalar("x", dtype), args=[value]).kernels[0].slots[0]


def word(value):
    return value & 0xFFFF_FFFF_FFFF_FFFF


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_signed_integers_are_sign_extended(bits):
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    for value in (low, -1, 0, high):
        assert slot(f"int{bits}", value) == word(value)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_unsigned_integers_are_zero_extended(bits):
    for value in (0, 1, 2**bits - 1):
        assert slot(f"uint{bits}", value) == value


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
def test_integers_out_of_range(dtype):
    info = np.iinfo(dtype)
    for value in (int(info.min) - 1, int(info.max) + 1, 2**100):
        with pytest.raises(ValueError, match=f"'x'.*does not fit {dtype}"):
            slot(dtype, value)


def test_booleans():
    assert [slot("bool", v) for v in (True, False, 1, 0, 7)] == [1, 0, 1, 0, 1]
    assert slot("int32", True) == 1
    assert slot("bool", np.bool_(True)) == 1


@pytest.mark.parametrize("value", [1.0, None, "1", torch.ones(1), [1]])
@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_wrong_kind_for_an_integer(dtype, value):
    with pytest.raises(TypeError, match=rf"argument 'x' \(position 0\): expected {dtype}, got"):
        slot(dtype, value)


@pytest.mark.parametrize("value", [None, "1.0", torch.ones(1), object(), 2**200])
def test_wrong_kind_for_a_float(value):
    with pytest.raises(TypeError, match="'x'.*expected float32, got"):
        slot("float32", value)


def test_float32_and_float64_bits():
    for value in (0.0, -0.0, 1.5, -math.pi, math.inf, 1e-300):
        assert slot("float64", value) == struct.unpack("<Q", struct.pack("<d", value))[0]
        assert slot("float32", value) == int(np.float64(value).astype(np.float32).view(np.uint32))
    assert slot("float64", 3) == struct.unpack("<Q", struct.pack("<d", 3.0))[0]
    assert slot("float32", 2**63) == int(np.float32(2**63).view(np.uint32))


@pytest.mark.parametrize("value", [np.float16(1.5), np.float32(1.5), ml_dtypes.bfloat16(1.5)])
def test_numpy_scalars(value):
    assert slot("float32", value) == int(np.float32(1.5).view(np.uint32))


NARROW = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e3m4": ml_dtypes.float8_e3m4,
    "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}


def as_bits(array):
    return array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)


@pytest.mark.parametrize("name", NARROW)
def test_every_narrow_value_is_exact(name):
    size = np.dtype(NARROW[name]).itemsize
    codes = np.arange(2 ** (8 * size), dtype=f"uint{8 * size}")[:: 1 if size == 1 else 97]
    values = codes.view(NARROW[name]).astype(np.float64)
    for code, value in zip(codes, values, strict=True):
        if not math.isnan(value):
            assert slot(name, float(value)) == code


@pytest.mark.parametrize("name", NARROW)
def test_narrow_floats_round_to_nearest_even(name):
    codes = np.arange(0, 100, dtype=f"uint{8 * np.dtype(NARROW[name]).itemsize}") + 3
    values = codes.view(NARROW[name]).astype(np.float64)
    middles = (values[:-1] + values[1:]) / 2
    for low, middle in zip(codes[:-1], middles, strict=True):
        even = int(low) + int(low) % 2
        assert slot(name, float(middle)) == even
        assert slot(name, float(np.nextafter(middle, 0))) == low
        assert slot(name, float(np.nextafter(middle, 1e30))) == low + 1


@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"]
)
@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e30, -1e30, 449.0, 465.0, 70000.0])
def test_overflow_and_infinity_as_torch(name, value):
    dtype = getattr(torch, name)
    expected = torch.tensor(value, dtype=torch.float64).to(dtype).float().item()
    raw = np.array(slot(name, value), f"uint{8 * dtype.itemsize}").view(NARROW[name])
    got = float(raw)
    assert got == expected or (math.isnan(got) and math.isnan(expected))


@pytest.mark.parametrize("name", NARROW)
def test_nan_stays_nan(name):
    bits = np.array(slot(name, math.nan), f"uint{8 * np.dtype(NARROW[name]).itemsize}")
    assert math.isnan(float(bits.view(NARROW[name])))


@pytest.mark.parametrize("value", [1.0, 2.0, 0.5, 1.4, 1.6, 3.0, 2.0**-127, 2.0**127])
def test_power_of_two_scale_as_torch(value):
    expected = torch.tensor([value]).to(torch.float8_e8m0fnu).view(torch.uint8).item()
    assert slot("float8_e8m0fnu", value) == expected


def test_pointers():
    value = torch.ones(4)
    for given in (value, value.data_ptr(), ctypes.c_void_p(value.data_ptr())):
        bound = bind(Param("p", "pointer", "handle"), args=[given])
        assert bound.kernels[0].slots == (value.data_ptr(),)
    assert bind(Param("p", "pointer", "handle"), args=[None]).kernels[0].slots == (0,)


@pytest.mark.parametrize("value", [1.5, "x", object(), 2**70])
def test_wrong_kind_for_a_pointer(value):
    with pytest.raises(TypeError, match="'p'.*expected pointer, got"):
        bind(Param("p", "pointer", "handle"), args=[value])
