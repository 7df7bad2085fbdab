"""The type rule of mixed operands and the operators built on it."""

from __future__ import annotations

import pytest
from tvm import ir
from tvm import tirx as tir

import tilelang.language as T
from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import arith
from tilelang.ir.values import cast, match_types


def var(kind: str, name: str = "x") -> ir.Var:
    return tir.Var(name, kind)


@pytest.mark.parametrize(
    ("kind", "number", "result"),
    [
        ("int8", 1, "int8"),
        ("int8", 300, "int32"),
        ("uint8", -1, "int32"),
        ("int32", 2**40, "int64"),
        ("int32", 0.5, "float32"),
        ("float16", 0.1, "float16"),
        ("bfloat16", 3, "bfloat16"),
        ("float8_e4m3fn", 1.5, "float8_e4m3fn"),
        ("float64", 0.1, "float64"),
        ("bool", 1, "int32"),
        ("float32x4", 2, "float32x4"),
    ],
)
def test_a_python_number_takes_the_dtype_of_the_other_operand(kind, number, result):
    assert arith.add(var(kind), number).ty == result
    assert arith.add(number, var(kind)).ty == result


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("int8", "int32", "int32"),
        ("uint32", "int32", "uint32"),
        ("int64", "uint8", "int64"),
        ("int32", "float16", "float16"),
        ("float16", "float32", "float32"),
        ("float16", "bfloat16", "float32"),
        ("float8_e5m2", "float32", "float32"),
        ("bool", "int8", "int8"),
        ("float16", "float32x2", "float32x2"),
    ],
)
def test_two_expressions_take_the_wider_dtype(a, b, result):
    assert arith.multiply(var(a), var(b, "y")).ty == result
    assert arith.multiply(var(b), var(a, "y")).ty == result


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("float8_e4m3fn", "float8_e5m2", "no common type of float8_e4m3fn and float8_e5m2"),
        ("float32x2", "float32x4", "2 and 4 lanes"),
    ],
)
def test_types_without_a_common_one(a, b, message):
    with pytest.raises(TraceTypeError, match=message):
        arith.add(var(a), var(b, "y"))


def test_three_operands():
    matched = match_types([1, var("float16"), var("int32", "y")], "f")
    assert [str(m.ty.dtype) for m in matched] == ["float16"] * 3


def test_python_numbers_stay_python():
    assert arith.add(1, 2) == 3 and isinstance(T.ceildiv(10, 3), int)
    assert T.ceildiv(-7, 2) == -3 and T.cdiv(7, 7) == 1 and T.align_up(10, 8) == 16
    assert T.floordiv(-7, 2) == -4 and T.floormod(-7, 2) == 1
    assert T.truncdiv(-7, 2) == -3 and T.truncmod(-7, 2) == -1
    assert T.max(1, 5, 3) == 5 and T.min(1.5, 2) == 1.5
    assert T.clamp(9, 0, 4) == 4 and T.shift_left(1, 4) == 16 and T.bitwise_not(0) == -1


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda: arith.add(T.int8(127), 1), "T.int8(-128)"),
        (lambda: arith.multiply(T.uint8(16), 16), "T.uint8(0)"),
        (lambda: T.bitwise_not(T.uint8(1)), "T.uint8(254)"),
        (lambda: T.floordiv(T.int32(-7), 2), "-4"),
        (lambda: cast(300, "int8"), "T.int8(44)"),
        (lambda: arith.binary("lt", T.int32(3), 5), "T.bool(True)"),
    ],
)
def test_integer_constants_fold_and_wrap(result, text):
    assert repr(result()) == text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda: T.ceildiv(var("int32"), 4), "(x + 3) // 4"),
        (lambda: T.max(var("float16"), 0), "T.max(x, T.float16(0.0))"),
        (lambda: arith.negate(var("uint8")), "T.uint8(0) - x"),
        (lambda: arith.negate(var("float32")), "x * T.float32(-1.0)"),
        (lambda: T.bitwise_not(var("bool")), "not x"),
        (lambda: T.bitwise_and(var("bool"), True), "x & T.bool(True)"),
        (lambda: arith.logical_and(var("bool"), var("int32", "n")), "x and n != 0"),
        (lambda: T.shift_left(var("uint8"), 9), "x << T.uint8(8)"),
        (lambda: T.shift_right(var("int32"), var("int64", "n")), 'x >> T.Cast("int32", n)'),
        (lambda: T.truncdiv(var("int32"), 3), "T.Div(x, 3)"),
        (lambda: T.Select(var("bool"), 1, var("int8", "y")), "T.Select(x, T.int8(1), y)"),
    ],
)
def test_expressions(result, text):
    assert repr(result()) == text


def test_if_then_else():
    chosen = T.if_then_else(var("int32") < 3, var("float16", "y"), 0)
    assert chosen.op.name == "prim.if_then_else" and chosen.ty == "float16"
    y = var("int32", "y")
    assert T.if_then_else(True, y, 0).same_as(y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: arith.truediv(var("int32"), 2), r"use // \(floor\) or T.truncdiv"),
        (lambda: arith.truediv(var("uint8"), var("int32", "y")), "/ is not defined for int32"),
        (lambda: arith.floordiv(var("float32"), 2.0), "use T.floor"),
        (lambda: arith.floormod(var("float16"), var("float16", "y")), "T.fmod"),
        (lambda: T.ceildiv(var("float32"), 2), "not defined for float32"),
        (lambda: T.bitwise_and(var("float32"), 1), "& is not defined for float32"),
        (lambda: T.bitwise_not(var("bfloat16")), "~ is not defined for bfloat16"),
        (lambda: T.shift_left(var("float32"), 1), "<< is not defined for float32"),
        (lambda: T.shift_left(var("int32"), -1), "amount must be an integer >= 0"),
        (lambda: T.shift_left(var("int32"), 1.5), "amount must be an integer >= 0"),
        (lambda: arith.floordiv(var("int32"), 0), "division by zero"),
        (lambda: T.floormod(5, 0), "division by zero"),
        (lambda: T.max(var("int32"), "3"), "found str"),
        (lambda: T.Select("yes", 1, 2), "found str"),
        (lambda: arith.logical_not(T.address_of(_buffer())), "a pointer is no condition"),
        (lambda: arith.add(_buffer(), 1), "buffer A; index it"),
        (lambda: T.index_to_coordinates(3, (2, 0)), "positive extents"),
    ],
)
def test_refused(make, message):
    with pytest.raises((TraceError, TraceTypeError), match=message) as failure:
        make()
    assert __file__ in str(failure.value), "the error shows the user's line"


def _buffer() -> ir.Var:
    return tir.decl_buffer((4,), "float32", "A", layout=None)


def test_a_one_element_variable_is_read():
    variable = tir.decl_buffer((1,), "int32", "n", scope="local.var", layout=None)
    assert repr(arith.add(variable, 1)) == "n[0] + 1"


def test_index_to_coordinates():
    assert T.index_to_coordinates(23, (2, 3, 4)) == [1, 2, 3]
    x = var("int32")
    assert [repr(c) for c in T.index_to_coordinates(x, (4, 8))] == ["x // 8", "x % 8"]


def test_every_node_has_the_line_of_the_user():
    total = arith.add(var("int32"), var("int64", "y"))
    assert total.span.source_name.name == __file__
    assert T.max(var("int32"), 1).span.line == total.span.line + 2
