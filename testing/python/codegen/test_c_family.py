"""The printer of C-like source: what it prints means what the expression means."""

import ctypes
import random

import pytest
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim

from tilelang.codegen import CFamilyPrinter, Dialect
from tilelang.codegen.c_family import quoted
from tilelang.codegen.names import Names
from tilelang.cpu.codegen_c import CPrinter
from tilelang.errors import CodegenError
from tilelang.jit.adapter.c_library import compile_c

BINARY = {
    prim.Add: lambda a, b: a + b,
    prim.Sub: lambda a, b: a - b,
    prim.Mul: lambda a, b: a * b,
    prim.Min: min,
    prim.Max: max,
    prim.BitwiseAnd: lambda a, b: a & b,
    prim.BitwiseOr: lambda a, b: a | b,
    prim.BitwiseXor: lambda a, b: a ^ b,
}
DIVISIONS = {prim.FloorDiv: lambda a, b: a // b, prim.FloorMod: lambda a, b: a % b}
COMPARE = {
    prim.LT: lambda a, b: a < b,
    prim.LE: lambda a, b: a <= b,
    prim.GT: lambda a, b: a > b,
    prim.EQ: lambda a, b: a == b,
    prim.NE: lambda a, b: a != b,
}


def wrap(value):
    return (value + 2**63) % 2**64 - 2**63


def tree(rng, variables, depth):
    """A random int64 expression, and its value as a function of the variables."""
    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.4:
            value = rng.randint(-9, 9)
            return T.const(value, "int64"), lambda env: value
        var = rng.choice(variables)
        return var, lambda env: env[var.name]
    a, one = tree(rng, variables, depth - 1)
    pick = rng.random()
    if pick < 0.1:
        return prim.BitwiseNot(a), lambda env: ~one(env)
    if pick < 0.25:
        kind, meaning = rng.choice(list(DIVISIONS.items()))
        return kind(a, T.const(7, "int64")), lambda env: meaning(one(env), 7)
    b, other = tree(rng, variables, depth - 1)
    if pick < 0.4:
        condition, holds = comparison(rng, variables, depth - 1)
        return prim.Select(condition, a, b), lambda env: one(env) if holds(env) else other(env)
    kind, meaning = rng.choice(list(BINARY.items()))
    return kind(a, b), lambda env: wrap(meaning(one(env), other(env)))


def comparison(rng, variables, depth):
    if depth > 1 and rng.random() < 0.5:
        a, one = comparison(rng, variables, depth - 1)
        b, other = comparison(rng, variables, depth - 1)
        if rng.random() < 0.5:
            return prim.And(a, b), lambda env: one(env) and other(env)
        return prim.Or(a, prim.Not(b)), lambda env: one(env) or not other(env)
    kind, meaning = rng.choice(list(COMPARE.items()))
    a, one = tree(rng, variables, max(0, depth - 1))
    b, other = tree(rng, variables, max(0, depth - 1))
    return kind(a, b), lambda env: meaning(one(env), other(env))


def test_random_expressions_keep_their_meaning(tmp_path):
    """Parentheses stand where the precedence of C needs them."""
    rng = random.Random(3)
    functions, meanings = {}, []
    for number in range(60):
        variables = [T.Var(name, "int64") for name in "abc"]
        expr, meaning = tree(rng, variables, 5)
        out = T.Var("out", ir.PointerType(ir.PrimType("int64")))
        cell = T.decl_buffer((1,), "int64", "cell", layout=None)
        body = T.SeqStmt([T.DeclBuffer(cell, data=out), T.BufferStore(cell, expr, [0])])
        functions[f"f{number}"] = T.PrimFunc([*variables, out], body)
        meanings.append(meaning)
    path = tmp_path / "expressions.so"
    path.write_bytes(compile_c(CPrinter().module(functions), ["-O0"]))
    library = ctypes.CDLL(str(path))
    for number, meaning in enumerate(meanings):
        for _ in range(8):
            env = {name: rng.randint(-20, 20) for name in "abc"}
            result = ctypes.c_int64()
            arguments = [ctypes.c_int64(env[name]) for name in "abc"]
            getattr(library, f"f{number}")(*arguments, ctypes.byref(result))
            assert result.value == meaning(env), functions[f"f{number}"].script()


def printed(expr):
    return CPrinter().expr(expr)


@pytest.mark.parametrize(
    "dtype, value, text",
    [
        ("int32", -(2**31), "INT32_MIN"),
        ("int64", -(2**63), "INT64_MIN"),
        ("int64", 5, "5LL"),
        ("uint32", 2**32 - 1, "4294967295u"),
        ("bool", 1, "1"),
    ],
)
def test_integer_constants(dtype, value, text):
    assert printed(T.const(value, dtype)) == text


@pytest.mark.parametrize("value", [0.1, 1e-45, 3.4e38, -0.0, 1.0, 123456.789])
def test_float_constants_are_exact(value):
    text = printed(T.FloatImm("float64", value))
    assert float(text) == value and text.startswith("-") == str(value).startswith("-")


def test_strings_survive_in_any_alphabet():
    assert quoted('a"b\\c') == '"a\\042b\\134c"'
    assert quoted("é1") == '"\\303\\2511"'
    assert quoted("line\n") == '"line\\012"' and "?" not in quoted("??=")


def test_names_are_legal_and_unique():
    names = Names(["for"])
    first, second, keyword, odd, digit = (T.Var(n, "int32") for n in ("x", "x", "for", "a.b", "1"))
    got = [names.of(var) for var in (first, second, keyword, odd, digit)]
    assert got == ["x", "x_1", "for_1", "a_b", "_1"] and names.of(first) == "x"


def test_a_dtype_without_a_type_is_refused():
    dialect = Dialect("Toy", {"int32": "int"})
    with pytest.raises(CodegenError, match="dtype float32 has no Toy type"):
        CFamilyPrinter(dialect).expr(prim.Cast(ir.PrimType("float32"), T.Var("x", "int32")))


def test_a_function_without_a_form_is_refused():
    call = ir.Call(ir.Op.get("tirx.atanh"), [T.Var("x", "float16")], ret_ty="float16")
    with pytest.raises(CodegenError, match="atanh has no C form for float16"):
        printed(call)


def test_a_statement_without_a_form_is_refused():
    holds = T.AssertStmt(T.Var("x", "bool"), ir.StringImm("E"), [ir.StringImm("m")])
    with pytest.raises(CodegenError, match="cannot print AssertStmt as Toy"):
        CFamilyPrinter(Dialect("Toy", {})).stmt(holds)
