"""Operators, comparisons, logic, conditional expressions and builtins."""

# Kernels are traced, not run: unused names and odd expressions are the point.
# ruff: noqa: B007, B905, C416, F841, SIM222, SIM223

import numpy as np
import pytest
import torch
from frontend_util import nodes, refused, run_ints
from tvm import ir
from tvm import tirx as tir

import tilelang.language as T
from tilelang.errors import TraceError, TraceTypeError
from tilelang.interpreter import interpret

Ints = T.Tensor((16,), T.int32)
Floats = T.Tensor((4,), T.float32)


def evaluated(expression):
    """Trace ``B[0] = expression(a, b)`` on int32 variables and run it for some pairs."""

    @T.prim_func
    def f(B: Ints, a: T.int32, b: T.int32):
        compute = T.macro(expression)
        with T.Kernel(1):
            B[0] = compute(a, b)

    results = []
    for a, b in PAIRS:
        out = torch.zeros(16, dtype=torch.int32)
        interpret(f, out, a, b)
        results.append(int(out[0]))
    return results


PAIRS = [(7, 2), (-7, 2), (7, 3), (5, 5), (0, 1)]


def arithmetic(a, b):
    return a + b * 2 - 3


def division(a, b):
    return a // b * 100 + a % b


def bits(a, b):
    return (a & b) | (a ^ 6) << 2 ^ ~b


def shifts(a, b):
    return (a << b) + (a >> 1)


def powers(a, b):
    return a**3 - 2**3 + b**0


def unary(a, b):
    return -a + +b - (not a)


def comparisons(a, b):
    return (a < b) + (a <= b) * 2 + (a > b) * 4 + (a >= b) * 8 + (a == b) * 16 + (a != b) * 32


def chained(a, b):
    return (0 <= a < 10 > b) + (a == b == 5) * 2 + (1 < b <= 3 != a) * 4


def logical(a, b):
    return 1 if (a > 0 and b > 1) or not (a < b or b == 2) else 0


def ternaries(a, b):
    return a if a > b else b if b > 1 else a * b


def membership(a, b):
    return (a in (7, 0)) * 1 + (b not in [2, 3]) * 2 + (a in range(3, 8, 2)) * 4


def builtins_(a, b):
    return min(a, b, 3) * 100 + max([a, b]) * 10 + abs(a) + divmod(a, b)[1]


def more_builtins(a, b):
    return pow(a, 2) + int(any([a > 6, b > 2])) if False else a + (1 if all([a > 0, b > 1]) else 0)


@pytest.mark.parametrize(
    "expression",
    [
        arithmetic,
        division,
        bits,
        powers,
        unary,
        comparisons,
        chained,
        logical,
        ternaries,
        membership,
        builtins_,
        more_builtins,
        shifts,
    ],
)
def test_run_time_agrees_with_python(expression):
    assert evaluated(expression) == [int(expression(a, b)) for a, b in PAIRS]


def test_python_values_stay_python():
    seen = {}

    @T.prim_func
    def f(B: Ints):
        seen["types"] = [
            type(x)
            for x in (
                1 + 2,
                7 / 2,
                2**8,
                1 < 2 < 3,
                "a" + "b",
                3 in (1, 3),
                min(3, 4),
                [1] * 2,
                not 1,
                -5,
            )
        ]
        seen["short"] = (0 and undefined, 1 or undefined, "" or "x", 5 if True else undefined)  # noqa: F821
        seen["list"] = [k * k for k in range(4) if k % 2], {k: v for k, v in zip("ab", (1, 2))}

    assert seen["types"] == [int, float, int, bool, str, bool, int, list, bool, int]
    assert seen["short"] == (0, 1, "x", 5)
    assert seen["list"] == ([1, 9], {"a": 1, "b": 2})


def test_constants_of_the_ir_fold():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            size = A.ty.shape[0]
            if size * 2 == 32 and size != 17 and not size < 3:
                B[0] = 1 if size > 4 else 0
            else:
                B[0] = 9

    assert not nodes(f, tir.IfThenElse) and not nodes(f, ir.Call)
    assert run_ints(f)[0] == 1


def test_shapes_unpack_to_python_ints():
    kinds = []

    @T.prim_func
    def f(A: T.Tensor((4, 8), T.int32)):
        m, n = A.shape
        kinds.append((type(m), type(A.shape[1]), m * n, [k for k in A.shape]))

    assert kinds == [(int, int, 32, [4, 8])]


def test_run_time_logic_does_not_hide_python_values():
    @T.prim_func
    def f(A: Ints, B: Ints, n: T.int32):
        with T.Kernel(1):
            B[0] = 1 if n > 0 and True else 0
            B[1] = 1 if n > 0 or True else 0
            B[2] = 1 if False or n > 0 else 0
            if n > 0 and False:
                B[3] = 1

    assert len(nodes(f, tir.IfThenElse)) == 0
    assert run_ints(f, 5)[:4] == [1, 1, 1, 0] and run_ints(f, -5)[:4] == [0, 1, 0, 0]


def test_conditional_expression_joins_dtypes():
    @T.prim_func
    def f(A: Floats, n: T.int32):
        with T.Kernel(1):
            v = n if n > 2 else 0.5
            w = A[0] if n > 2 else 1
            A[1] = v + w

    assert [b.var.ty for b in nodes(f, tir.Bind)] == ["float32", "float32"]


def test_mixed_dtypes_promote_as_in_tvm():
    @T.prim_func
    def f(h: T.float16, i: T.int32, b: T.bool, u: T.uint8):
        assert h * 2 > 0
        x, y, z, w = h * 2, i * 1.5, b + b, i + b
        v = -u
        assert x + y + z + w + v > 0

    kinds = [bind.var.ty.dtype for bind in nodes(f, tir.Bind)]
    assert kinds == ["float16", "float32", "int32", "int32", "uint8"]


def test_the_two_halves_meet_in_float32():
    @T.prim_func
    def f(h: T.float16, b: T.bfloat16):
        x, y, z, w = h + b, b * h, h < b, b == h
        assert x + y > 0

    sums = [bind.value for bind in nodes(f, tir.Bind)]
    assert [str(value.ty.dtype) for value in sums] == ["float32", "float32", "bool", "bool"]
    assert all(value.a.ty == "float32" for value in sums)


def test_numpy_scalars_are_numbers():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            B[0] = A[np.int64(2)] * np.int32(3)

    assert run_ints(f)[0] == 6


def test_shift_by_the_width_or_more():
    @T.prim_func
    def f(A: Ints, B: Ints, n: T.int32):
        with T.Kernel(1):
            B[0] = n << 32
            B[1] = n >> 40
            B[2] = T.uint8(200) >> 9

    assert run_ints(f, -5)[:3] == [0, -1, 0]


def test_equality_with_other_things():
    seen = []

    @T.prim_func
    def f(A: Ints, B: Ints, n: T.int32):
        seen.append([n == None, n != None, A == A, A == B, A.dtype == "int32", A.shape == B.shape])  # noqa: E711
        seen.append([(1, 2) == (1, 2), A.shape != (16,), n is None, n in (None,)])

    assert seen == [[False, True, True, False, True, True], [True, False, False, False]]


def test_lambdas_build_expressions():
    i = T.dynamic("i")
    seen = []

    @T.prim_func
    def f(A: Ints):
        pick = lambda k: k + 1 if k < 3 and k != 1 else 0  # noqa: E731
        seen.append((pick(2), pick(1), pick(i)))

    two, none, expression = seen[0]
    assert (two, none) == (3, 0) and isinstance(expression, ir.Call)


def test_f_strings_show_expressions():
    seen = []

    @T.prim_func
    def f(A: Ints, n: T.int32):
        seen.append(f"{n + 1} of {A.shape[0]:>3}")

    assert seen == ["n + 1 of  16"]


def test_user_operators_take_part():
    class Scaled:
        def __init__(self, by):
            self.by = by

        def __rmul__(self, other):
            return other * self.by

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            B[0] = A[3] * Scaled(5)

    assert run_ints(f)[0] == 15


def test_division_of_integers_refused():
    with refused(TraceTypeError, "/ of two integers", "//"):

        @T.prim_func
        def f(A: Ints, n: T.int32):
            A[0] = n / 2  # BAD


def test_floor_division_of_floats_refused():
    with refused(TraceTypeError, "% needs integers", "T.fmod"):

        @T.prim_func
        def f(A: Floats):
            with T.Kernel(1):
                A[0] = A[1] % 2.0  # BAD


def test_division_by_zero_refused():
    with refused(TraceError, "division by zero"):

        @T.prim_func
        def f(A: Ints, n: T.int32):
            k = n // 0  # BAD


def test_negative_shift_refused():
    with refused(TraceError, "negative amount"):

        @T.prim_func
        def f(A: Ints, n: T.int32):
            k = n << -1  # BAD


def test_bit_operators_on_floats_refused():
    with refused(TraceTypeError, "&"):

        @T.prim_func
        def f(A: Floats, n: T.float32):
            k = n & 1  # BAD

    with refused(TraceTypeError, "~ needs an integer"):

        @T.prim_func
        def g(A: Floats, n: T.float32):
            k = ~n  # BAD


def test_buffer_as_an_operand_refused():
    with refused(TraceTypeError, "+", "buffer 'A' (16) of int32", "int 1"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                B = A + 1  # BAD

    with refused(TraceTypeError, "unsupported operand for -"):

        @T.prim_func
        def g(A: Ints):
            B = -A  # BAD


def test_text_as_an_operand_refused():
    with refused(TraceTypeError, "'n' (int32)", "str 'a'"):

        @T.prim_func
        def f(n: T.int32):
            k = n + "a"  # BAD

    with refused(TraceTypeError, "==", "str 'a'"):

        @T.prim_func
        def g(n: T.int32):
            k = n == "a"  # BAD


def test_truth_of_a_buffer_refused():
    with refused(TraceError, "no truth value", "T.any_of"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                if A:  # BAD
                    pass


def test_choice_between_buffers_refused():
    with refused(TraceTypeError, "cannot choose", "buffer"):

        @T.prim_func
        def f(A: Ints, B: Ints, n: T.int32):
            C = A if n > 1 else B  # BAD


def test_macro_in_a_condition_refused():
    @T.macro
    def bump(A):
        A[3] = 1
        return A[2] > 1

    with refused(TraceError, "right side of 'and'", "if statement"):

        @T.prim_func
        def f(A: Ints, n: T.int32):
            with T.Kernel(1):
                if n > 1 and bump(A):  # BAD
                    A[0] = 1

    with refused(TraceError, "conditional expression"):

        @T.prim_func
        def g(A: Ints, n: T.int32):
            with T.Kernel(1):
                A[0] = A[1] if n > 1 else bump(A)  # BAD


def test_plain_helper_with_a_condition_refused():
    def smaller(a, b):
        if a < b:  # BAD
            return a
        return b

    with refused(TraceError, "T.macro", "truth value"):

        @T.prim_func
        def f(A: Ints, n: T.int32):
            with T.Kernel(1):
                A[0] = smaller(n, A[1])


@pytest.mark.parametrize("kind", [int, float])
def test_python_number_of_a_run_time_value_refused(kind):
    with refused(TraceTypeError, f"{kind.__name__}()", "T.cast"):
        if kind is int:

            @T.prim_func
            def f(n: T.int32):
                k = int(n)  # BAD
        else:

            @T.prim_func
            def g(n: T.int32):
                k = float(n)  # BAD


def test_comprehension_over_run_time_values_refused():
    with refused(TraceTypeError, "range()", "'n'"):

        @T.prim_func
        def f(A: Ints, n: T.int32):
            values = [A[i] for i in range(n)]  # BAD

    with refused(TraceError, "must be known"):

        @T.prim_func
        def g(A: Ints, n: T.int32):
            values = [A[i] for i in range(3) if n > i]  # BAD


def test_builtin_that_iterates_over_a_buffer_refused():
    with refused(TraceTypeError, "cannot iterate over buffer 'A'"):

        @T.prim_func
        def f(A: Ints):
            values = list(A)  # BAD

    with refused(TraceTypeError, "cannot iterate over buffer 'A'"):

        @T.prim_func
        def g(A: Ints):
            for k, v in enumerate(A):  # BAD
                pass
