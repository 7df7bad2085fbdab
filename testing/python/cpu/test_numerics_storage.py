"""Buffers of narrow types on the CPU: what memory holds, 4-bit elements, temporaries."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
import tvm
import tvm_ffi
from elementwise import compile_function
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim

from tilelang.cpu.intrinsics.math.value import prim_type
from tilelang.cpu.transform.numerics import legalize_numerics, legalize_storage

INT4 = np.arange(-8, 8, dtype=np.int8)
UINT4 = np.arange(16, dtype=np.uint8)


def buffer(name, shape, dtype, **options):
    return T.decl_buffer(shape, dtype, name, layout=None, data_alignment=1, **options)


def loop(var, extent, body, kind=T.ForKind.SERIAL):
    return T.For(var, 0, extent, kind, body)


def execute(params, body, *arrays):
    """Run ``body`` on flat copies of ``arrays``; returns the last one."""
    function = compile_function(legalize_numerics(T.PrimFunc(params, body)))
    tensors = [torch.from_numpy(np.ascontiguousarray(a).copy()) for a in arrays]
    function(*tensors)
    return tensors[-1].numpy()


def packed(values):
    """Two values a byte, the first one in the low bits."""
    low = values.ravel().astype(np.uint8) & 15
    return low[0::2] | low[1::2] << 4


ROW, COL = T.Var("i", "int32"), T.Var("j", "int32")


@pytest.mark.parametrize("dtype, values", [("int4", INT4), ("uint4", UINT4)])
@pytest.mark.parametrize("kind", [T.ForKind.SERIAL, T.ForKind.VECTORIZED])
def test_reading_nibbles(dtype, values, kind):
    a, b = buffer("A", (16,), dtype), buffer("B", (16,), "int32")
    body = loop(ROW, 16, T.BufferStore(b, prim.Cast(prim_type("int32"), a[ROW]), [ROW]), kind)
    got = execute([a, b], body, packed(values), np.zeros(16, np.int32))
    assert got.tolist() == values.tolist()


@pytest.mark.parametrize("kind", [T.ForKind.SERIAL, T.ForKind.VECTORIZED, T.ForKind.PARALLEL])
@pytest.mark.parametrize("dtype, values", [("int4", INT4), ("uint4", UINT4)])
def test_writing_nibbles_keeps_the_neighbour(dtype, values, kind):
    a, b = buffer("A", (16,), "int32"), buffer("B", (32,), dtype)
    store = T.BufferStore(b, prim.Cast(prim_type(dtype), a[ROW]), [ROW * 2 + 1])
    before = np.arange(16, dtype=np.uint8) * 16 + 5
    got = execute([a, b], loop(ROW, 16, store, kind), values.astype(np.int32) + 32, before)
    assert (got & 15 == 5).all() and got.tolist() == [(v & 15) << 4 | 5 for v in values.tolist()]


def test_rows_of_nibbles():
    a, b = buffer("A", (3, 6), "int4"), buffer("B", (6, 4), "int4")
    body = loop(ROW, 3, loop(COL, 4, T.BufferStore(b, a[ROW, COL + 1], [ROW * 2, COL])))
    values = np.random.default_rng(0).integers(-8, 8, (3, 6)).astype(np.int8)
    want = np.zeros((6, 4), np.int8)
    want[::2] = values[:, 1:5]
    assert (execute([a, b], body, packed(values), np.zeros(12, np.uint8)) == packed(want)).all()


OPERATORS = {
    prim.Add: lambda x, y: x + y,
    prim.Sub: lambda x, y: x - y,
    prim.Mul: lambda x, y: x * y,
    prim.FloorDiv: lambda x, y: x // y if y else 0,
    prim.LShift: lambda x, y: x << y if 0 <= y < 4 else 0,
    prim.RShift: lambda x, y: x >> y if 0 <= y < 4 else -(x < 0),
    prim.Max: max,
    prim.BitwiseXor: lambda x, y: x ^ y,
}


@pytest.mark.parametrize("node", OPERATORS, ids=lambda node: node.__name__)
@pytest.mark.parametrize("dtype, values", [("int4", INT4), ("uint4", UINT4)])
def test_arithmetic_wraps_at_four_bits(dtype, values, node):
    a, b, c = buffer("A", (16,), dtype), buffer("B", (16,), dtype), buffer("C", (256,), dtype)
    body = loop(ROW, 16, loop(COL, 16, T.BufferStore(c, node(a[ROW], b[COL]), [ROW * 16 + COL])))
    got = execute([a, b, c], body, packed(values), packed(values), np.zeros(128, np.uint8))
    want = np.array([OPERATORS[node](x, y) for x in values.tolist() for y in values.tolist()])
    assert (got == packed(want & 15)).all()


def test_float_to_nibble_saturates():
    a, b = buffer("A", (8,), "float32"), buffer("B", (8,), "int4")
    body = loop(ROW, 8, T.BufferStore(b, prim.Cast(prim_type("int4"), a[ROW]), [ROW]))
    values = np.float32([-100, -8.9, -0.5, 0.99, 7.5, 8, np.inf, np.nan])
    got = execute([a, b], body, values, np.zeros(4, np.uint8))
    assert (got == packed(np.array([-8, -8, 0, 0, 7, 7, 7, 0]))).all()


def test_four_bit_floats():
    kind = np.dtype(ml_dtypes.float4_e2m1fn)
    a, b = buffer("A", (16,), "float4_e2m1fn"), buffer("B", (16,), "float32")
    body = loop(ROW, 16, T.BufferStore(b, prim.Cast(prim_type("float32"), a[ROW]), [ROW]))
    codes = np.arange(16, dtype=np.uint8)
    got = execute([a, b], body, packed(codes), np.zeros(16, np.float32))
    assert (got == codes.view(kind).astype(np.float32)).all()
    body = loop(ROW, 16, T.BufferStore(a, prim.Cast(prim_type("float4_e2m1fn"), b[ROW]), [ROW]))
    values = np.float32(
        [0, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6, 7, 100, -0.1, -5.1, np.inf, -np.inf, 0.26]
    )
    got = execute([b, a], body, values, np.zeros(8, np.uint8))
    assert (got == packed(values.astype(kind).view(np.uint8))).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_copies_through_temporaries_keep_nan_payloads(dtype):
    wide = dtype == "bfloat16"
    codes = np.arange(1 << 16, dtype=np.uint16) if wide else np.arange(256, dtype=np.uint8)
    a, b = buffer("A", (codes.size,), dtype), buffer("B", (codes.size,), dtype)
    local, x = buffer("L", (1,), dtype, scope="local"), T.Var("x", dtype)
    body = T.SeqStmt(
        [
            T.AllocBuffer(local),
            T.Bind(x, a[ROW]),
            T.BufferStore(local, T.if_then_else(ROW >= 0, x, x), [0]),
            T.BufferStore(b, T.Select(ROW < 7, local[0], x), [ROW]),
        ]
    )
    got = execute([a, b], loop(ROW, codes.size, body), codes, np.zeros_like(codes))
    assert (got == codes).all()


def test_constants_are_encoded_when_compiled():
    b = buffer("B", (4,), "float8_e5m2")
    func = T.PrimFunc([b], T.BufferStore(b, T.FloatImm("float8_e5m2", 1.3), [0]))
    store = legalize_numerics(func).body
    assert isinstance(store.value, prim.IntImm) and str(store.buffer.dtype) == "uint8"
    assert int(store.value.value) == int(
        np.float32(1.3).astype(ml_dtypes.float8_e5m2).view(np.uint8)
    )


def test_every_trace_of_the_narrow_type_is_gone():
    a, b = buffer("A", (8, 8), "bfloat16"), buffer("B", (8, 8), "bfloat16")
    pointer = T.Var("p", ir.PointerType(prim_type("bfloat16")))
    view = buffer("V", (64,), "bfloat16")
    shared = buffer("S", (64,), "bfloat16", scope="shared")
    body = T.SeqStmt(
        [
            T.AllocBuffer(shared),
            T.DeclBuffer(view, data=pointer),
            T.BufferStore(shared, a[0, 1] + view[ROW], [3]),
            T.BufferStore(b, T.exp(shared[3]), [1, 1]),
            T.Evaluate(T.address_of(b[0, 0])),
        ]
    )
    func = legalize_numerics(T.PrimFunc([a, b, pointer, ROW], body))
    found = []
    tvm_ffi.structural_walk(func, (ir.PrimType, lambda t: found.append(str(t.dtype))))
    tvm_ffi.structural_walk(func, (ir.Expr, lambda e: found.append(str(e.ty))))
    assert not any("bfloat16" in name for name in found)
    assert T.analysis.verify_well_formed(tvm.IRModule({"f": func.with_attr("global_symbol", "f")}))


def test_functions_without_narrow_types_are_returned_as_they_are():
    a = buffer("A", (8,), "float16")
    func = T.PrimFunc([a], T.BufferStore(a, a[0], [1]))
    assert legalize_storage(func).same_as(func)
    assert not legalize_storage(func, native_half=False).same_as(func)


def test_rounding_in_passing_needs_no_narrow_buffer():
    a = buffer("A", (256,), "float32")
    rounded = prim.Cast(prim_type("float32"), prim.Cast(prim_type("bfloat16"), a[ROW]))
    values = np.random.default_rng(0).standard_normal(256).astype(np.float32)
    got = execute([a], loop(ROW, 256, T.BufferStore(a, rounded, [ROW])), values)
    assert (got == values.astype(ml_dtypes.bfloat16).astype(np.float32)).all()
