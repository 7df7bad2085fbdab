"""Simplified indices and conditions have the values they had, at every point."""

from __future__ import annotations

import itertools
import random

import pytest
from tvm import ir, sym
from tvm import tirx as T
from tvm_ffi import structural_equal, structural_map

from tilelang.ir.expr import const_int
from tilelang.transform.simt.simplify import simplify_indices

RANGES = {"tx": 32, "k": 5, "s": 4}


def expression(rng, variables, depth):
    """Index arithmetic as lowering makes it: sums, products and digits."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([*variables, T.const(rng.randrange(9), "int32")])
    left = expression(rng, variables, depth - 1)
    kind, number = rng.randrange(7), rng.choice([2, 3, 4, 8, 32])
    if kind < 2:
        return left + expression(rng, variables, depth - 1)
    if kind == 2:
        return left * number
    if kind == 3:
        return T.floordiv(left, T.const(number, "int32"))
    if kind == 4:
        return T.floormod(left, T.const(number, "int32"))
    if kind == 5:
        return left - expression(rng, variables, depth - 1)
    return T.min(left, expression(rng, variables, depth - 1))


def value(expr, point):
    fixed = structural_map(
        expr, (ir.Var, lambda v: T.const(point[str(v.name)], "int32") if v.name in point else v)
    )
    return const_int(sym.Analyzer().simplify(fixed))


def inner(stmt):
    while isinstance(stmt, T.For):
        stmt = stmt.body
    return stmt


def nest(variables, body):
    for var in reversed(variables):
        body = T.For(var, 0, RANGES[str(var.name)], T.ForKind.SERIAL, body)
    return body


def points(rng):
    every = list(itertools.product(*(range(e) for e in RANGES.values())))
    return [dict(zip(RANGES, p, strict=True)) for p in rng.sample(every, 12)]


@pytest.mark.parametrize("seed", range(25))
def test_indices_keep_their_values(seed):
    rng = random.Random(seed)
    variables = [T.Var(name, "int32") for name in RANGES]
    buffer = T.decl_buffer((4096,), "float32", "S", scope="shared.dyn", layout=None)
    index, read = (expression(rng, variables, 4) for _ in range(2))
    store = T.BufferStore(buffer, T.BufferLoad(buffer, [read]), [index])
    result = inner(simplify_indices(T.PrimFunc([], nest(variables, store))).body)
    for point in points(rng):
        assert value(result.indices[0], point) == value(index, point)
        assert value(result.value.indices[0], point) == value(read, point)


@pytest.mark.parametrize("seed", range(25))
def test_branches_are_taken_as_before(seed):
    """Also where a condition is known, and inside of branches that hold it."""
    rng = random.Random(1000 + seed)
    variables = [T.Var(name, "int32") for name in RANGES]
    buffer = T.decl_buffer((4096,), "int32", "S", scope="shared.dyn", layout=None)
    compare = rng.choice([T.LT, T.GE, T.EQ])

    def bound():
        return compare(expression(rng, variables, 2), T.const(rng.randrange(12), "int32"))

    outer, deeper = bound(), bound()
    stores = [
        T.BufferStore(buffer, T.const(n, "int32"), [expression(rng, variables, 2)])
        for n in range(3)
    ]
    body = T.IfThenElse(outer, T.IfThenElse(deeper, stores[0], stores[1]), stores[2])
    result = inner(simplify_indices(T.PrimFunc([], nest(variables, body))).body)
    for point in points(rng):
        assert taken(result, point) == taken(body, point)


def taken(stmt, point):
    """The value stored and its place."""
    while isinstance(stmt, T.IfThenElse):
        holds = value(stmt.condition, point)
        stmt = stmt.then_case if holds else stmt.else_case
    return const_int(stmt.value), value(stmt.indices[0], point)


def test_values_are_left_as_they_are():
    """What rounds or wraps is no index arithmetic."""
    buffer = T.decl_buffer((8,), "float32", "S", scope="shared.dyn", layout=None)
    i = T.Var("s", "int32")
    old = T.BufferLoad(buffer, [i])
    kept = (old + T.const(1.0, "float32")) - old
    func = T.PrimFunc([], nest([i], T.BufferStore(buffer, kept, [i])))
    assert structural_equal(inner(simplify_indices(func).body).value, kept)
