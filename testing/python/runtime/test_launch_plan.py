"""Launch plans as data: JSON form, validation, expressions."""

import random

import pytest
import torch
from launch_helpers import K, M, N, bind, plan_of, tensor

from tilelang._native import make_binder, make_cpu_launcher
from tilelang.engine.expr_program import Sym, evaluate, expr_from_json, format_expr, symbols
from tilelang.engine.launch_plan import (
    ArgRef,
    Check,
    KernelLaunch,
    LaunchPlan,
    Param,
    Workspace,
)
from tilelang.errors import LaunchError


def test_json_round_trip():
    plan = LaunchPlan(
        "gemm",
        ("M", "s"),
        (
            Param("A", "tensor", "float16", shape=(Sym(0), 8), strides=(Sym(1), 1), access="rw"),
            Param("n", "scalar", "int64", symbol=0),
            Param("p", "pointer", "handle"),
            Param("C", "tensor", "int4", shape=(("*", Sym(0), 2),), access="w", role="out"),
        ),
        (Check(("==", ("%", Sym(0), 8), 0), "M must be divisible by 8"),),
        (Workspace("uint8", (("max", Sym(0), 16),)),),
        (
            KernelLaunch(
                "gemm_kernel",
                (("//", ("+", Sym(0), 127), 128), 1, 1),
                (128, 1, 1),
                (ArgRef("param", 0), ArgRef("symbol", 0), ArgRef("workspace", 0)),
                scratch_bytes=256,
                dyn_smem=("*", 2, 1024),
                cluster=(2, 1, 1),
                flags=("cooperative",),
            ),
        ),
        (3,),
        True,
    )
    assert LaunchPlan.from_json(plan.to_json()) == plan
    assert plan.to_json() == LaunchPlan.from_json(plan.to_json()).to_json()


def test_inputs_are_the_parameters_a_caller_passes():
    plan = plan_of(tensor("A", N), tensor("B", N, role="out"), tensor("C", N))
    assert [p.name for p in plan.inputs()] == ["A", "C"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "name is empty"),
        ({"params": (Param("A", "tensor", "float32", shape=(Sym(3),)),)}, "symbol 3"),
        ({"params": (Param("A", "array", "float32"),)}, "unknown kind 'array'"),
        ({"params": (Param("A", "tensor", "float32", access="x"),)}, "unknown access 'x'"),
        ({"params": (Param("A", "scalar", "int32", role="out"),)}, "only tensors can be outputs"),
        ({"params": (tensor("A", 4, strides=(1, 1)),)}, "differ in rank"),
        ({"params": (tensor("A", 4, strides=(1,), role="out"),)}, "always compact"),
        ({"params": (tensor("A", 4, symbol=0),)}, "only scalars carry a symbol"),
        ({"kernels": (KernelLaunch("k", args=(ArgRef("workspace", 0),)),)}, "out of range"),
        ({"kernels": (KernelLaunch("k", grid=(1, 1)),)}, "three extents"),
        ({"kernels": (KernelLaunch("k", scratch_bytes=-1),)}, "negative scratch_bytes"),
        ({"params": (tensor("A", 4),), "returns": (0,)}, "not an output"),
        ({"params": (tensor("A", 4, align=12),)}, "no power of two"),
        ({"params": (Param("x", "scalar", "int32", align=4),)}, "only tensors have an alignment"),
        ({"checks": (Check(("**", 1, 2), "x"),)}, "unknown operator"),
        ({"checks": (Check(("+", 1), "x"),)}, "takes 2 operands"),
        ({"checks": (Check(2**63, "x"),)}, "64-bit"),
    ],
)
def test_invalid_plans_are_refused(change, message):
    with pytest.raises(LaunchError, match=message):
        LaunchPlan(**{"name": "f", "symbols": ("n",), **change})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 2, "name": 3}'])
def test_malformed_json_is_refused(text):
    with pytest.raises(LaunchError):
        LaunchPlan.from_json(text)
    with pytest.raises(ValueError):
        make_binder(text)


@pytest.mark.parametrize("value", [1.5, None, [], True, {"sym": 0, "x": 1}, [1, 2]])
def test_malformed_expressions_are_refused(value):
    with pytest.raises(ValueError):
        expr_from_json(value)


BINARY = ["+", "-", "*", "//", "%", "min", "max", "<<", ">>", "&", "|", "^"]
LOGICAL = ["<", "<=", ">", ">=", "==", "!=", "and", "or"]


def random_expr(rng, depth):
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([N, M, K, rng.randint(-20, 20)])
    op = rng.choice([*BINARY, *LOGICAL, "not", "select"])
    arity = {"not": 1, "select": 3}.get(op, 2)
    return (op, *(random_expr(rng, depth - 1) for _ in range(arity)))


@pytest.mark.parametrize("seed", range(200))
def test_native_evaluation_equals_python(seed):
    rng = random.Random(seed)
    expr = random_expr(rng, 4)
    values = [rng.randint(0, 9) for _ in range(3)]
    args = [torch.empty(values)]
    try:
        expected = evaluate(expr, values)
    except ZeroDivisionError:
        with pytest.raises(ValueError, match="division by zero"):
            bind(tensor("A", N, M, K), args=args, kernel={"dyn_smem": expr})
        return
    bound = bind(tensor("A", N, M, K), args=args, kernel={"dyn_smem": expr})
    assert bound.kernels[0].dyn_smem == expected


def test_logical_operators_do_not_evaluate_what_they_need_not():
    expr = ("and", ("!=", N, 0), ("==", ("%", 16, N), 0))
    assert evaluate(expr, [0]) == 0
    assert evaluate(("select", ("==", N, 0), 7, ("//", 1, N)), [0]) == 7


def test_formatting_keeps_precedence():
    expr = ("*", ("+", Sym(0), 1), ("-", Sym(1), ("-", 2, Sym(0))))
    assert format_expr(expr, ["a", "b"]) == "(a + 1) * (b - (2 - a))"
    assert list(symbols(expr)) == [0, 1, 0]


def test_worker_count_must_match():
    with pytest.raises(ValueError, match="1 kernels, got 0 workers"):
        make_cpu_launcher(plan_of(tensor("A", N)), [])
