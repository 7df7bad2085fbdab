"""The checks against the accuracy table: they accept what it allows and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from tilelang.interpreter.accuracy import ULP
from tilelang.testing.accuracy import assert_accurate, assert_sum_accurate, ulp_error


def test_error_is_measured_in_units_of_the_exact_value():
    exact = np.array([1.0, 2.0, 1.5, -4.0, 1e-45])
    off = exact + np.array([2.0**-23, 2.0**-22, -(2.0**-23), 2.0**-21, 0.0])
    assert ulp_error(off.astype(np.float32), exact, "float32").tolist() == pytest.approx(
        [1, 1, 1, 1, 0.29], abs=0.02
    )


@pytest.mark.parametrize(
    "got, exact", [(np.nan, 1.0), (1.0, np.nan), (3e38, np.inf), (np.inf, 3e38), (np.inf, -np.inf)]
)
def test_special_values_are_infinitely_far_from_others(got, exact):
    assert np.isinf(ulp_error(np.float32(got), exact, "float32"))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39, 0.0])
def test_special_values_match_themselves(value):
    with np.errstate(over="ignore"):
        rounded = np.float64(value).astype(np.float32)
    assert ulp_error(rounded, value, "float32") == 0


def test_table_decides():
    exact = np.array([1.0])
    inside = (exact + ULP["exp"] * 2.0**-23).astype(np.float32)
    assert_accurate("exp", inside, exact, "float32")
    with pytest.raises(
        AssertionError, match=r"exp of float32: element 0 is .* 3.000 ulp off, allowed 2"
    ):
        assert_accurate("exp", (exact + 3 * 2.0**-23).astype(np.float32), exact, "float32")


def test_exact_functions_must_be_correctly_rounded():
    assert_accurate("floor", np.float32([2.0]), [2.0], "float32")
    with pytest.raises(AssertionError, match=r"floor of float32: element 1"):
        assert_accurate("floor", np.float32([2.0, 2.0000002]), [2.0, 2.0], "float32")


def test_unknown_functions_are_errors():
    with pytest.raises(KeyError, match="frobnicate"):
        assert_accurate("frobnicate", np.float32([1.0]), [1.0], "float32")


def test_sums_may_be_off_by_one_rounding_a_term():
    x = np.random.default_rng(0).standard_normal(4096).astype(np.float32)
    exact, size = x.astype(np.float64).sum(), np.abs(x).sum()
    assert_sum_accurate(np.cumsum(x)[-1], exact, terms=4096, magnitude=size, accumulator="float32")
    with pytest.raises(AssertionError, match="sum of 4096 float32: element 0"):
        assert_sum_accurate(
            exact + 0.01 * size, exact, terms=4096, magnitude=size, accumulator="float32"
        )
    with pytest.raises(AssertionError, match="sum of 4"):
        assert_sum_accurate(np.nan, 1.0, terms=4, magnitude=1.0, accumulator="float32")
