"""Data types: names, conversions, calling, storage of types TVM does not know."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest
import torch
import tvm
from tvm import ir
from tvm import tirx as tir

import tilelang.language as T
from tilelang import dtypes
from tilelang.dtypes import declared_dtype, dtype
from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir.dtype import NAMES


def var(name: str) -> ir.Var:
    return tir.Var("x", name)


def test_there_are_173_constants_named_as_they_are_called():
    assert len(NAMES) == len(set(NAMES)) == 173
    aliases = {"short", "int", "uint", "long", "half", "float", "double"}
    for name in set(NAMES) - aliases:
        assert getattr(T, name) == name and getattr(dtypes, name) is dtype(name)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("half", "float16"),
        ("double", "float64"),
        ("float", "float32"),
        ("int", "int32"),
        ("long", "int64"),
        ("short", "int16"),
        ("uint", "uint32"),
        ("ulong", "uint64"),
        (int, "int32"),
        (float, "float32"),
        (bool, "bool"),
        (np.float64, "float64"),
        (np.dtype("int8"), "int8"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (ml_dtypes.float8_e4m3fn, "float8_e4m3fn"),
        (torch.bfloat16, "bfloat16"),
        (torch.bool, "bool"),
        (torch.float8_e5m2, "float8_e5m2"),
        (torch.float4_e2m1fn_x2, "float4_e2m1fnx2"),
        (ir.PrimType("int4"), "int4"),
        (tvm.DataType("float32x4"), "float32x4"),
        ("tfloat32", "tfloat32"),
        ("int4x8", "int4x8"),
    ],
)
def test_every_spelling_is_accepted(spelling, name):
    assert dtype(spelling) == name
    assert dtype(spelling) is dtype(name)


@pytest.mark.parametrize("bad", ["flaot32", "float33", 3, None, torch.complex64, object])
def test_what_is_no_dtype_is_refused(bad):
    with pytest.raises(TraceTypeError, match="dtype"):
        dtype(bad)


def test_a_dtype_is_an_immutable_hashable_string():
    assert T.float16 == "float16" and hash(T.float16) == hash("float16")
    assert {T.int8: 1}["int8"] == 1
    assert "int" in T.int16 and "8" in T.uint8 and "uint" not in T.int16
    assert f"{T.bfloat16}" == str(T.bfloat16) == "bfloat16"
    assert pickle.loads(pickle.dumps(T.tfloat32)) is T.tfloat32
    with pytest.raises(AttributeError, match="immutable"):
        T.float16.bits2 = 3


@pytest.mark.parametrize(
    ("name", "bits", "size", "lanes", "itemsize"),
    [
        ("bool", 8, 1, 1, 1),
        ("int4", 4, 1, 1, 1),
        ("float16x2", 16, 2, 2, 4),
        ("float6_e2m3fnx4", 6, 1, 4, 3),
        ("float4_e2m1fnx2", 4, 1, 2, 1),
        ("tfloat32", 32, 4, 1, 4),
        ("float4_e2m1_unpacked", 8, 1, 1, 1),
    ],
)
def test_sizes(name, bits, size, lanes, itemsize):
    kind = dtype(name)
    assert (kind.bits, kind.bytes, kind.lanes, kind.itemsize) == (bits, size, lanes, itemsize)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("float16", torch.float16),
        ("uint16", torch.uint16),
        ("int4", torch.int8),
        ("float4_e2m1fn", torch.float4_e2m1fn_x2),
        ("float4_e2m1fnx2", torch.float4_e2m1fn_x2),
        ("tfloat32", torch.float32),
        ("float8_e4m3", torch.float8_e4m3fn),
        ("float8_e8m0fnu", torch.float8_e8m0fnu),
        ("handle", None),
    ],
)
def test_as_torch(name, expected):
    assert dtype(name).as_torch() == expected


@pytest.mark.parametrize("name", ["float6_e2m3fn", "float8_e3m4", "float32x4"])
def test_as_torch_refuses_what_torch_lacks(name):
    with pytest.raises(TraceTypeError, match=f"{name} has no torch equivalent"):
        dtype(name).as_torch()


def test_as_torch_and_back_for_every_scalar_type_of_torch():
    own = ("bool", "int8", "int64", "uint32", "float64", "bfloat16", "float8_e5m2fnuz")
    assert all(dtype(dtype(name).as_torch()) == name for name in own)


def test_as_numpy():
    assert T.bfloat16.as_numpy() == ml_dtypes.bfloat16
    assert T.float8_e4m3.as_numpy() == ml_dtypes.float8_e4m3fn
    assert T.bool.as_numpy() == np.bool_
    with pytest.raises(TraceTypeError, match="no numpy equivalent"):
        T.float32x2.as_numpy()


def test_predicates():
    assert T.is_float4("float4_e2m1fn") and T.is_float4(T.float4_e2m1_unpacked)
    assert T.is_float4_e2m1fn("float4_e2m1fnx8") and not T.is_float4_e2m1fn("float8_e5m2")
    assert T.is_float4_e2m1_unpacked("float4_e2m1_unpacked")
    assert T.is_f8f6f4_family(T.float6_e3m2fn) and not T.is_f8f6f4_family(T.float16)
    assert T.float4_e2m1_unpacked.is_float and not T.float4_e2m1_unpacked.is_integer
    assert T.uint8.is_integer and not T.bool.is_integer and not T.bool.is_float


def test_get_tvm_dtype_passes_types_through():
    pointer = ir.PointerType(ir.PrimType("int8"))
    assert T.get_tvm_dtype(pointer) is pointer
    assert T.get_tvm_dtype(ir.PrimType("int8")) is T.int8


def test_gemm_operand_types():
    T.validate_gemm_ab_dtypes("float16", T.half)
    T.validate_gemm_ab_dtypes("float8_e4m3fn", "float6_e2m3fn", allow_f8f6f4_mixed=True)


@pytest.mark.parametrize(
    ("a", "b", "options"),
    [
        ("float16", "bfloat16", {}),
        ("float8_e4m3fn", "float8_e5m2", {}),
        ("float16", "float8_e5m2", {"allow_f8f6f4_mixed": True}),
        ("float4_e2m1_unpacked", "float4_e2m1_unpacked", {"a_in_tmem": True}),
    ],
)
def test_gemm_operand_types_refused(a, b, options):
    with pytest.raises(TraceTypeError, match="gemm"):
        T.validate_gemm_ab_dtypes(a, b, **options)


# --- calling a dtype ----------------------------------------------------------------------------


def test_calling_without_arguments_makes_a_variable():
    made = T.int64()
    assert isinstance(made, ir.Var) and made.ty == "int64"


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("int8", -128, "T.int8(-128)"),
        ("uint64", 2**64 - 1, "T.uint64(18446744073709551615)"),
        ("bool", 3, "T.bool(True)"),
        ("float16", "-inf", 'T.float16("-inf")'),
        ("float16", 1e6, 'T.float16("inf")'),
        ("float8_e4m3fn", 1e6, 'T.float8_e4m3fn("nan")'),
        ("int32", 2.9, "2"),
        ("int8", -1e9, "T.int8(-128)"),
        ("int8", float("nan"), "T.int8(0)"),
        ("float32x4", 1, "T.Broadcast(T.float32(1.0), 4)"),
        ("int32", np.int64(7), "7"),
    ],
)
def test_constants(kind, value, text):
    assert repr(dtype(kind)(value)) == text


def test_calling_with_an_expression_casts():
    assert repr(T.float16(var("int32"))) == 'T.Cast("float16", x)'
    x = var("int8")
    assert T.int8(x).same_as(x)
    assert repr(T.int32(var("int32") == 3)) == 'T.Cast("int32", x == 3)'


def test_calling_with_several_values_packs_lanes():
    pair = T.bfloat16x2(var("float32"), 1)
    assert isinstance(pair, tir.Shuffle) and pair.ty == "bfloat16x2"
    assert repr(pair) == 'T.Shuffle([T.Cast("bfloat16", x), T.bfloat16(1.0)], [0, 1])'


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: T.int8(128), "128 does not fit int8"),
        (lambda: T.uint8(-1), "-1 does not fit uint8"),
        (lambda: T.bfloat16x2(1, 2, 3), "2 lanes, found 3 values"),
        (lambda: T.int32("7"), "only texts"),
        (lambda: T.float32([1.0]), "found list"),
        (lambda: T.float4_e2m1_unpacked(1), "no constants"),
        (
            lambda: T.float32(tir.decl_buffer((4,), "float32", "A", layout=None)),
            "buffer A; index it",
        ),
    ],
)
def test_calls_that_make_no_sense(make, message):
    with pytest.raises((TraceError, TraceTypeError), match=message) as failure:
        make()
    assert __file__ in str(failure.value)


# --- types TVM does not know --------------------------------------------------------------------


def test_tfloat32_is_stored_as_float32_and_remembered_on_the_buffer():
    buffer = tir.decl_buffer((4,), T.tfloat32.prim_type, "A", layout=None)
    plain = tir.decl_buffer((4,), "float32", "B", layout=None)
    assert str(buffer.dtype) == "float32" and declared_dtype(buffer) == "tfloat32"
    assert declared_dtype(buffer[0]) == "tfloat32" and declared_dtype(buffer[0:2]) == "tfloat32"
    assert declared_dtype(plain) == "float32" and declared_dtype(plain[0] + 1.0) == "float32"


def test_the_mark_survives_passes_and_json():
    buffer = tir.decl_buffer((4,), T.float4_e2m1_unpacked.prim_type, "A", layout=None)
    index = tir.Var("i", "int32")
    func = tir.PrimFunc([buffer, index], tir.BufferStore(buffer, buffer[index], [0]))
    module = tvm.IRModule({"f": func.with_attr("global_symbol", "f")})
    for step in (tir.transform.StmtSimplify, tir.transform.FlattenBuffer):
        module = step()(module)
    module = ir.load_json(ir.save_json(module))
    assert declared_dtype(module["f"].params[0]) == "float4_e2m1_unpacked"


def test_casting_to_tfloat32_rounds():
    rounded = T.tfloat32(var("float32"))
    assert rounded.op.name == "tl.round_tfloat32" and rounded.ty.dtype == "float32"
    buffer = tir.decl_buffer((4,), T.tfloat32.prim_type, "A", layout=None)
    load = buffer[0]
    assert T.tfloat32(load).same_as(load), "a value of a tfloat32 buffer is rounded already"


def test_tvm_takes_a_dtype_as_a_dtype():
    assert tir.Var("x", T.tfloat32).ty == "float32"
    assert tir.const(1, T.int8).ty == "int8"
    assert tir.decl_buffer((4,), T.float16, "A", layout=None).dtype == "float16"
