"""From the host part of a program to its launch plan and device functions."""

import pytest

import tilelang.language as T
from tilelang.engine.expr_program import Sym, evaluate
from tilelang.engine.host_plan import split_launches
from tilelang.engine.launch_plan import ArgRef
from tilelang.errors import SemanticError


def plan_of(program):
    return split_launches(program, "cpu")[0]


def test_parameters_and_symbols():
    m, n = T.dynamic("m, n")

    @T.prim_func
    def program(A: T.Tensor((m, n * 2), "float32"), B: T.Tensor((n,), "int8"), k: T.int32):
        with T.Kernel(m, k):
            B[0] = T.cast(A[0, 0], "int8")

    plan = plan_of(program)
    assert plan.symbols == ("m", "n", "k")
    assert [p.name for p in plan.params] == ["A", "B", "k"]
    assert plan.params[0].shape == (Sym(0), ("*", Sym(1), 2)) and plan.params[2].symbol == 2
    assert plan.kernels[0].grid == (Sym(0), Sym(2), 1)


def test_accesses_are_recorded_through_views_pointers_and_prints():
    @T.prim_func
    def program(
        A: T.Tensor((8,), "float32"),
        B: T.Tensor((8,), "float32"),
        C: T.Tensor((8,), "int32"),
        D: T.Tensor((8,), "float32"),
        E: T.Tensor((8,), "float32"),
        F: T.Tensor((8,), "float32"),
    ):
        with T.Kernel(1):
            T.copy(T.view(A, (2, 4)), T.view(B, (2, 4)))
            T.atomic_add(C[0], 1)
            T.print(D)
            F[0] = T.__ldg(E[0])

    accesses = {p.name: p.access for p in plan_of(program).params}
    assert accesses == {"A": "r", "B": "w", "C": "rw", "D": "r", "E": "r", "F": "w"}


def test_a_tensor_that_is_never_touched():
    @T.prim_func
    def program(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            T.fill(A, 1.0)

    assert [p.access for p in plan_of(program).params] == ["w", "none"]


def test_a_kernel_takes_only_what_it_uses():
    n = T.dynamic("n")

    @T.prim_func
    def program(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), s: T.float32):
        space = T.alloc_global((n,), "float32")
        with T.Kernel(n) as bx:
            space[bx] = A[bx] * s
        with T.Kernel(n) as bx:
            B[bx] = space[bx]

    plan, devices = split_launches(program, "cpu")
    first, second = plan.kernels
    assert ArgRef("param", 1) not in first.args and ArgRef("param", 2) in first.args
    assert ArgRef("param", 0) not in second.args and ArgRef("workspace", 0) in second.args
    assert [d.name for d in devices] == ["program_kernel", "program_kernel_1"]
    assert [len(d.func.params) for d in devices] == [len(k.args) for k in plan.kernels]
    assert plan.workspaces[0].shape == (Sym(0),)


def test_host_conditions_become_grids():
    @T.prim_func
    def program(A: T.Tensor((8,), "float32"), n: T.int32):
        if n > 2:
            with T.Kernel(4):
                A[0] = 1.0
        else:
            with T.Kernel(5):
                A[0] = 2.0

    grids = [kernel.grid[0] for kernel in plan_of(program).kernels]
    assert [evaluate(grid, [3]) for grid in grids] == [4, 0]
    assert [evaluate(grid, [2]) for grid in grids] == [0, 5]


def test_sizes_must_fit_their_dtype():
    n, big = T.dynamic("n"), T.dynamic("big", "int64")

    @T.prim_func
    def program(A: T.Tensor((n, big), "int8")):
        with T.Kernel(1):
            A[0, 0] = 1

    (check,) = plan_of(program).checks
    assert "size n does not fit int32" in check.message
    assert evaluate(check.cond, [2**31 - 1, 0]) and not evaluate(check.cond, [2**31, 0])


def test_outputs():
    @T.prim_func
    def program(A: T.Tensor((8,), "float32")):
        B = T.empty((8,), "float32")
        with T.Kernel(1):
            T.copy(A, B)
        return B

    plan = plan_of(program)
    assert [p.role for p in plan.params] == ["in", "out"] and plan.returns == (1,)


def test_a_grid_that_the_host_cannot_compute():
    @T.prim_func
    def program(A: T.Tensor((8,), "int32"), x: T.float32):
        with T.Kernel(T.cast(x, "int32")):
            A[1] = 1

    with pytest.raises(SemanticError, match="computes only with sizes and integer arguments"):
        plan_of(program)


def test_statements_that_only_a_kernel_runs():
    @T.prim_func
    def program(A: T.Tensor((8,), "int32")):
        A[0] = 1
        with T.Kernel(1):
            A[1] = 1

    with pytest.raises(SemanticError, match="outside T.Kernel cannot run on the host"):
        plan_of(program)
