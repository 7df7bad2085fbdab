"""Integer data on the CPU against Python's integers, at every width and at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from elementwise import build_elementwise, run
from tvm import ir
from tvm.ir import prim

from tilelang.cpu.intrinsics.math.value import prim_type
from tilelang.cpu.transform.numerics import legalize_numerics

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def truncated(a, b):
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def shifted_right(a, b, bits):
    return a >> b if 0 <= b < bits else (-1 if a < 0 else 0)


# node: what it means for Python integers, before wrapping
OPERATORS = {
    prim.Add: lambda a, b, bits: a + b,
    prim.Sub: lambda a, b, bits: a - b,
    prim.Mul: lambda a, b, bits: a * b,
    prim.Div: lambda a, b, bits: truncated(a, b) if b else 0,
    prim.Mod: lambda a, b, bits: a - b * truncated(a, b) if b else 0,
    prim.FloorDiv: lambda a, b, bits: a // b if b else 0,
    prim.FloorMod: lambda a, b, bits: a % b if b else 0,
    prim.LShift: lambda a, b, bits: a << b if 0 <= b < bits else 0,
    prim.RShift: shifted_right,
}


def wrapped(value, dtype):
    bits = np.iinfo(dtype).bits
    value &= (1 << bits) - 1
    return value - (1 << bits) if np.iinfo(dtype).min < 0 and value >> (bits - 1) else value


def edges(dtype):
    info = np.iinfo(dtype)
    numbers = [
        info.min,
        info.min + 1,
        info.max,
        info.max - 1,
        0,
        1,
        2,
        3,
        7,
        8,
        15,
        16,
        31,
        32,
        33,
        63,
        64,
        65,
        -1,
        -2,
        -7,
    ]
    return np.array([n for n in numbers if info.min <= n <= info.max], dtype)


def samples(dtype):
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    every = edges(dtype)
    random = rng.integers(info.min, info.max, 200, dtype=dtype, endpoint=True)
    small = rng.integers(0, 70, 200, dtype=dtype)
    a = np.concatenate([np.repeat(every, every.size), random, random])
    return a, np.concatenate([np.tile(every, every.size), random[::-1], small])


def binary(node, dtype, vector):
    return build_elementwise(
        lambda x, y: node(x, y), [dtype] * 2, dtype, passes=legalize_numerics, vector=vector
    )


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("node", OPERATORS, ids=lambda node: node.__name__)
def test_operators(node, dtype):
    a, b = samples(dtype)
    bits = np.iinfo(dtype).bits
    got = run(binary(node, dtype, vector=bits < 64), dtype, a, b)
    want = [
        wrapped(OPERATORS[node](x, y, bits), dtype)
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert got.tolist() == want


@pytest.mark.parametrize("divisor", [1, 2, 8, 7, 100, -1, -2, -7])
@pytest.mark.parametrize(
    "node", [prim.FloorDiv, prim.FloorMod, prim.Div, prim.Mod], ids=lambda n: n.__name__
)
def test_division_by_constants(node, divisor):
    values = np.concatenate([edges("int32"), np.arange(-300, 300, dtype=np.int32)])
    f = build_elementwise(
        lambda x: node(x, prim.IntImm("int32", divisor)),
        ["int32"],
        "int32",
        passes=legalize_numerics,
    )
    want = [wrapped(OPERATORS[node](x, divisor, 32), "int32") for x in values.tolist()]
    assert run(f, "int32", values).tolist() == want


def unary(op, dtype, result):
    def expr(x):
        return ir.Call(ir.Op.get(op), [x], ret_ty=prim_type(result))

    return build_elementwise(expr, [dtype], result, passes=legalize_numerics)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bit_counts(dtype):
    if "tl.__ffs" not in ir.Op.list_op_names():
        import tilelang.ir.intrin  # noqa: F401  (registers the operator)
    values = np.concatenate([edges(dtype), samples(dtype)[0][-100:]])
    bits = np.iinfo(dtype).bits
    patterns = [v & ((1 << bits) - 1) for v in values.tolist()]
    assert run(unary("tirx.popcount", dtype, dtype), dtype, values).tolist() == [
        p.bit_count() for p in patterns
    ]
    assert run(unary("prim.clz", dtype, "int32"), "int32", values).tolist() == [
        bits - p.bit_length() for p in patterns
    ]
    first = [(p & -p).bit_length() for p in patterns]
    assert run(unary("tl.__ffs", dtype, "int32"), "int32", values).tolist() == first


def test_nth_set_bit():
    import tilelang.ir.intrin as intrin

    record = next(r for r in intrin.intrinsics() if r.name == "__fns")
    rng = np.random.default_rng(1)
    mask = rng.integers(0, 2**32, 512, dtype=np.uint64).astype(np.uint32)
    base = rng.integers(-2, 35, 512, dtype=np.int32).clip(0, 34)
    offset = rng.integers(-34, 35, 512, dtype=np.int32)

    def expr(m, b, o):
        return ir.Call(ir.Op.get("tl.__fns"), [m, b, o], ret_ty=prim_type("int32"))

    f = build_elementwise(expr, ["uint32", "int32", "int32"], "int32", passes=legalize_numerics)
    want = record.reference(("int32", "uint32", "int32", "int32"), mask, base, offset)
    assert run(f, "int32", mask, base, offset).tolist() == want.tolist()


def test_negation_and_magnitude_wrap():
    from tvm import tirx as T

    values = edges("int32")
    negated = build_elementwise(
        lambda x: prim.Sub(prim.IntImm("int32", 0), x), ["int32"], "int32", passes=legalize_numerics
    )
    assert run(negated, "int32", values).tolist() == [wrapped(-v, "int32") for v in values.tolist()]
    size = build_elementwise(T.abs, ["int32"], "int32", passes=legalize_numerics)
    assert run(size, "int32", values).tolist() == [
        wrapped(abs(v), "int32") for v in values.tolist()
    ]


def test_overflow_is_not_used_to_simplify():
    one, two = prim.IntImm("int32", 1), prim.IntImm("int32", 2)

    def expr(x):
        grows = prim.GT(prim.Add(x, one), x)
        halved = prim.FloorDiv(prim.Mul(x, two), two)
        return prim.Select(grows, halved, prim.IntImm("int32", -7))

    f = build_elementwise(expr, ["int32"], "int32", passes=legalize_numerics)
    assert run(f, "int32", np.array([2**31 - 1, 2**30, 5], np.int32)).tolist() == [-7, -(2**30), 5]


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_unsigned_overflow_is_not_used_to_simplify(dtype):
    def expr(x):
        grows = prim.GT(prim.Add(x, prim.IntImm(dtype, 1)), x)
        return prim.Cast(prim_type("int32"), grows)

    f = build_elementwise(expr, [dtype], "int32", passes=legalize_numerics)
    top = np.iinfo(dtype).max
    assert run(f, "int32", np.array([0, 5, top - 1, top], dtype)).tolist() == [1, 1, 1, 0]


def test_sign_changes_are_not_used_to_simplify():
    def expr(x):
        signed = prim.Cast(prim_type("int8"), x)
        negative = prim.LT(signed, prim.IntImm("int8", 0))
        return prim.Cast(prim_type("int32"), negative)

    f = build_elementwise(expr, ["uint8"], "int32", passes=legalize_numerics)
    assert run(f, "int32", np.array([0, 127, 128, 255], np.uint8)).tolist() == [0, 0, 1, 1]


def test_fixed_point_multiply():
    import tilelang.ir.intrin as intrin

    record = next(r for r in intrin.intrinsics() if r.name == "q_multiply_shift")
    rng = np.random.default_rng(2)
    x, y = (rng.integers(-(2**30), 2**30, 256, dtype=np.int32) for _ in range(2))
    q, s = np.full(256, 31, np.int32), rng.integers(-8, 8, 256, dtype=np.int32)

    def expr(*args):
        return ir.Call(ir.Op.get("tirx.q_multiply_shift"), list(args), ret_ty=prim_type("int32"))

    f = build_elementwise(expr, ["int32"] * 4, "int32", passes=legalize_numerics)
    want = np.asarray(record.reference(("int32",) * 5, x, y, q, s)).astype(np.int32)
    assert run(f, "int32", x, y, q, s).tolist() == want.tolist()
