"""Operators of the numeric contract."""

import numpy as np
import pytest

from tilelang.interpreter.numbers import dtype_named
from tilelang.interpreter.operators import operator


def apply(name, dtype, a, b):
    kind = dtype_named(dtype)
    with np.errstate(all="ignore"):
        return operator(name, kind)(
            np.asarray(a, kind.carrier)[()], np.asarray(b, kind.carrier)[()]
        )


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_signed_integers_wrap_at_every_width(bits):
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    assert apply("add", f"int{bits}", high, 1) == low
    assert apply("sub", f"int{bits}", low, 1) == high
    assert apply("mul", f"int{bits}", low, -1) == low


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_unsigned_integers_wrap_at_every_width(bits):
    assert apply("sub", f"uint{bits}", 0, 1) == 2**bits - 1
    assert apply("add", f"uint{bits}", 2**bits - 1, 2) == 1


def test_int4_wraps():
    assert apply("add", "int4", 7, 1) == -8
    assert apply("mul", "uint4", 5, 5) == 9


@pytest.mark.parametrize("a, b", [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5)])
def test_division_floors_as_in_python(a, b):
    assert apply("floordiv", "int32", a, b) == a // b
    assert apply("floormod", "int32", a, b) == a % b


@pytest.mark.parametrize("a, b", [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5)])
def test_truncating_division_is_cs(a, b):
    quotient = int(a / b)
    assert apply("div", "int32", a, b) == quotient
    assert apply("mod", "int32", a, b) == a - quotient * b


@pytest.mark.parametrize("name", ["floordiv", "floormod", "div", "mod"])
def test_integer_division_by_zero_is_zero(name):
    assert apply(name, "int32", 5, 0) == 0
    assert apply(name, "uint8", 5, 0) == 0


def test_the_lowest_integer_divided_by_minus_one_wraps():
    assert apply("floordiv", "int32", -(2**31), -1) == -(2**31)
    assert apply("floormod", "int32", -(2**31), -1) == 0


@pytest.mark.parametrize("count", [8, 9, 100, -1])
def test_a_shift_by_the_width_or_more_gives_zero_or_the_sign(count):
    assert apply("shl", "int8", 3, count) == 0
    assert apply("shr", "int8", 3, count) == 0
    assert apply("shr", "int8", -3, count) == -1
    assert apply("shl", "int8", -3, count) == 0


def test_an_unsigned_shift_by_the_width_gives_zero():
    assert apply("shr", "uint32", 2**32 - 1, 32) == 0
    assert apply("shl", "uint32", 2**32 - 1, 31) == 2**31


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "float8_e5m2"])
def test_max_and_min_ignore_nan_in_either_order(dtype):
    for name in ("max", "min"):
        assert float(apply(name, dtype, np.nan, 1.5)) == 1.5
        assert float(apply(name, dtype, 1.5, np.nan)) == 1.5
        assert np.isnan(np.float64(apply(name, dtype, np.nan, np.nan)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn"])
def test_short_floats_are_computed_in_float32_and_rounded_once(dtype):
    kind = dtype_named(dtype)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(500).astype(kind.carrier) for _ in range(2))
    for name, function in (("add", np.add), ("mul", np.multiply), ("div", np.divide)):
        with np.errstate(all="ignore"):
            exact = function(a.astype(np.float32), b.astype(np.float32))
        expected = np.clip(exact, -448, 448) if dtype == "float8_e4m3fn" else exact
        assert np.array_equal(
            apply(name, dtype, a, b).astype(np.float32),
            expected.astype(kind.carrier).astype(np.float32),
        )


def test_subnormals_are_kept():
    assert apply("mul", "float32", 2.0**-100, 2.0**-40) == np.float32(2.0**-140)
    assert apply("mul", "float16", 2.0**-14, 0.5) == np.float16(2.0**-15)


def test_float_division_by_zero_is_ieee():
    assert apply("div", "float32", 1.0, 0.0) == np.inf
    assert np.isnan(apply("div", "float32", 0.0, 0.0))


def test_comparisons_with_nan_are_false():
    assert not apply("lt", "float32", np.nan, 1.0)
    assert not apply("eq", "bfloat16", np.nan, np.nan)
    assert apply("ne", "bfloat16", np.nan, np.nan)
