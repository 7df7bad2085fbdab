"""Conversions on the CPU: every code of every short float, dense float32, limits of integers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from elementwise import build_elementwise, float32_samples, run
from tvm.ir import prim

from tilelang.cpu.intrinsics.math.minifloat import FORMATS
from tilelang.cpu.intrinsics.math.value import prim_type
from tilelang.cpu.transform.numerics import legalize_numerics
from tilelang.transform.numerics.dtypes import NARROW_FLOATS

# numpy warns about the very values that these tests are made of
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

TORCH = [
    "bfloat16",
    "float16",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]
ML_ONLY = ["float8_e3m4", "float8_e4m3b11fnuz", "float6_e2m3fn", "float6_e3m2fn"]
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def conversion(source, target, **options):
    function = build_elementwise(
        lambda x: prim.Cast(prim_type(target), x),
        [source],
        target,
        passes=legalize_numerics,
        **options,
    )
    return lambda values: run(function, target, values)


def codes(dtype):
    wide = dtype in ("bfloat16", "float16")
    values = np.arange(1 << 16, dtype=np.uint16) if wide else np.arange(256, dtype=np.uint8)
    if dtype.startswith("float6"):
        values = values[:64]
    return values.view(np.float16) if dtype == "float16" else values


def same_floats(got, want):
    return (got == want) | (np.isnan(got) & np.isnan(want))


def as_torch(values, dtype):
    return torch.from_numpy(np.ascontiguousarray(values)).view(getattr(torch, dtype))


def bits_of(tensor):
    return tensor.view(torch.uint8 if tensor.itemsize == 1 else torch.uint16).numpy()


def tie_samples(dtype):
    """Every value of the format, the midpoints between neighbours, and both sides of those."""
    exact = conversion(dtype, "float32")(codes(dtype))
    finite = np.unique(exact[np.isfinite(exact)]).astype(np.float64)
    middle = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    top = np.float32(finite[-1] * 1.5)
    points = np.concatenate(
        [finite.astype(np.float32), middle, [top, finite[-1] * 1.03125]]
    ).astype(np.float32)
    both = np.concatenate(
        [
            points,
            np.nextafter(points, np.float32(np.inf)),
            np.nextafter(points, np.float32(-np.inf)),
        ]
    )
    return np.concatenate([both, -both, float32_samples(1 << 16)])


@pytest.mark.parametrize("vector", [True, False])
@pytest.mark.parametrize("dtype", TORCH)
def test_decoding_equals_torch(dtype, vector):
    values = codes(dtype)
    got = conversion(dtype, "float32", vector=vector)(values)
    want = as_torch(values, dtype).float().numpy()
    assert same_floats(got, want).all()
    assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()


@pytest.mark.parametrize("dtype", TORCH)
def test_encoding_equals_torch(dtype):
    values = tie_samples(dtype)
    got = conversion("float32", dtype)(values)
    want = bits_of(torch.from_numpy(values).to(getattr(torch, dtype)))
    number = ~np.isnan(values)
    assert (got.view(want.dtype) == want)[number].all()
    back = conversion(dtype, "float32")(got)
    if dtype != "float8_e8m0fnu":
        assert np.isnan(back[~number]).all()


@pytest.mark.parametrize("dtype", ML_ONLY)
def test_formats_that_torch_lacks_equal_ml_dtypes(dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype))
    decoded = conversion(dtype, "float32")(codes(dtype))
    assert same_floats(decoded, codes(dtype).view(kind).astype(np.float32)).all()
    values = tie_samples(dtype)
    values = values[~np.isnan(values)]
    assert (conversion("float32", dtype)(values) == values.astype(kind).view(np.uint8)).all()


def test_half_without_hardware_conversion():
    values = tie_samples("float16")
    want = values.astype(np.float16)
    for mcpu in ("x86-64", "x86-64-v3"):
        got = conversion("float32", "float16", mcpu=mcpu)(values)
        assert same_floats(got, want).all()
        assert same_floats(
            conversion("float16", "float32", mcpu=mcpu)(codes("float16")), codes("float16")
        ).all()


def test_half_as_integers():
    def soft(func):
        return legalize_numerics(func, native_half=False)

    cast = prim_type("float16")
    encode = build_elementwise(lambda x: prim.Cast(cast, x), ["float32"], "float16", passes=soft)
    values = tie_samples("float16")
    got = run(encode, "uint16", values).view(np.float16)
    assert same_floats(got, values.astype(np.float16)).all()
    decode = build_elementwise(
        lambda x: prim.Cast(prim_type("float32"), x), ["float16"], "float32", passes=soft
    )
    assert same_floats(
        run(decode, "float32", codes("float16").view(np.uint16)), codes("float16")
    ).all()


def rounded_once(values, dtype):
    """Rational comparison against every value of the format; ties to the even code."""
    grid = conversion(dtype, "float32")(codes(dtype)).astype(np.float64)
    order = np.argsort(grid[: len(grid) // 2], kind="stable")
    grid = grid[: len(grid) // 2][order]
    grid = grid[np.isfinite(grid)]
    above = np.searchsorted(grid, values)
    low, high = grid[above - 1], grid[above]
    half = (low + high) / 2
    even = (above - 1) % 2 == 0
    return np.where((values < half) | ((values == half) & even), low, high)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e5m2"])
def test_float64_is_rounded_once(dtype):
    grid = conversion(dtype, "float32")(codes(dtype))[: 1 << 15].astype(np.float64)
    grid = np.sort(grid[np.isfinite(grid) & (grid > 0)])
    half = (grid[1:] + grid[:-1]) / 2
    values = np.concatenate([half * (1 + 2.0**-40), half * (1 - 2.0**-40), half])
    encoded = conversion("float64", dtype)(values)
    got = conversion(dtype, "float32")(encoded).astype(np.float64)
    assert (got == rounded_once(values, dtype)).all()


@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64"])
def test_integers_become_bfloat16_rounded_once(source):
    info = np.iinfo(source)
    ties = [(1 << k) + (1 << (k - 8)) + d for k in range(9, info.bits - 2) for d in (-1, 0, 1)]
    values = np.array([v for v in ties if v <= info.max] + [info.max, 0, 255, 257], dtype=source)
    if info.min < 0:
        values = np.concatenate([values, -values, [info.min]]).astype(source)
    got = conversion("bfloat16", "float32")(conversion(source, "bfloat16")(values)).astype(
        np.float64
    )
    for number, result in zip(values.tolist(), got.tolist(), strict=True):
        unit = 1 << max(0, abs(number).bit_length() - 8)
        quotient, rest = divmod(abs(number), unit)
        quotient += 2 * rest > unit or (2 * rest == unit and quotient % 2 == 1)
        assert abs(result) == quotient * unit


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16"])
def test_float_to_integer_truncates_and_saturates(source, target):
    info = np.iinfo(target)
    kind = np.dtype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
    edges = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        0.999,
        -0.999,
        1.5,
        -1.5,
        2.5,
        np.inf,
        -np.inf,
        np.nan,
        1e30,
        -1e30,
    ]
    for bound in (float(info.min), float(info.max), 127.0, 255.0, 2.0**31, 2.0**63):
        edges += [bound, bound + 1, bound - 1, bound * 1.01, -bound]
    with np.errstate(over="ignore"):
        values = np.array(edges, np.float64).astype(kind)
    around = np.concatenate(
        [np.nextafter(values, kind.type(np.inf)), np.nextafter(values, kind.type(-np.inf))]
    )
    values = np.concatenate([values, around])
    raw = values.view(np.uint16) if source == "bfloat16" else values
    got = conversion(source, target)(raw)
    exact = [float(v) for v in values]
    want = [0 if np.isnan(v) else int(max(min(v, 2.0**70), -(2.0**70))) for v in exact]
    assert got.tolist() == [min(max(v, info.min), info.max) for v in want]


@pytest.mark.parametrize("target", ["float32", "float64"])
@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64"])
def test_integer_to_float_rounds_to_nearest_even(source, target):
    info = np.iinfo(source)
    rng = np.random.default_rng(3)
    values = rng.integers(info.min, info.max, 500, dtype=source, endpoint=True)
    ties = [
        2**24 + 1,
        2**24 + 3,
        2**25 + 2,
        2**53 + 1,
        2**53 + 3,
        2**60 + 2**36,
        2**60 + 2**36 + 1,
        info.max,
        info.min,
    ]
    values = np.concatenate([values, np.array([t for t in ties if t <= info.max], dtype=source)])
    assert (conversion(source, target)(values) == values.astype(target)).all()


@pytest.mark.parametrize("source", ["int8", "uint32", "int64"])
@pytest.mark.parametrize("target", INTEGERS)
def test_integer_to_integer_wraps(source, target):
    info = np.iinfo(source)
    rng = np.random.default_rng(4)
    values = rng.integers(info.min, info.max, 200, dtype=source, endpoint=True)
    assert (conversion(source, target)(values) == values.astype(target)).all()


def test_float_to_bool_is_unequal_zero():
    values = np.array([0.0, -0.0, 1e-45, np.nan, np.inf, -3.0], np.float32)
    assert conversion("float32", "bool")(values).tolist() == [False, False, True, True, True, True]
    halves = np.array([0.0, -0.0, 6e-8, np.nan], np.float16)
    assert conversion("float16", "bool")(halves).tolist() == [False, False, True, True]


@pytest.mark.parametrize("source", sorted(NARROW_FLOATS - {"float4_e2m1fn", "float8_e4m3"}))
def test_copies_move_bits(source):
    values = codes(source)
    function = build_elementwise(lambda x: x, [source], source, passes=legalize_numerics)
    assert (run(function, source, values).view(values.dtype) == values)[~np.isnan(values)].all()
    raw = values.view(np.uint16) if source == "float16" else values
    assert (run(function, source, values).view(raw.dtype) == raw).all()


def test_every_format_is_exercised_here():
    assert set(TORCH) | set(ML_ONLY) | {"float8_e4m3", "float4_e2m1fn"} == set(FORMATS) | {
        "float8_e8m0fnu"
    }


@pytest.mark.parametrize(
    "pair", [("float8_e5m2", "bfloat16"), ("bfloat16", "float8_e4m3fn"), ("float16", "float8_e5m2")]
)
def test_between_short_floats(pair):
    source, target = pair
    values = codes(source)
    got = conversion(source, target)(values)
    want = bits_of(as_torch(values, source).to(getattr(torch, target)))
    number = ~torch.isnan(as_torch(values, source).float()).numpy()
    assert (got.view(want.dtype) == want)[number].all()
