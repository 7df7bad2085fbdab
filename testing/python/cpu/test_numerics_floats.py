"""Float operators on the CPU: NaN, signed zeros, contraction, short floats, packed pairs."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
from elementwise import build_elementwise, float32_samples, run
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim

import tilelang.ir.intrin as intrin
from tilelang.cpu.intrinsics.math.value import prim_type
from tilelang.cpu.transform.numerics import legalize_numerics
from tilelang.ir.intrin.ieee import round_exact

# numpy warns about the very values that these tests are made of
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

INF, NAN = math.inf, math.nan
PLAIN = np.array([0.0, 1.0, -1.0, 2.5, INF, -INF, NAN, 1e-45, -3e38], np.float32)
X, Y = np.repeat(PLAIN, PLAIN.size), np.tile(PLAIN, PLAIN.size)


def build(expr, dtypes, result, **options):
    return build_elementwise(expr, dtypes, result, passes=legalize_numerics, **options)


def same(got, want):
    return (got == want) | (np.isnan(got) & np.isnan(want))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "node, reference", [(prim.Max, np.fmax), (prim.Min, np.fmin)], ids=["max", "min"]
)
def test_extremes_ignore_nan_in_either_place(node, reference, dtype):
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    with np.errstate(over="ignore"):
        x, y = X.astype(kind), Y.astype(kind)
    raw = "uint16" if dtype == "bfloat16" else dtype
    got = run(build(node, [dtype] * 2, dtype), dtype, x.view(raw), y.view(raw)).view(kind)
    assert same(got, reference(x, y)).all()


@pytest.mark.parametrize("swap", [False, True])
def test_extreme_with_a_constant_is_one_instruction(swap):
    zero = prim.FloatImm("float32", 0.0)
    f = build(lambda x: prim.Max(zero, x) if swap else prim.Max(x, zero), ["float32"], "float32")
    assert same(run(f, "float32", PLAIN), np.fmax(PLAIN, 0)).all()
    code = f.module.inspect_source("asm")
    loop = code[code.index("\nbody:") :]
    assert "vmaxps" in loop and "vcmp" not in loop[: loop.index("ret")]


COMPARISONS = {
    prim.EQ: np.equal, prim.NE: np.not_equal, prim.LT: np.less,
    prim.LE: np.less_equal, prim.GT: np.greater, prim.GE: np.greater_equal,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("node", COMPARISONS, ids=lambda node: node.__name__)
def test_comparisons_with_nan(node, negated, dtype):
    def expr(x, y):
        condition = node(x, y)
        return prim.Not(condition) if negated else condition

    with np.errstate(over="ignore"):
        x, y = X.astype(dtype), Y.astype(dtype)
    got = run(build(expr, [dtype] * 2, "bool"), "bool", x, y)
    assert (got == (COMPARISONS[node](x, y) ^ negated)).all()


ZERO, ONE, BIG = (prim.FloatImm("float32", number) for number in (0.0, 1.0, 3e38))
LARGE = np.float32(3e38)
IDENTITIES = {
    "x-x": (lambda x: prim.Sub(x, x), lambda x: x - x),
    "x==x": (lambda x: prim.EQ(x, x), lambda x: x == x),
    "x!=x": (lambda x: prim.NE(x, x), lambda x: x != x),
    "x*0": (lambda x: prim.Mul(x, ZERO), lambda x: x * np.float32(0)),
    "0/x": (lambda x: prim.Div(ZERO, x), lambda x: np.float32(0) / x),
    "x/0": (lambda x: prim.Div(x, ZERO), lambda x: x / np.float32(0)),
    "x+c-c": (lambda x: prim.Sub(prim.Add(x, BIG), BIG), lambda x: (x + LARGE) - LARGE),
    "total": (lambda x: prim.Or(prim.LT(x, ONE), prim.LE(ONE, x)), lambda x: (x < 1) | (x >= 1)),
    "isnan": (T.isnan, np.isnan),
    "isinf": (T.isinf, np.isinf),
    "isfinite": (T.isfinite, np.isfinite),
}


@pytest.mark.parametrize("expr, reference", IDENTITIES.values(), ids=IDENTITIES)
def test_identities_that_simplifiers_believe(expr, reference):
    result = "bool" if reference(PLAIN).dtype == np.bool_ else "float32"
    with np.errstate(all="ignore"):
        want = reference(PLAIN)
    assert same(run(build(expr, ["float32"], result), result, PLAIN), want).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize(
    "node, name", [(prim.Add, "add"), (prim.Sub, "sub"), (prim.Mul, "mul"), (prim.Div, "div")]
)
def test_short_floats_round_once_an_operator(node, name, dtype):
    kind = getattr(torch, dtype)
    raw = "uint16" if kind.itemsize == 2 else "uint8"
    codes = np.random.default_rng(1).integers(0, 2 ** (8 * kind.itemsize), 4096).astype(raw)
    a, b = (torch.from_numpy(c.copy()).view(kind) for c in (codes, codes[::-1]))
    stored = "float16" if dtype == "float16" else raw
    arrays = [codes.view(stored), codes[::-1].copy().view(stored)]

    def expr(x, y):  # two operators: the first result is rounded before the second uses it
        return prim.Add(node(x, y), x)

    got = torch.from_numpy(run(build(expr, [dtype] * 2, dtype), dtype, *arrays)).view(kind)
    first = getattr(torch, name)(a.float(), b.float()).to(kind)
    want = (first.float() + a.float()).to(kind)
    assert same(got.float().numpy(), want.float().numpy()).all()


def test_copysign_takes_the_sign_of_nan_and_zero():
    f = build(lambda x, y: T.copysign(x, y), ["float32"] * 2, "float32")
    x = np.float32([1, -2, 3, INF, 0.0])
    y = np.float32([-0.0, 0.0, -NAN, -1, -INF])
    assert (np.signbit(run(f, "float32", x, y)) == np.signbit(y)).all()


def operator(name, dtype):
    record = next(r for r in intrin.intrinsics() if r.name == name)

    def expr(*args):
        return ir.Call(ir.Op.get(record.op_name), list(args), ret_ty=prim_type(dtype))

    return expr


IEEE = {
    "ieee_add_rn": lambda x, y: x + y, "ieee_sub_rn": lambda x, y: x - y,
    "ieee_mul_rn": lambda x, y: x * y, "ieee_fdiv_rn": lambda x, y: x / y,
    "ieee_fmaf_rn": lambda x, y, z: x * y + z,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", IEEE)
def test_ieee_operators_round_the_exact_result_once(name, dtype):
    exact = IEEE[name]
    arity = exact.__code__.co_argcount
    rng = np.random.default_rng(2)
    values = [rng.standard_normal(400).astype(dtype) for _ in range(arity)]
    if arity == 3:  # let the sum cancel
        values[2][:200] = -(values[0] * values[1])[:200]
    got = run(build(operator(name, dtype), [dtype] * arity, dtype), dtype, *values)
    want = [
        round_exact(exact(*map(Fraction, row)), dtype, "rn")
        for row in zip(*(v.tolist() for v in values), strict=True)
    ]
    assert got.astype(np.float64).tolist() == want


def test_ieee_operators_are_not_contracted():
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(4096).astype(np.float32) for _ in range(2))
    z = -(x * y)
    apart = operator("ieee_add_rn", "float32")
    product = operator("ieee_mul_rn", "float32")
    for expr in (
        lambda a, b, c: apart(prim.Mul(a, b), c),
        lambda a, b, c: prim.Add(product(a, b), c),
    ):
        assert (run(build(expr, ["float32"] * 3, "float32"), "float32", x, y, z) == 0).all()


def test_reciprocal_square_root_is_correctly_rounded():
    values = np.abs(float32_samples(1 << 14, seed=4))
    got = run(build(operator("ieee_frsqrt", "float32"), ["float32"], "float32"), "float32", values)
    with np.errstate(all="ignore"):
        want = (1 / np.sqrt(values.astype(np.longdouble))).astype(np.float32)
    assert same(got, want).all()


def test_tfloat32_rounds_to_ten_bits_ties_away():
    record = next(r for r in intrin.intrinsics() if r.name == "round_tfloat32")
    values = float32_samples(1 << 12, seed=5)
    got = run(
        build(operator("round_tfloat32", "float32"), ["float32"], "float32"), "float32", values
    )
    assert same(got, record.reference(("float32", "float32"), values)).all()


def lanes(*values):
    return prim.Shuffle(list(values), [T.IntImm("int32", k) for k in range(len(values))])


def lane(value, k):
    return prim.Shuffle([value], [T.IntImm("int32", k)])


PAIRS = {
    "add2": 7.0,
    "sub2": 3.0,
    "mul2": 10.0,
    "max2": 5.0,
    "min2": 2.0,
    "fma2": 15.0,
    "abs2": 5.0,
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", PAIRS)
def test_packed_pairs(name, dtype):
    record = next(r for r in intrin.intrinsics() if r.name == name)

    def expr(x, y):
        args = [lanes(y, x), lanes(x, y), lanes(x, x)][: len(record.args)]
        pair = ir.Call(ir.Op.get(record.op_name), args, ret_ty=prim_type(dtype, 2))
        return prim.Cast(prim_type("float32"), lane(pair, 1))

    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    raw = "uint16" if dtype == "bfloat16" else dtype
    x, y = (np.array([number]).astype(kind).view(raw) for number in (5.0, 2.0))
    f = build(expr, [dtype] * 2, "float32", vector=False)
    assert run(f, "float32", x, y).tolist() == [PAIRS[name]]


def test_dot_product_of_four_bytes():
    def expr(a, b, c):
        packed = [lanes(*(prim.Add(v, prim.IntImm("int8", k)) for k in range(4))) for v in (a, b)]
        return ir.Call(ir.Op.get("tirx.dp4a"), [*packed, c], ret_ty=prim_type("int32"))

    f = build(expr, ["int8", "int8", "int32"], "int32", vector=False)
    got = run(f, "int32", np.int8([100, -3]), np.int8([100, 5]), np.int32([7, 2**31 - 1]))
    first = 7 + sum((100 + k) ** 2 for k in range(4))
    second = 2**31 - 1 + sum((-3 + k) * (5 + k) for k in range(4)) - 2**32
    assert got.tolist() == [first, second if second >= -(2**31) else second + 2**32]


def test_fast_math_keeps_the_plain_maximum():
    def passes(func):
        return legalize_numerics(func, fast_math=True)

    f = build_elementwise(prim.Max, ["float32"] * 2, "float32", passes=passes)
    numbers = ~(np.isnan(X) | np.isnan(Y))
    assert (run(f, "float32", X, Y) == np.fmax(X, Y))[numbers].all()
