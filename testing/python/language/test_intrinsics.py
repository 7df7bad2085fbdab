"""The table of scalar intrinsics: records, dtype rules, argument checks, references."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tvm import ir
from tvm import tirx as tir

import tilelang.language as T
from tilelang.errors import TraceError, TraceTypeError, UnsupportedError
from tilelang.ir import intrin

FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn")
UNARY = [
    "exp",
    "exp2",
    "exp10",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "sqrt",
    "rsqrt",
    "erf",
    "sigmoid",
    "floor",
    "ceil",
    "trunc",
    "nearbyint",
    "__exp",
    "__exp10",
    "__log",
    "__log2",
    "__log10",
    "__sin",
    "__cos",
    "__tan",
    "fast_rcp",
]


def var(kind: str, name: str = "x") -> ir.Var:
    return tir.Var(name, kind)


def value_of(name: str, *values: object, kinds: tuple[str, ...] = ()) -> np.ndarray:
    """Run the reference of an intrinsic on numbers, as arrays."""
    reference = intrin.get(name).reference
    arrays = [np.asarray(v, np.float64) if isinstance(v, float) else np.asarray(v) for v in values]
    return reference(kinds or ("float64",) * (len(values) + 1), *arrays)


def test_records_describe_their_ops():
    for record in intrin.intrinsics():
        assert ir.Op.get(record.op_name).get_attr("TCallEffectKind") == record.effect, record.name
        assert record.backends <= intrin.ALL and record.backends, record.name
        assert not (record.asynchronous and record.reference), record.name
        assert intrin.find(record.op).op_name == record.op_name


def test_every_value_of_a_synchronous_intrinsic_has_a_meaning():
    without = {
        record.name
        for record in intrin.intrinsics()
        if record.reference is None and not record.asynchronous and record.result != "void"
    }
    known = {"isnullptr", "address_of", "access_ptr", "call_extern", "call_pure_extern"}
    votes = {"syncthreads_count", "syncthreads_and", "syncthreads_or"}
    assert without == known | votes


def test_find():
    call = T.exp(var("float32"))
    assert intrin.find(call) is intrin.find(call.op) is intrin.find("tirx.exp") is intrin.get("exp")
    assert intrin.find("tirx.nothing") is None and intrin.find(3) is None
    with pytest.raises(KeyError):
        intrin.get("nothing")


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_keep_the_dtype(name):
    for kind in FLOATS:
        call = getattr(T, name)(var(kind))
        assert call.ty == kind and call.span.source_name.name == __file__


@pytest.mark.parametrize(
    "name", [n for n in UNARY if n not in ("floor", "ceil", "trunc", "nearbyint")]
)
def test_unary_functions_refuse_integers(name):
    with pytest.raises(TraceTypeError, match="requires a floating-point argument, found int32"):
        getattr(T, name)(var("int32"))


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "nearbyint", "round"])
def test_rounding_leaves_integers_alone(name):
    x = var("int32")
    assert getattr(T, name)(x).same_as(x)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("exp", 1.0, math.e),
        ("exp2", 10.0, 1024.0),
        ("exp10", -2.0, 0.01),
        ("log1p", 1e-20, 1e-20),
        ("log", 0.0, -math.inf),
        ("log2", -1.0, math.nan),
        ("rsqrt", 16.0, 0.25),
        ("erf", 0.5, math.erf(0.5)),
        ("sigmoid", -1000.0, 0.0),
        ("sigmoid", 2.0, 1 / (1 + math.exp(-2))),
        ("nearbyint", 2.5, 2.0),
        ("round", 2.5, 3.0),
        ("round", -0.4, -0.0),
        ("round", 0.49999999999999994, 0.0),
        ("fast_rcp", 4.0, 0.25),
        ("fabs", -0.0, 0.0),
        ("acosh", 0.5, math.nan),
    ],
)
def test_references_of_unary_functions(name, x, expected):
    np.testing.assert_allclose(value_of(name, x), expected, rtol=1e-15)


def test_references_of_several_arguments():
    assert value_of("pow", 2.0, 0.5) == math.sqrt(2)
    assert value_of("fmod", -7.0, 3.0) == -1.0
    assert value_of("copysign", 3.0, -0.0) == -3.0
    assert math.isclose(value_of("hypot", 3e200, 4e200), 5e200, rel_tol=1e-15)
    assert value_of("ldexp", 1.5, 4) == 24.0
    assert value_of("nextafter", 1.0, 2.0, kinds=("float16",) * 3) == np.float16(1.001)
    assert value_of("q_multiply_shift", 3, 1 << 30, 31, 0) == 2
    assert value_of("fma2", 2.0, 3.0, 4.0) == 10.0


@pytest.mark.parametrize(
    ("name", "kind", "x", "expected"),
    [
        ("popcount", "int32", -1, 32),
        ("popcount", "int8", -1, 8),
        ("popcount", "uint64", np.uint64(2**64 - 1), 64),
        ("clz", "int32", 1, 31),
        ("clz", "uint16", 0, 16),
        ("clz", "int64", -1, 0),
        ("__ffs", "int32", 0, 0),
        ("__ffs", "uint64", np.uint64(1 << 40), 41),
    ],
)
def test_references_of_bit_counts(name, kind, x, expected):
    assert value_of(name, x, kinds=("int32", kind)) == expected


def test_find_nth_set_bit():
    kinds = ("int32", "uint32", "int32", "int32")
    mask = 0b1011_0100
    assert [int(value_of("__fns", mask, 0, n, kinds=kinds)) for n in (1, 2, 3, 4, 5)] == [
        2,
        4,
        5,
        7,
        -1,
    ]
    assert value_of("__fns", mask, 6, -1, kinds=kinds) == 5
    assert value_of("__fns", mask, 4, 0, kinds=kinds) == 4
    assert value_of("__fns", mask, 3, 0, kinds=kinds) == -1


def test_tfloat32_rounds_ties_away_from_zero():
    step = 2.0**-10
    for x, expected in (
        (1 + step / 2, 1 + step),
        (1 + step / 2 - 2**-23, 1.0),
        (-1 - step / 2, -1 - step),
    ):
        assert value_of("round_tfloat32", x) == expected
    assert math.isnan(value_of("round_tfloat32", math.nan))
    assert value_of("round_tfloat32", -math.inf) == -math.inf


def test_stochastic_rounding():
    kinds = ("bfloat16", "float32", "uint32")
    x = 1 + 2.0**-8  # half a step of bfloat16
    assert value_of("cast_stochastic", x, 0, kinds=kinds) == 1.0
    assert value_of("cast_stochastic", x, 0x7FFF, kinds=kinds) == 1.0
    assert value_of("cast_stochastic", x, 0x8000, kinds=kinds) == 1 + 2.0**-7
    assert (
        value_of("cast_stochastic", 1e6, 0, kinds=("float8_e4m3fn", "float32", "uint32")) == 448.0
    )


# --- exact rounding -----------------------------------------------------------------------------

_RANDOM = np.random.default_rng(7)
_SAMPLES = _RANDOM.standard_normal((64, 3)) * 10.0 ** _RANDOM.integers(-6, 7, (64, 3))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "fdiv"])
def test_nearest_agrees_with_numpy(name):
    x, y = _SAMPLES[:, :2].astype(np.float32).T
    plain = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "fdiv": np.divide}[name](x, y)
    found = value_of(f"ieee_{name}_rn", *map(np.float64, (x, y)), kinds=("float32",) * 3)
    np.testing.assert_array_equal(found.astype(np.float32), plain)


@pytest.mark.parametrize("name", ["add", "mul", "fdiv", "fmaf", "fsqrt", "frcp"])
def test_directed_modes_enclose_the_exact_value(name):
    arity = {"fmaf": 3, "fsqrt": 1, "frcp": 1}.get(name, 2)
    operands = np.abs(_SAMPLES[:, :arity].astype(np.float32)).astype(np.float64).T
    kinds = ("float32",) * (arity + 1)
    down, near, up = (
        value_of(f"ieee_{name}_{mode}", *operands, kinds=kinds) for mode in ("rd", "rn", "ru")
    )
    zero = value_of(f"ieee_{name}_rz", *operands, kinds=kinds)
    assert np.all((down <= near) & (near <= up)) and np.array_equal(zero, down)
    ulps = np.spacing(down.astype(np.float32))
    assert np.all((up - down == 0) | (up - down == ulps)) and np.any(up > down)


def test_special_values_of_exact_arithmetic():
    f32 = ("float32",) * 3
    assert math.copysign(1, value_of("ieee_add_rd", 1.0, -1.0, kinds=f32)) == -1
    assert math.copysign(1, value_of("ieee_add_rn", 1.0, -1.0, kinds=f32)) == 1
    assert value_of("ieee_mul_rz", 3e38, 3e38, kinds=f32) == np.finfo(np.float32).max
    assert value_of("ieee_mul_rn", 3e38, 3e38, kinds=f32) == math.inf
    assert value_of("ieee_frcp_rn", 0.0, kinds=f32[:2]) == math.inf
    assert math.isnan(value_of("ieee_fsqrt_ru", -1.0, kinds=f32[:2]))
    assert value_of("ieee_mul_ru", 1e-45, 0.1, kinds=f32) == np.float32(1e-45)


def test_ieee_functions_choose_an_op_per_mode():
    x = var("float32")
    assert T.ieee_add(x, 1.0).op.name == "tl.ieee_add_rn"
    assert T.ieee_fmaf(x, x, x, "rd").op.name == "tl.ieee_fmaf_rd"
    assert T.ieee_frsqrt(x).ty == "float32"
    for name in ("add", "sub", "mul", "fdiv"):
        assert getattr(T, f"ieee_{name}")(x, 2, rounding_mode="ru").op.name == f"tl.ieee_{name}_ru"
    for name in ("frcp", "fsqrt"):
        with pytest.raises(
            TraceError, match="unknown rounding mode 'up'; expected one of rn, rz, ru, rd"
        ):
            getattr(T, f"ieee_{name}")(x, "up")


# --- functions that are more than one call --------------------------------------------------------


def test_round_modes():
    x = var("float32")
    assert T.round(x).op.name == "tirx.nearbyint"
    assert T.round(x, "ties-away-from-zero").op.name == "tirx.round"
    with pytest.raises(TraceError, match="unknown rounding mode"):
        T.round(x, "up")


def test_abs():
    assert T.abs(var("float16")).op.name == "tirx.fabs"
    assert repr(T.abs(var("int32"))) == "T.max(x, 0 - x)"
    unsigned = var("uint8")
    assert T.abs(unsigned).same_as(unsigned)


def test_pow():
    assert T.pow(var("float32"), 2).op.name == "tirx.pow"
    assert repr(T.pow(var("int32"), 3)) == "x * (x * x)"
    assert T.pow(var("int8"), 3).ty == "int8" and T.pow(var("int32"), 0).value == 1
    with pytest.raises(TraceTypeError, match="constant exponent"):
        T.pow(var("int32"), var("int32", "n"))


def test_classification():
    assert repr(T.isinf(var("float32"))) == 'T.fabs(x) == T.float32("inf")'
    assert repr(T.isfinite(var("float16"))) == 'T.fabs(x) < T.float16("inf")'
    assert repr(T.isfinite(var("float8_e4m3fn"))) == "not T.isnan(x)"
    assert repr(T.isinf(var("float8_e4m3fn"))) == "T.bool(False)"
    assert (
        repr(T.isnan(var("int32"))) == "T.bool(False)"
        and repr(T.isfinite(var("int8"))) == "T.bool(True)"
    )


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("int8", -128, 127),
        ("uint64", 0, 2**64 - 1),
        ("bool", 0, 1),
        ("float16", -65504.0, 65504.0),
        ("bfloat16", -3.3895313892515355e38, 3.3895313892515355e38),
        ("float8_e4m3fn", -448.0, 448.0),
        ("float4_e2m1fn", -6.0, 6.0),
        ("float8_e8m0fnu", 2.0**-127, 2.0**127),
    ],
)
def test_extreme_values(kind, low, high):
    assert T.min_value(kind).value == low and T.max_value(kind).value == high


def test_infinity():
    assert T.infinity("bfloat16").value == math.inf
    for kind in ("int32", "float8_e4m3fn"):
        with pytest.raises(TraceTypeError, match=f"{kind} has no infinity; use T.max_value"):
            T.infinity(kind)


def test_packed_pairs():
    x = var("float16x2")
    assert T.fma2(x, x, x).ty == "float16x2" and T.abs2(var("bfloat16x2")).op.name == "tl.abs2"
    for kind in ("float32", "float32x4", "int8x2"):
        with pytest.raises(TraceTypeError, match=f"requires pairs .* found {kind}"):
            T.add2(var(kind), var(kind))


def test_argument_counts_are_checked():
    with pytest.raises(TraceTypeError, match="T.exp takes 1 arguments, found 2"):
        intrin.get("exp")(var("float32"), 1.0)
    with pytest.raises(TraceTypeError, match="T.sync_threads takes 0 to 2 arguments"):
        intrin.get("sync_threads")(1, 2, 3)


def test_refusal_names_the_backends():
    call = T.ieee_add(var("float32"), 1.0, "ru")
    with pytest.raises(UnsupportedError, match="'cpu'; it is available on: cuda, cutedsl"):
        intrin.check_backend(call, "cpu")
    intrin.check_backend(call, "cuda")
    intrin.check_backend(T.exp(var("float32")), "webgpu")
