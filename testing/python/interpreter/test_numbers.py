"""Conversions of the numeric contract: wrap, saturate, round once."""

import numpy as np
import pytest
import torch

from tilelang.errors import UnsupportedError
from tilelang.interpreter.numbers import cast, dtype_named, from_bits, round_float, to_bits, wrap

TORCH_FLOATS = [
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]


def convert(values, source, target):
    source, target = dtype_named(source), dtype_named(target)
    return cast(np.asarray(values, source.carrier), source, target)


def sample_float32(count=200_000):
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 480, 61440, 65520, 2**-127, 1.5]
    normal = (rng.standard_normal(count) * 200).astype(np.float32)
    return np.concatenate([bits, normal, np.float32(special)])


@pytest.mark.parametrize("name", TORCH_FLOATS)
def test_rounding_overflow_and_infinity_are_torchs(name):
    values = sample_float32()
    with np.errstate(all="ignore"):
        ours = convert(values, "float32", name)
    theirs = torch.from_numpy(values).to(getattr(torch, name)).to(torch.float32).numpy()
    ours = ours.astype(np.float32)
    assert np.array_equal(ours, theirs, equal_nan=True)
    assert np.array_equal(np.signbit(ours[ours == 0]), np.signbit(theirs[theirs == 0]))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_float64_is_rounded_once(name):
    """Going through float32 first would turn a value just above a tie into the tie."""
    dtype = dtype_named(name)
    bits = np.arange(2**dtype.bits, dtype=np.uint32).astype(f"u{dtype.itemsize}")
    with np.errstate(invalid="ignore"):
        grid = np.unique(from_bits(bits, dtype).astype(np.float64))
    grid = grid[(grid > 1e-3) & (grid < 400)]
    ties = (grid[1:] + grid[:-1]) / 2
    above = np.nextafter(ties, np.inf)
    assert np.array_equal(convert(above, "float64", name).astype(np.float64), grid[1:])
    assert np.array_equal(
        convert(np.nextafter(ties, -np.inf), "float64", name).astype(np.float64), grid[:-1]
    )


@pytest.mark.parametrize(
    "value, rounded", [(2**62 + 2**54, 2**62), (2**62 + 2**54 + 1, 2**62 + 2**55)]
)
def test_large_integers_are_rounded_once(value, rounded):
    assert float(convert(value, "int64", "bfloat16")) == rounded


@pytest.mark.parametrize(
    "target, low, high",
    [
        ("int8", -128, 127),
        ("uint8", 0, 255),
        ("int4", -8, 7),
        ("uint4", 0, 15),
        ("int32", -(2**31), 2**31 - 1),
        ("uint32", 0, 2**32 - 1),
        ("int64", -(2**63), 2**63 - 1),
        ("uint64", 0, 2**64 - 1),
    ],
)
def test_float_to_integer_saturates_and_nan_is_zero(target, low, high):
    values = [np.inf, -np.inf, np.nan, 1e30, -1e30, 2.9, -0.9]
    assert convert(values, "float32", target).tolist() == [high, low, 0, high, low, 2, 0]


def test_float_to_integer_truncates_toward_zero():
    assert convert([2.9, -2.9, 0.99, -0.99], "float32", "int32").tolist() == [2, -2, 0, 0]


@pytest.mark.parametrize(
    "value, target, wrapped",
    [
        (200, "int8", -56),
        (-1, "uint16", 65535),
        (9, "int4", -7),
        (-1, "uint4", 15),
        (2**31, "int32", -(2**31)),
        (2**33 + 5, "uint32", 5),
    ],
)
def test_integer_conversions_wrap(value, target, wrapped):
    assert convert(value, "int64", target) == wrapped


def test_everything_but_zero_is_true():
    assert convert([0.0, -0.0, 0.5, np.nan], "float32", "bool").tolist() == [False] * 2 + [True] * 2


def test_true_is_one():
    assert convert(True, "bool", "float32") == 1.0


@pytest.mark.parametrize("value, saturated", [(100.0, 6.0), (-100.0, -6.0), (2.4, 2.0)])
def test_fp4_saturates(value, saturated):
    assert float(convert(value, "float32", "float4_e2m1fn")) == saturated


def test_scalars_stay_scalars():
    result = convert(3.7, "float32", "int8")
    assert np.ndim(result) == 0 and result == 3


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e5m2", "int32", "bool", "uint4"])
def test_bits_round_trip(name):
    dtype = dtype_named(name)
    values = convert([0, 1, 1, 0], "int64", name)
    assert np.array_equal(from_bits(to_bits(values, dtype), dtype), values)


def test_nan_payload_survives_a_copy():
    payload = np.uint16(0x7FC1)
    dtype = dtype_named("bfloat16")
    assert to_bits(cast(from_bits(payload, dtype), dtype, dtype), dtype) == payload


def test_wrap_keeps_sub_byte_integers_in_range():
    values = np.arange(-20, 20, dtype=np.int8)
    assert set(wrap(values, dtype_named("int4")).tolist()) == set(range(-8, 8))


def test_vectors_know_their_element():
    dtype = dtype_named("bfloat16x4")
    assert (dtype.scalar.name, dtype.lanes, dtype.vector_shape) == ("bfloat16", 4, (4,))


@pytest.mark.parametrize("name", ["float7_e9m9", "complex64", ""])
def test_unknown_dtypes_are_refused(name):
    with pytest.raises((UnsupportedError, AttributeError)):
        dtype_named(name)


def test_rounding_in_float16_is_to_even():
    assert float(round_float(np.float64(1 + 2**-11), dtype_named("float16"))) == 1.0
    assert float(round_float(np.float64(1 + 3 * 2**-11), dtype_named("float16"))) == 1 + 2**-9
