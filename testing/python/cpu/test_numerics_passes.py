"""What the numeric passes leave alone, what they touch, and where temporaries go."""

from __future__ import annotations

import time

import numpy as np
import pytest
import tvm_ffi
from elementwise import build_elementwise, run
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim

from tilelang.cpu.intrinsics.math import call, operator_name
from tilelang.cpu.intrinsics.math.value import Value, prim_type, select
from tilelang.cpu.transform.numerics import (
    expand_numerics,
    legalize_numerics,
    legalize_storage,
    wrap_data_integers,
)
from tilelang.errors import UnsupportedError


def buffer(name, shape, dtype="int32", **options):
    return T.decl_buffer(shape, dtype, name, layout=None, **options)


def loop(var, extent, body, kind=T.ForKind.SERIAL):
    return T.For(var, 0, extent, kind, body)


def operators(node):
    found = []
    tvm_ffi.structural_walk(
        node, (ir.Call, lambda c: found.append(operator_name(c)) if operator_name(c) else None)
    )
    return sorted(found)


def gemm(dtype="float32", m=64):
    a, b, c = (buffer(n, (m, m), dtype) for n in "ABC")
    i, j, k = (T.Var(n, "int32") for n in "ijk")
    step = T.BufferStore(c, c[i, j] + a[i, k] * b[k, j], [i, j])
    return T.PrimFunc([a, b, c], loop(i, m, loop(j, m, loop(k, m, step))))


def test_float32_gemm_passes_through():
    func = gemm()
    assert tvm_ffi.structural_equal(legalize_numerics(func), func)
    assert operators(expand_numerics(legalize_numerics(func))) == []


def test_integer_gemm_wraps_the_data_and_not_the_indices():
    assert operators(legalize_numerics(gemm("int32"))) == ["add", "mul"]


def test_products_of_bytes_cannot_overflow():
    a, b, c = buffer("A", (4,), "int8"), buffer("B", (4,), "int8"), buffer("C", (4,), "int32")
    i = T.Var("i", "int32")
    product = a[i].astype("int32") * b[i].astype("int32")
    func = T.PrimFunc([a, b, c], loop(i, 4, T.BufferStore(c, c[i] + product, [i])))
    assert operators(legalize_numerics(func)) == ["add"]


ROW, COL = T.Var("i", "int32"), T.Var("j", "int32")


def store_of(value, *params, index=None, dtype="int32"):
    out = buffer("O", (64,), dtype)
    body = loop(
        ROW, 8, loop(COL, 8, T.BufferStore(out, value, [ROW * 8 + COL if index is None else index]))
    )
    return T.PrimFunc([out, *params], body)


def test_index_arithmetic_as_a_value_stays():
    assert operators(wrap_data_integers(store_of(ROW * 8 + COL))) == []


def test_scalar_used_as_a_value_is_data():
    alpha = T.Var("alpha", "int32")
    assert operators(wrap_data_integers(store_of(alpha * 5, alpha))) == ["mul"]


def test_scalar_used_in_an_index_is_an_index():
    stride = T.Var("stride", "int32")
    func = store_of(stride * 5, stride, index=ROW * stride + COL)
    assert operators(wrap_data_integers(func)) == []


def test_scalar_used_in_a_bound_through_a_temporary_is_an_index():
    n, blocks = T.Var("n", "int32"), T.Var("blocks", "int32")
    out = buffer("O", (64,))
    nest = loop(ROW, blocks, T.BufferStore(out, n * 3, [ROW]))
    func = T.PrimFunc([out, n], T.SeqStmt([T.Bind(blocks, n + 1), nest]))
    assert operators(wrap_data_integers(func)) == []


def test_shape_symbol_is_an_index():
    n = T.Var("n", "int32")
    a = buffer("A", (n,))
    assert operators(wrap_data_integers(T.PrimFunc([a], T.BufferStore(a, n * 3, [0])))) == []


def test_loads_in_an_index_stay_signed():
    table, a = buffer("idx", (64,)), buffer("A", (4096,))
    func = store_of(a[table[ROW] * 64 + COL], table, a)
    assert operators(wrap_data_integers(func)) == []


def test_temporaries_of_loads_are_data_wherever_they_are_used():
    a, h = buffer("A", (64,)), T.Var("h", "int32")
    out = buffer("O", (64,))
    body = T.SeqStmt([T.Bind(h, a[0] * 31 + 7), T.BufferStore(out, h + 1, [T.floormod(h, 64)])])
    assert operators(wrap_data_integers(T.PrimFunc([a, out], body))) == ["add", "add", "mul"]


def test_division_by_anything_but_a_constant_is_guarded():
    n = T.Var("n", "int32")
    a = buffer("A", (n,))

    def dividing_by(divisor):
        stores = [
            T.BufferStore(a, T.floordiv(ROW, divisor), [ROW]),
            T.BufferStore(a, 0, [ROW % divisor]),
        ]
        return operators(wrap_data_integers(T.PrimFunc([a], loop(ROW, n, T.SeqStmt(stores)))))

    assert dividing_by(n) == ["floordiv", "floormod"]
    assert dividing_by(T.IntImm("int32", 4)) == []


def test_data_divisor_in_an_index_does_not_trap():
    a = buffer("A", (64,))
    func = store_of(a[T.floormod(ROW, a[COL])], a)
    assert operators(wrap_data_integers(func)) == ["floormod"]


def test_while_condition_is_computed_every_time():
    a = buffer("A", (16,), "float32")
    halve = T.BufferStore(a, a[0] * 0.5, [0])
    func = T.PrimFunc([a], T.While(T.exp(a[0]) > 2.0, halve))
    body = expand_numerics(legalize_numerics(func)).body
    assert isinstance(body, T.While) and operators(body) == []
    breaks = []
    tvm_ffi.structural_walk(body, (T.Break, breaks.append))
    assert len(breaks) == 1 and int(body.condition.value) == 1


def test_lazy_arms_stay_lazy():
    a, out = buffer("A", (16,), "float32"), buffer("O", (32,), "float32")
    value = T.if_then_else(ROW < 16, T.exp(a[ROW]), T.const(0.0, "float32"))
    func = T.PrimFunc([a, out], loop(ROW, 32, T.BufferStore(out, value, [ROW])))
    loads = []

    def outside_of_if(stmt, visitor):
        return None if isinstance(stmt, T.IfThenElse) else visitor.default_visit(stmt)

    tvm_ffi.structural_visit(
        expand_numerics(legalize_numerics(func)),
        [(T.IfThenElse, outside_of_if), (ir.TensorLoad, lambda e, v: loads.append(e.source.name))],
    )
    assert "A" not in loads


def test_chains_of_float_temporaries_compile_quickly():
    """TVM's own handling takes minutes for this: it inlines each temporary into the next."""
    out = buffer("O", (16,), "float32")
    value, binds = out[0], []
    for _ in range(16):
        var = T.Var("t", "float32")
        binds.append(T.Bind(var, value))
        value = var * var + T.Select(var < 1.0, var, var * var)
    func = T.PrimFunc([out], T.SeqStmt([*binds, T.BufferStore(out, value, [0])]))

    def passes(_):
        i, v = T.Var("i", "int64"), T.Var("v", "int64")
        n = T.Var("n", "int64")
        flat = T.decl_buffer((n,), "float32", "out", layout=None, data_alignment=1)
        source = T.decl_buffer((n,), "float32", "in0", layout=None, data_alignment=1)
        at = i * 16 + v
        stmts, current = [], source[at]
        for _ in range(16):
            var = T.Var("t", "float32")
            stmts.append(T.Bind(var, current))
            current = var * var + T.Select(var < 1.0, var, var * var)
        body = T.SeqStmt([*stmts, T.BufferStore(flat, current, [at])])
        nest = T.For(
            i, 0, T.floordiv(n, 16), T.ForKind.SERIAL, T.For(v, 0, 16, T.ForKind.SERIAL, body)
        )
        return legalize_numerics(T.PrimFunc([source, flat, n], nest))

    assert operators(legalize_numerics(func)).count("lt") == 16
    start = time.perf_counter()
    f = build_elementwise(lambda x: x, ["float32"], "float32", passes=passes)
    assert time.perf_counter() - start < 5
    assert run(f, "float32", np.float32([0.0])).tolist() == [0.0]


def test_shared_parts_of_a_formula_are_computed_once():
    x = Value.of(T.Var("x", "float32"))
    square = x * x
    stored = []

    def temporary(expr):
        stored.append(expr)
        return T.Var("t", expr.ty)

    (square + square * 0.5).emit("llvm", temporary)
    assert len(stored) == 1 and isinstance(stored[0], prim.Mul)


def test_formulas_refuse_mixed_types():
    x = Value.of(T.Var("x", "float32"))
    with pytest.raises(AssertionError, match="float32 with int32"):
        x + x.const(1, "int32")
    with pytest.raises(AssertionError, match="one arm must be a value"):
        select(x > 0.0, 1.0, 2.0)


def test_spans_survive():
    span = ir.Span(ir.SourceName("kernel.py"), 7, 7, 1, 9)
    a = buffer("A", (8,), "float32")
    value = prim.Sub(T.exp(a[ROW]), a[ROW], span)
    func = T.PrimFunc([a], loop(ROW, 8, T.BufferStore(a, value, [ROW], span)))
    stores = []
    tvm_ffi.structural_walk(legalize_numerics(func), (T.BufferStore, stores.append))
    assert stores[0].span.line == 7 and stores[0].value.span.line == 7


def test_strided_packed_buffers_are_refused():
    a = buffer("A", (8, 8), "int4", strides=[16, 1])
    with pytest.raises(UnsupportedError, match="int4 buffers with strides"):
        legalize_storage(T.PrimFunc([a], T.Evaluate(a[0, 0].astype("int32"))))


def test_operators_know_their_lanes():
    vector = T.Var("v", prim_type("float32", 8))
    assert str(call("isnan", "bool", vector).ty.dtype) == "boolx8"
