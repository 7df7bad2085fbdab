"""Loop kinds: the IR they make and the iterations they run."""

# Kernels are traced, not run: unused names and odd expressions are the point.
# ruff: noqa: B007

import pytest
import torch
from frontend_util import loops, nodes, refused, run_ints
from tvm import tirx as tir

import tilelang.language as T
from tilelang.errors import TraceError, TraceTypeError
from tilelang.interpreter import interpret

Ints = T.Tensor((16,), T.int32)
Kind = tir.ForKind


def test_serial_unroll_and_vectorized():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            for i in T.serial(2, annotations={"note": 7}):
                B[i] = 1
            for j in T.unroll(2, 6, 2):
                B[j] = 2
            for k in T.unroll(8, 10, explicit=True):
                B[k] = 3
            for m in T.Unroll(10, 12, unroll_factor=2):
                B[m] = 4
            for v in T.vectorized(12, 16):
                B[v] = 5

    kinds = [loop.kind for loop in loops(f)]
    assert kinds == [Kind.SERIAL, Kind.UNROLLED, Kind.UNROLLED, Kind.UNROLLED, Kind.VECTORIZED]
    serial, stepped, explicit, factor, _ = loops(f)
    assert serial.annotations["note"] == 7 and stepped.step == 2
    assert explicit.annotations["tl.explicit"] and factor.annotations["pragma_unroll_factor"] == 2
    assert [loop.loop_var.name for loop in loops(f)] == ["i", "j", "k", "m", "v"]
    assert run_ints(f) == [1, 1, 2, 0, 2, 0, 0, 0, 3, 3, 4, 4, 5, 5, 5, 5]


@pytest.mark.parametrize(
    "bounds",
    [(5,), (2, 9), (1, 12, 4), (9, 2, -1), (10, -1, -3), (3, 3), (7, 2), (0, 16, 20), (2, 9, -1)],
)
def test_serial_runs_the_iterations_of_range(bounds):
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            for i in T.serial(*bounds):
                B[i] += 1

    assert run_ints(f) == [int(i in range(*bounds)) for i in range(16)]


@pytest.mark.parametrize(
    "start, stop, step", [(0, 7, 1), (2, 11, 3), (12, 3, -4), (5, 5, 1), (9, 4, 2)]
)
def test_run_time_bounds(start, stop, step):
    if step > 0:

        @T.prim_func
        def f(A: Ints, B: Ints, a: T.int32, b: T.int32, s: T.int32):
            with T.Kernel(1):
                for i in range(a, b, s):
                    B[i] = i + 1

        arguments = (start, stop, step)
    else:

        @T.prim_func
        def f(A: Ints, B: Ints, a: T.int32, b: T.int32):
            with T.Kernel(1):
                for i in range(a, b, step):
                    B[i] = i + 1

        arguments = (start, stop)
    assert run_ints(f, *arguments) == [
        i + 1 if i in range(start, stop, step) else 0 for i in range(16)
    ]


def test_wide_bounds_make_a_wide_loop_variable():
    @T.prim_func
    def f(A: Ints, n: T.int64, m: T.int8):
        with T.Kernel(1):
            for i in range(n):
                A[i] = 1
            for j in range(m):
                A[j] = 1

    assert [str(loop.loop_var.ty.dtype) for loop in loops(f)] == ["int64", "int32"]


def test_parallel_nest_and_options():
    @T.prim_func
    def f(A: T.Tensor((4, 6), T.int32), n: T.int32):
        with T.Kernel(1):
            for i, j in T.Parallel(4, n, coalesced_width=2, annotations={"prefer_async": True}):
                A[i, j] = 1
            for k in T.parallel(1, 3):
                A[k, 0] = 2
            for (m,) in T.Parallel(4):
                A[m, 5] = 3

    outer, inner, single, lone = loops(f)
    assert inner.same_as(outer.body) and outer.kind == inner.kind == Kind.PARALLEL
    assert dict(outer.annotations) == {"coalesced_width": 2, "prefer_async": True, "tl.parallel": 2}
    assert not inner.annotations and single.annotations["tl.parallel"] == 1 and single.min == 1
    assert lone.loop_var.name == "m"
    a = torch.zeros((4, 6), dtype=torch.int32)
    interpret(f, a, 3)
    assert a.tolist() == [
        [1, 1, 1, 0, 0, 3],
        [2, 1, 1, 0, 0, 3],
        [2, 1, 1, 0, 0, 3],
        [1, 1, 1, 0, 0, 3],
    ]


def test_parallel_indices_as_one_name():
    @T.prim_func
    def f(A: T.Tensor((2, 3), T.int32)):
        with T.Kernel(1):
            for index in T.Parallel(2, 3):
                A[index] = index[0] * 10 + index[1]

    a = torch.zeros((2, 3), dtype=torch.int32)
    interpret(f, a)
    assert a.tolist() == [[0, 1, 2], [10, 11, 12]]
    assert [loop.loop_var.name for loop in loops(f)] == ["index_0", "index_1"]


def test_pipelined():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            for k in T.Pipelined(4, num_stages=3):
                B[k] = 1
            for k in T.Pipelined(4, 8, order=[1, 0], stage=[0, 1], group=[[0], [1]]):
                B[k] = 2
                B[k + 4] = 3

    plain, manual = loops(f)
    assert dict(plain.annotations) == {"num_stages": 3} and plain.kind == Kind.SERIAL
    assert list(manual.annotations["tl_pipeline_order"]) == [1, 0]
    assert list(manual.annotations["tl_pipeline_stage"]) == [0, 1]
    assert [list(g) for g in manual.annotations["tl_pipeline_group"]] == [[0], [1]]
    assert run_ints(f) == [1] * 4 + [2] * 4 + [3] * 4 + [0] * 4


def test_grid_and_continue():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            for i, j in T.grid(4, 4):
                if i == j:
                    continue
                B[i * 4 + j] = 1

    assert run_ints(f) == [int(i != j) for i in range(4) for j in range(4)]


@pytest.mark.parametrize(
    "domain, blocks, group", [((5, 7), 3, 4), ((4, 4), 16, 8), ((3, 2, 5), 7, 2), ((9,), 4, 3)]
)
def test_persistent_visits_every_tile_once(domain, blocks, group):
    @T.prim_func
    def f(A: T.Tensor(domain, T.int32)):
        with T.Kernel(blocks) as block:
            for tile in T.Persistent(domain, blocks, block, group):
                A[tile] += 1

    a = torch.zeros(domain, dtype=torch.int32)
    interpret(f, a)
    assert a.flatten().tolist() == [1] * a.numel()


def test_persistent_names_its_coordinates():
    @T.prim_func
    def f(A: T.Tensor((4, 8), T.int32)):
        with T.Kernel(2) as b:
            for m, n in T.Persistent([4, 8], 2, b):
                A[m, n] = 1

    assert [bind.var.name for bind in nodes(f, tir.Bind)] == ["m", "n"]


def test_thread_binding_loops():
    @T.prim_func
    def f(A: Ints, B: Ints):
        for bx in T.thread_binding(2, "blockIdx.x"):
            for tx in T.thread_binding(0, 8, thread="threadIdx.x"):
                B[bx * 8 + tx] = A[bx * 8 + tx]

    outer, inner = nodes(f, tir.For)
    assert (outer.thread_binding.thread_tag, inner.thread_binding.thread_tag) == (
        "blockIdx.x",
        "threadIdx.x",
    )
    assert (outer.loop_var.name, inner.loop_var.name) == ("bx", "tx")


def test_loop_break():
    @T.prim_func
    def f(A: Ints, B: Ints, n: T.int32):
        with T.Kernel(1):
            for i in T.serial(16):
                if i >= n:
                    T.loop_break()
                B[i] = 1

    assert run_ints(f, 3) == [1] * 3 + [0] * 13


def test_loop_outside_a_for_statement_refused():
    with refused(TraceError, "T.serial", "for"):

        @T.prim_func
        def f(A: Ints):
            for i, j in enumerate(T.serial(4)):  # BAD
                A[i] = j

    with refused(TraceError, "T.Parallel", "no effect"):

        @T.prim_func
        def g(A: Ints):
            T.Parallel(4)  # BAD

    with pytest.raises(TraceError, match="can only be looped over"):
        list(T.serial(4))


def test_zero_step_refused():
    with refused(TraceError, "step", "zero"):

        @T.prim_func
        def f(A: Ints):
            for i in range(0, 4, 0):  # BAD
                A[i] = 1


def test_bound_that_is_no_integer_refused():
    with refused(TraceTypeError, "T.Parallel", "integer bound"):

        @T.prim_func
        def f(A: Ints, x: T.float32):
            for i in T.Parallel(x):  # BAD
                A[i] = 1

    with refused(TraceTypeError, "T.serial", "2.5"):

        @T.prim_func
        def g(A: Ints):
            for i in range(2.5):  # BAD
                A[i] = 1


def test_number_of_loop_variables_refused():
    with refused(TraceError, "2 loop variables", "the target has 3"):

        @T.prim_func
        def f(A: Ints):
            for i, j, k in T.Parallel(2, 2):  # BAD
                A[i] = 1


def test_empty_nests_refused():
    for make in (T.Parallel, T.grid):
        with pytest.raises(TraceError, match="at least one extent"):
            make()


def test_unroll_options_refused():
    with pytest.raises(TraceError, match="exclude each other"):
        T.unroll(4, explicit=True, unroll_factor=2)
    with pytest.raises(TraceError, match="unroll_factor must be >= 1, found 0"):
        T.unroll(4, unroll_factor=0)


def test_pipelined_options_refused():
    with pytest.raises(TraceError, match="num_stages must be an int >= 0, found -1"):
        T.Pipelined(4, num_stages=-1)
    with pytest.raises(TraceError, match="order has 2 entries and stage has 3"):
        T.Pipelined(4, order=[0, 1], stage=[0, 0, 1])


def test_loop_break_outside_a_loop_refused():
    with refused(TraceError, "T.loop_break"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                T.loop_break()  # BAD


def test_thread_binding_without_a_thread_refused():
    with pytest.raises(TraceError, match="launch index"):
        T.thread_binding(4)
