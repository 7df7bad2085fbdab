"""Branches, loops and jumps: Python values at compile time, IR at run time."""

# Kernels are traced, not run: unused names and odd expressions are the point.
# ruff: noqa: B007, SIM113

import pytest
from frontend_util import binds, loops, nodes, refused, run_ints
from tvm import tirx as tir

import tilelang.language as T
from tilelang.errors import TraceError, TraceTypeError

Ints = T.Tensor((16,), T.int32)


def test_if_elif_else_at_run_time():
    @T.prim_func
    def f(A: Ints, B: Ints, n: T.int32):
        with T.Kernel(1):
            for i in T.serial(16):
                if A[i] < n:
                    B[i] = 1
                elif A[i] == n:
                    B[i] = 2
                else:
                    B[i] = 3

    assert run_ints(f, 5) == [1] * 5 + [2] + [3] * 10


def test_if_on_python_values_leaves_no_branch():
    flag = 3

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            if flag > 2 and not False:
                B[0] = 1
            else:
                B[0] = 2
            if T.bool(True):
                B[1] = 3

    assert not nodes(f, tir.IfThenElse)
    assert run_ints(f)[:2] == [1, 3]


def test_if_on_a_number_means_nonzero():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            for i in range(4):
                if A[i] % 2:
                    B[i] = 1
                if not A[i]:
                    B[i] = 7

    assert run_ints(f)[:4] == [7, 1, 0, 1]


def test_branches_see_the_value_from_before():
    @T.prim_func
    def f(A: Ints, B: Ints, n: T.int32):
        with T.Kernel(1):
            v = A[3] + 1
            if n > 0:
                v = v * 10
                B[0] = v
            else:
                B[0] = v
            v = A[5]
            B[1] = v

    assert run_ints(f, 1)[:2] == [40, 5]
    assert run_ints(f, 0)[:2] == [4, 5]


def test_while_with_break_and_continue():
    @T.prim_func
    def f(A: Ints, B: Ints, n: T.int32):
        with T.Kernel(1):
            i = T.alloc_var(T.int32, 0)
            total = T.alloc_var(T.int32, 0)
            while i < 100:
                i += 1
                if i % 2 == 0:
                    continue
                if i > n:
                    break
                total += i
            B[0] = i
            B[1] = total

    assert run_ints(f, 9)[:2] == [11, 1 + 3 + 5 + 7 + 9]


def test_while_false_is_dropped_with_a_warning():
    with pytest.warns(SyntaxWarning, match="always false"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                while False:
                    B[0] = 1

    assert not nodes(f, tir.While)


def test_range_of_ints_is_a_kernel_loop():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            for i in range(2, 10, 3):
                B[i] = i

    (loop,) = loops(f)
    assert loop.kind == tir.ForKind.SERIAL and loop.step == 3
    assert run_ints(f) == [i if i in (2, 5, 8) else 0 for i in range(16)]


def test_loop_over_a_python_iterable_is_repeated():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            for k, scale in enumerate([10, 20, 30]):
                if k == 1:
                    continue
                B[k] = A[k + 1] * scale
            else:
                B[15] = 9

    assert not loops(f)
    assert run_ints(f)[:3] == [10, 0, 90] and run_ints(f)[15] == 9


def test_break_of_a_python_loop():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            for k in (3, 4, 5):
                if k == 4:
                    break
                B[k] = k

    assert run_ints(f)[3:6] == [3, 0, 0]


def test_values_may_be_carried_through_a_python_loop():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            total = 0
            for k in (1, 2, 3):
                total = total + A[k]
            B[0] = total

    assert run_ints(f)[0] == 6


def test_nested_loops_and_inner_break():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            for i in range(4):
                for j in range(4):
                    if j > i:
                        break
                    B[i] += 1

    assert run_ints(f)[:4] == [1, 2, 3, 4]


def test_code_after_break_is_dropped_with_a_warning():
    with pytest.warns(SyntaxWarning, match="never executed"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                for i in range(4):
                    B[i] = 1
                    break
                    B[i] = 2

    assert run_ints(f)[:4] == [1, 0, 0, 0]


def test_match_is_decided_at_compile_time():
    def make(kind):
        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                match kind:
                    case "one":
                        B[0] = 1
                    case ("pair", int(x)) if x > 3:
                        B[0] = x
                    case _:
                        B[0] = 100

        return f

    assert [run_ints(make(k))[0] for k in ("one", ("pair", 7), ("pair", 2))] == [1, 7, 100]


def test_try_and_with_keep_their_python_meaning():
    class Manager:
        entered = 0

        def __enter__(self):
            Manager.entered += 1
            return 5

        def __exit__(self, *error):
            return False

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1), Manager() as five:
            try:
                B[0] = int("x")
            except ValueError as error:
                B[0] = len(str(error.args)) * 0 + five
            finally:
                B[1] = 2

    assert Manager.entered == 1
    assert run_ints(f)[:2] == [5, 2]


def test_assert_at_compile_time_and_run_time():
    @T.prim_func
    def f(A: Ints, B: Ints, n: T.int32):
        assert len("abc") == 3, "known"
        assert n > 2, f"n must be > {1 + 1}"
        with T.Kernel(1):
            B[0] = 1

    (check,) = nodes(f, tir.AssertStmt)
    assert "".join(p.value for p in check.message_parts) == "n must be > 2"


def test_failing_compile_time_assert_is_the_users():
    with pytest.raises(AssertionError, match="sizes differ: 3"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            assert A.shape[0] == 3, f"sizes differ: {3}"


def test_rebinding_in_a_branch_refused():
    with refused(TraceError, "'v'", "run-time if", "T.alloc_var"):

        @T.prim_func
        def f(A: Ints, B: Ints, n: T.int32):
            with T.Kernel(1):
                v = A[0] + 1
                if n > 3:
                    v = v + 2
                B[0] = v  # BAD


def test_python_value_rebound_in_a_branch_refused():
    with refused(TraceError, "'width'", "T.alloc_var"):

        @T.prim_func
        def f(A: Ints, B: Ints, n: T.int32):
            with T.Kernel(1):
                width = 4
                if n > 3:
                    width = 8
                B[0] = width  # BAD


def test_name_bound_in_one_branch_only_refused():
    with refused(TraceError, "'w'", "run-time if"):

        @T.prim_func
        def f(A: Ints, B: Ints, n: T.int32):
            with T.Kernel(1):
                if n > 1:
                    w = A[0]
                B[0] = w  # BAD


def test_rebinding_that_nobody_reads_is_fine():
    @T.prim_func
    def f(A: Ints, B: Ints, n: T.int32):
        with T.Kernel(1):
            v = A[1]
            if n > 3:
                v = A[2]
                B[0] = v
            for i in range(3):
                v = A[i]
                B[i + 1] = v

    assert run_ints(f, 9)[:4] == [2, 0, 1, 2]
    assert binds(f) == ["v", "v", "v"]


def test_rebinding_first_is_not_carried():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            acc, base = 0, None
            for i in range(4):
                acc = 0
                if A.shape[0] > 3:
                    base = 1
                else:
                    base = 2
                for k in (1, 2):
                    acc = acc + A[k] * base
                B[i] = acc + i

    assert run_ints(f)[:4] == [3, 4, 5, 6]


def test_loop_carried_value_refused():
    with refused(TraceError, "'s'", "carried", "T.alloc_var"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                s = A[0]
                for i in range(10):
                    s = s + A[i]  # BAD
                B[0] = s


def test_loop_carried_python_counter_refused():
    with refused(TraceError, "'count'", "carried"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                count = 0
                for i in T.serial(10):
                    B[i] = count
                    count += 1  # BAD


def test_loop_carried_through_a_nested_function_refused():
    with refused(TraceError, "'s'", "carried"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                s = A[0]
                for i in range(10):
                    get = lambda: s + 1  # noqa: E731, B023
                    B[i] = get()
                    s = A[i]  # BAD


def test_loop_variable_after_its_loop_refused():
    with refused(TraceError, "'i'", "for loop"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                for i in range(4):
                    B[i] = 1
                B[0] = i  # BAD


def test_value_of_a_while_condition_refused():
    with refused(TraceError, "'i'", "T.alloc_var"):

        @T.prim_func
        def f(A: Ints, B: Ints, n: T.int32):
            with T.Kernel(1):
                i = n + 0
                while i < 10:
                    i = i + 1  # BAD


def test_while_true_refused():
    with refused(TraceError, "always true"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                while True:  # BAD
                    B[0] = 1


def test_while_condition_with_effects_refused():
    @T.macro
    def peek(A):
        A[1] = 2
        return A[0]

    with refused(TraceError, "condition of a while loop"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                while peek(A) > 1:  # BAD
                    B[0] = 1


def test_break_of_a_python_loop_under_a_run_time_condition_refused():
    with refused(TraceError, "break of a compile-time loop"):

        @T.prim_func
        def f(A: Ints, B: Ints, n: T.int32):
            with T.Kernel(1):
                for k in [1, 2]:
                    if n > k:
                        break  # BAD


@pytest.mark.parametrize("jump", ["break", "continue"])
def test_jump_in_a_parallel_loop_refused(jump):
    source = T.Parallel

    with refused(TraceError, jump, "T.Parallel", "unordered"):
        if jump == "break":

            @T.prim_func
            def f(A: Ints, B: Ints, n: T.int32):
                with T.Kernel(1):
                    for k in source(16):
                        if n > k:
                            break  # BAD
        else:

            @T.prim_func
            def g(A: Ints, B: Ints, n: T.int32):
                with T.Kernel(1):
                    for k in source(16):
                        if n > k:
                            continue  # BAD


def test_break_of_a_grid_refused():
    with refused(TraceError, "T.grid", "innermost"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                for i, j in T.grid(2, 2):
                    break  # BAD


def test_else_of_a_run_time_loop_refused():
    with refused(TraceError, "else clause"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                for i in range(4):  # BAD
                    B[i] = 1
                else:
                    B[5] = 1


def test_return_and_raise_under_a_run_time_condition_refused():
    with refused(TraceError, "return inside"):

        @T.prim_func
        def f(A: Ints, B: Ints, n: T.int32):
            with T.Kernel(1):
                if n > 1:
                    return  # BAD

    with refused(TraceError, "raise inside"):

        @T.prim_func
        def g(A: Ints, B: Ints, n: T.int32):
            if n > 1:
                raise ValueError("n")  # BAD


def test_match_on_a_run_time_value_refused():
    with refused(TraceTypeError, "match", "if / elif"):

        @T.prim_func
        def f(A: Ints, B: Ints, n: T.int32):
            match n:  # BAD
                case 1:
                    pass


def test_iterating_over_run_time_values_refused():
    with refused(TraceTypeError, "cannot iterate", "'n'"):

        @T.prim_func
        def f(A: Ints, B: Ints, n: T.int32):
            for i in n:  # BAD
                pass

    with refused(TraceTypeError, "cannot iterate", "buffer 'A'"):

        @T.prim_func
        def g(A: Ints, B: Ints):
            for value in A:  # BAD
                pass


def test_compile_time_state_changed_in_a_run_time_loop_refused():
    state = {"turn": 0}
    with refused(TraceError, "Python dict", "T.alloc_var"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                for i in range(3):
                    state["turn"] = 1  # BAD


def test_generators_and_coroutines_refused():
    with refused(TraceError, "yield"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            yield 1  # BAD

    with pytest.raises(TraceError, match="async function"):

        @T.prim_func
        async def g(A: Ints, B: Ints):
            pass
