"""Elementary functions on the CPU: every 16-bit argument, dense float32, special values."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
import torch
from elementwise import build_elementwise, float32_samples, run
from tvm import ir

from tilelang.cpu.intrinsics.math.value import prim_type
from tilelang.cpu.transform.numerics import legalize_numerics
from tilelang.errors import UnsupportedError
from tilelang.testing.accuracy import assert_accurate
from tilelang.transform.numerics.functions import FLOAT_FUNCTIONS

# numpy warns about the very values that these tests are made of
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

COUNT = 1 << 17
INF, NAN = math.inf, math.nan


def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def torch_erf(x):
    return torch.erf(torch.from_numpy(np.ascontiguousarray(x))).numpy()


# name: (exact function of float64, interval that is sampled densely)
UNARY = {
    "exp": (np.exp, (-104, 89)),
    "exp2": (np.exp2, (-151, 129)),
    "exp10": (lambda x: np.power(10.0, x), (-46, 39)),
    "log": (np.log, (0, 4)),
    "log2": (np.log2, (0, 4)),
    "log10": (np.log10, (0, 4)),
    "log1p": (np.log1p, (-1, 2)),
    "sin": (np.sin, (-200, 200)),
    "cos": (np.cos, (-200, 200)),
    "tan": (np.tan, (-200, 200)),
    "asin": (np.arcsin, (-1, 1)),
    "acos": (np.arccos, (-1, 1)),
    "atan": (np.arctan, (-4, 4)),
    "sinh": (np.sinh, (-5, 5)),
    "cosh": (np.cosh, (-5, 5)),
    "tanh": (np.tanh, (-10, 10)),
    "asinh": (np.arcsinh, (-5, 5)),
    "acosh": (np.arccosh, (0.9, 5)),
    "atanh": (np.arctanh, (-1, 1)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0, 4)),
    "erf": (torch_erf, (-5, 5)),
    "sigmoid": (sigmoid, (-105, 20)),
    "nearbyint": (np.rint, (-9, 9)),
    "round": (lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), (-9, 9)),
    "floor": (np.floor, (-9, 9)),
    "trunc": (np.trunc, (-9, 9)),
    "fabs": (np.abs, (-9, 9)),
    "sqrt": (np.sqrt, (0, 4)),
}
BINARY = {
    "pow": np.power,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "fmod": np.fmod,
}


def apply(name, dtype, *args):
    full = "prim.log2" if name == "log2" else f"tirx.{name}"
    return ir.Call(ir.Op.get(full), list(args), ret_ty=prim_type(dtype))


def function(name, dtype, arity=1, **options):
    def expr(*args):
        return apply(name, dtype, *args)

    return build_elementwise(expr, [dtype] * arity, dtype, passes=legalize_numerics, **options)


def exact(reference, *values):
    with np.errstate(all="ignore"):
        return reference(*(np.asarray(v).astype(np.float64) for v in values))


@pytest.mark.parametrize("name", UNARY)
def test_float32(name):
    reference, (low, high) = UNARY[name]
    dense = np.random.default_rng(1).uniform(low, high, COUNT).astype(np.float32)
    values = np.concatenate([dense, float32_samples(COUNT, seed=2)])
    assert_accurate(
        name, run(function(name, "float32"), "float32", values), exact(reference, values), "float32"
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", UNARY)
def test_every_16_bit_argument(name, dtype):
    codes = np.arange(1 << 16, dtype=np.uint16)
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16)
    raw = codes if dtype == "bfloat16" else codes.view(np.float16)
    got = run(function(name, dtype), dtype, raw).view(kind)
    assert_accurate(name, got, exact(UNARY[name][0], codes.view(kind)), dtype)


@pytest.mark.parametrize(
    "name", ["exp", "tanh", "erf", "sin", "log", "exp10", "sigmoid", "round", "rsqrt", "atan"]
)
def test_float64(name):
    reference, (low, high) = UNARY[name]
    values = np.random.default_rng(1).uniform(low, high, 1 << 12)
    got = run(function(name, "float64"), "float64", values)
    np.testing.assert_allclose(got, exact(reference, values), rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions(name):
    rng = np.random.default_rng(5)
    x = np.concatenate(
        [rng.uniform(0, 9, COUNT).astype(np.float32), float32_samples(COUNT, seed=6)]
    )
    y = np.concatenate(
        [rng.uniform(-9, 9, COUNT).astype(np.float32), float32_samples(COUNT, seed=7)[::-1]]
    )
    got = run(function(name, "float32", 2), "float32", x, y)
    assert_accurate(name, got, exact(BINARY[name], x, y), "float32")


SPECIAL = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        2.5,
        INF,
        -INF,
        NAN,
        1e-45,
        3e38,
        -3e38,
    ],
    np.float32,
)


@pytest.mark.parametrize("name", BINARY)
def test_special_values_of_binary_functions(name):
    x, y = np.repeat(SPECIAL, SPECIAL.size), np.tile(SPECIAL, SPECIAL.size)
    for dtype in ("float32", "float64"):
        got = run(function(name, dtype, 2), dtype, x.astype(dtype), y.astype(dtype))
        want = exact(BINARY[name], x, y)
        if dtype == "float32":
            assert_accurate(name, got, want, dtype)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-14)
        zero = want == 0
        assert (np.signbit(got) == np.signbit(want))[zero].all()


@pytest.mark.parametrize("name", UNARY)
def test_zeros_keep_their_sign(name):
    got = run(function(name, "float32"), "float32", np.array([0.0, -0.0], np.float32))
    want = exact(UNARY[name][0], np.array([0.0, -0.0])).astype(np.float32)
    np.testing.assert_array_equal(got, want)
    assert (np.signbit(got) == np.signbit(want))[want == 0].all()


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_near_multiples_of_a_right_angle(name):
    turns = np.random.default_rng(8).integers(1, 2**40, 1 << 15).astype(np.float64)
    near = np.concatenate([np.arange(1, 1 << 15), turns]) * (np.pi / 2)
    values = near.astype(np.float32)
    huge = np.float32(
        [2.0**k * m for k in range(20, 104) for m in (1, 1.5707964, 16367173 / 2**23)]
    )
    values = np.concatenate([values, -values, huge])
    assert_accurate(
        name,
        run(function(name, "float32"), "float32", values),
        exact(UNARY[name][0], values),
        "float32",
    )


@pytest.mark.parametrize("name", ["exp", "exp2", "sigmoid"])
def test_subnormal_results_are_kept(name):
    reference, (low, _) = UNARY[name]
    values = np.linspace(low, low * 0.83, 4096).astype(np.float32)
    got = run(function(name, "float32"), "float32", values)
    assert ((got > 0) & (got < 1.17e-38)).sum() > 1000
    assert_accurate(name, got, exact(reference, values), "float32")


@pytest.mark.parametrize("mcpu", ["x86-64", "x86-64-v3"])
@pytest.mark.parametrize("name", ["exp", "sin", "tanh", "round", "log2"])
def test_older_machines(name, mcpu):
    reference, (low, high) = UNARY[name]
    values = np.concatenate(
        [np.linspace(low, high, 4096).astype(np.float32), float32_samples(4096)]
    )
    got = run(function(name, "float32", mcpu=mcpu), "float32", values)
    assert_accurate(name, got, exact(reference, values), "float32")


@pytest.mark.parametrize("name", ["exp", "erf", "sin"])
def test_scalar_code(name):
    reference, (low, high) = UNARY[name]
    values = np.linspace(low, high, 4096).astype(np.float32)
    got = run(function(name, "float32", vector=False), "float32", values)
    assert_accurate(name, got, exact(reference, values), "float32")


def test_nested_functions_compile_quickly():
    def expr(x):
        for name in ("tanh", "exp", "sigmoid", "log", "erf", "sin") * 2:
            x = apply(name, "float32", x)
        return x

    f = build_elementwise(expr, ["float32"], "float32", passes=legalize_numerics)
    got = run(f, "float32", np.linspace(-1, 1, 64).astype(np.float32))
    x = np.linspace(-1, 1, 64)
    for name in ("tanh", "exp", "sigmoid", "log", "erf", "sin") * 2:
        x = exact(UNARY[name][0], x)
    np.testing.assert_allclose(got, x, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nextafter_steps_by_one(dtype):
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    edge = np.array([0.0, -0.0, 1.0, -1.0, 2.0, INF, -INF, NAN, 1e-3], np.float64).astype(kind)
    tiny = np.nextafter(np.zeros(1, kind), np.ones(1, kind))
    values = np.concatenate([edge, tiny, -tiny])
    x, y = np.repeat(values, values.size), np.tile(values, values.size)
    raw = "uint16" if dtype == "bfloat16" else dtype
    got = run(function("nextafter", dtype, 2), dtype, x.view(raw), y.view(raw)).view(kind)
    want = np.nextafter(x, y)
    assert ((got == want) | (np.isnan(got) & np.isnan(want))).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ldexp_rounds_once(dtype):
    numbers = np.array([1.0, -1.5, 1.9990234, 3.0, 0.0, INF, NAN, 5e-5], dtype)
    powers = np.array([-30, -24, -15, -1, 0, 1, 10, 15, 16, -150, 130, 2000, -2000], np.int32)
    x, n = np.repeat(numbers, powers.size), np.tile(powers, numbers.size)
    f = build_elementwise(
        lambda a, b: apply("ldexp", dtype, a, b),
        [dtype, "int32"], dtype, passes=legalize_numerics,
    )  # fmt: skip
    with np.errstate(all="ignore"):
        want = np.ldexp(x.astype(np.float64), n).astype(dtype)
    got = run(f, dtype, x, n)
    assert ((got == want) | (np.isnan(got) & np.isnan(want))).all()


def test_every_function_of_the_language_has_a_formula():
    import tilelang.ir.intrin as intrin

    known = set(FLOAT_FUNCTIONS) | {
        "tirx.fabs",
        "tirx.sqrt",
        "tirx.floor",
        "tirx.trunc",
        "prim.ceil",
    }
    packed = {f"tl.{n}2" for n in ("add", "sub", "mul", "fma", "max", "min", "abs")}
    for record in intrin.intrinsics():
        if record.args[:1] == ("float",) and "cpu" in record.backends:
            assert record.op_name in known | packed, record.name


def test_functions_without_formula_are_refused():
    with pytest.raises(UnsupportedError, match="nextafter is not available for float8_e5m2"):
        function("nextafter", "float8_e5m2", 2)
