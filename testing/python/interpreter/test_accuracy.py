"""The accuracy table: measures of distance and bounds."""

import numpy as np
import pytest

from tilelang.interpreter.accuracy import ULP, eps, sum_bound, ulp_bound, ulp_distance
from tilelang.ir import intrin

FUNCTIONS = [record.name for record in intrin.intrinsics() if record.args[:1] == ("float",)]


@pytest.mark.parametrize(
    "dtype, value", [("float32", 2**-23), ("bfloat16", 2**-7), ("float8_e4m3fn", 2**-3)]
)
def test_eps_is_the_step_at_one(dtype, value):
    assert eps(dtype) == value


def test_integers_have_no_rounding():
    assert eps("int32") == 0.0


def test_neighbours_are_one_apart():
    values = np.float32([1.0, -1.0, 0.0, 1e-45, 3e38])
    assert (
        ulp_distance(np.nextafter(values, np.float32(np.inf)), values, "float32").tolist()
        == [1] * 5
    )


def test_both_zeros_are_one_number():
    assert ulp_distance(0.0, -0.0, "float32") == 0


def test_nan_is_near_nan_only():
    distance = ulp_distance([np.nan, np.nan, 1.0], [np.nan, 1.0, np.nan], "float32")
    assert distance.tolist() == [0, np.inf, np.inf]


def test_distance_crosses_zero():
    smallest = np.float32(1e-45)
    assert ulp_distance(smallest, -smallest, "float32") == 2


def test_short_floats_may_miss_by_one_step():
    assert ulp_bound("exp", "bfloat16") == 1.0
    assert ulp_bound("exp", "float32") == 2


def test_exact_functions_are_exact_at_every_width():
    assert ulp_bound("floor", "float16") == 0


def test_unknown_functions_have_no_bound():
    with pytest.raises(KeyError):
        ulp_bound("frobnicate", "float32")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_sums_stay_within_their_bound_in_any_order(dtype):
    rng = np.random.default_rng(1)
    values = rng.standard_normal(300).astype(dtype)
    exact = values.astype(np.float64).sum()
    bound = sum_bound(len(values), np.abs(values.astype(np.float64)).sum(), dtype)
    total = values.dtype.type(0)
    for value in rng.permutation(values):
        total = total + value
    assert abs(float(total) - exact) <= bound


def test_the_table_covers_the_functions_of_the_language():
    ieee = {name for name in FUNCTIONS if name.startswith("ieee_")}
    packed = {f"{name}2" for name in ("add", "sub", "mul", "fma", "max", "min", "abs")}
    others = {"isnan", "isinf", "isfinite", "cast_stochastic", "round_tfloat32"}
    assert set(FUNCTIONS) - ieee - packed - others <= set(ULP)
