"""Conversions of the device headers: every pair of types, against the interpreter and torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from host_headers import CPP_TYPES, agree, build, call, requires_host_compiler, samples

from tilelang.interpreter.numbers import cast, dtype_named, from_bits, to_bits

# NaN and overflow are among the samples.
pytestmark = [requires_host_compiler, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

_SOURCE = """
#include <tl/convert.h>
#include <tl/minifloat.h>
#include <tl/types.h>
#define CAST(N, FROM, TO) extern "C" void N(const FROM* x, TO* y, long n) { \\
  for (long i = 0; i < n; ++i) y[i] = tl::cast<TO>(x[i]); }
"""

_WITHOUT_NAN = ("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    pairs = [
        f"CAST(cast_{a}_{b}, {CPP_TYPES[a]}, {CPP_TYPES[b]})" for a in CPP_TYPES for b in CPP_TYPES
    ]
    return build(tmp_path_factory.mktemp("headers"), _SOURCE + "\n".join(pairs))


def _in_memory(values, kind):
    """As the headers hold them: a byte at least, an element of four bits in the low ones."""
    return np.ascontiguousarray(to_bits(values, kind))


@pytest.mark.parametrize("target", CPP_TYPES)
@pytest.mark.parametrize("source", CPP_TYPES)
def test_conversion(library, source, target):
    from_kind, to_kind = dtype_named(source), dtype_named(target)
    values = samples(source)
    codes = _in_memory(values, from_kind)
    result = np.zeros(codes.size, f"u{to_kind.itemsize}")
    call(library, f"cast_{source}_{target}", codes, result)
    with np.errstate(all="ignore"):
        expected = cast(values, from_kind, to_kind)
    actual = from_bits(result, to_kind)
    right = agree(actual, expected, to_kind)
    if target in _WITHOUT_NAN:  # NaN becomes a zero of either sign
        unordered = np.isnan(np.asarray(values, np.float64)) & (from_kind.kind == "f")
        right |= unordered & (np.asarray(actual, np.float64) == 0)
    wrong = np.flatnonzero(~right)
    assert not wrong.size, [(values[i], actual[i], np.asarray(expected)[i]) for i in wrong[:5]]


@pytest.mark.parametrize(
    "target", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"]
)
def test_rounding_of_float32_agrees_with_torch(library, target):
    values = samples("float32")
    if target == "float8_e4m3fn" and tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
        values = values[np.abs(values) < 448]  # before, what is too large became NaN
    result = np.zeros(values.size, f"u{dtype_named(target).itemsize}")
    call(library, f"cast_float32_{target}", values, result)
    kind = getattr(torch, target)
    expected = torch.from_numpy(values).to(kind).float().numpy()
    actual = from_bits(result, dtype_named(target)).astype(np.float32)
    np.testing.assert_array_equal(actual, expected)
