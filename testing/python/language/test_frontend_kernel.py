"""Launches, questions about the launch, and allocation."""

# Kernels are traced, not run: unused names and odd expressions are the point.
# ruff: noqa: F841, SIM117

import pytest
import torch
from frontend_util import allocations, nodes, refused, run_ints
from tvm import tirx as tir

import tilelang.language as T
from tilelang.errors import TraceError, TraceTypeError
from tilelang.interpreter import interpret

Ints = T.Tensor((16,), T.int32)


def launch_axes(program):
    """(tag, variable name, extent) of each launch loop, outermost first."""
    found = []
    for loop in nodes(program, tir.For):
        if loop.kind == tir.ForKind.THREAD_BINDING:
            found.append((loop.thread_binding.thread_tag, loop.loop_var.name, str(loop.extent)))
    return found


def test_one_dimension_yields_a_variable():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(4, threads=64) as block:
            B[block] = block + 1

    assert launch_axes(f) == [
        ("blockIdx.x", "block", "4"),
        ("threadIdx.x", "tx", "64"),
        ("threadIdx.y", "ty", "1"),
        ("threadIdx.z", "tz", "1"),
    ]
    assert run_ints(f)[:5] == [1, 2, 3, 4, 0]


def test_three_dimensions_and_thread_tuple():
    @T.prim_func
    def f(A: T.Tensor((2, 3, 4), T.int32), n: T.int32):
        with T.Kernel(4, n, 2, threads=(8, 4)) as (x, y, z):
            A[z, y, x] = x + 10 * y + 100 * z

    assert launch_axes(f) == [
        ("blockIdx.x", "x", "4"),
        ("blockIdx.y", "y", "n"),
        ("blockIdx.z", "z", "2"),
        ("threadIdx.x", "tx", "8"),
        ("threadIdx.y", "ty", "4"),
        ("threadIdx.z", "tz", "1"),
    ]
    a = torch.zeros((2, 3, 4), dtype=torch.int32)
    interpret(f, a, 3)
    assert a[1, 2, 3] == 123 and a[0, 1, 2] == 12


def test_targets_of_a_launch():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(2) as (only,):
            B[only] = 1
        with T.Kernel(2, 2) as both:
            B[4 + both[0] * 2 + both[1]] = 2
        with T.Kernel(threads=32):
            B[15] = 3

    names = [name for tag, name, _ in launch_axes(f) if tag.startswith("block")]
    assert names == ["only", "both_x", "both_y", "bx"]
    assert run_ints(f) == [1, 1, 0, 0, 2, 2, 2, 2] + [0] * 7 + [3]


def test_launches_are_marked_and_annotated():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1, prelude="// text"):
            B[0] = 1

    outermost = nodes(f, tir.For)[0]
    assert (
        outermost.annotations["tl.launch"] == 1
        and outermost.annotations["pragma_import_c"] == "// text"
    )
    assert not nodes(f, tir.For)[1].annotations


def test_zero_grid_launches_nothing():
    @T.prim_func
    def f(A: Ints, B: Ints, n: T.int32):
        with T.Kernel(0):
            B[0] = 1
        with T.Kernel(n):
            B[1] = 1

    assert run_ints(f, 0)[:2] == [0, 0] and run_ints(f, 1)[:2] == [0, 1]


def test_questions_about_the_launch():
    seen = {}

    @T.prim_func
    def f(A: Ints, n: T.int32):
        with T.Kernel(4, n, threads=(32, 2)) as (bx, by):
            frame = T.KernelLaunchFrame.Current()
            seen["same"] = [
                T.get_block_binding().same_as(bx),
                T.get_block_bindings()[1].same_as(by),
            ]
            seen["threads"] = T.get_thread_extents(), T.get_thread_extent(1), frame.num_threads
            seen["blocks"] = T.get_block_extent(0), frame.get_block_extents()[1].same_as(n)
            seen["names"] = [v.name for v in (*T.get_thread_bindings(), T.get_thread_binding(2))]
            seen["lists"] = len(frame.blocks), len(frame.threads), frame.get_num_threads()
        seen["after"] = T.KernelLaunchFrame.Current()

    assert seen == {
        "same": [True, True],
        "threads": ([32, 2, 1], 2, 64),
        "blocks": (4, True),
        "names": ["tx", "ty", "tz", "tz"],
        "lists": (2, 3, 64),
        "after": None,
    }


def test_allocation_scopes():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            s = T.alloc_shared((2, 3), T.float16)
            static = T.alloc_shared([4], "float32", scope="shared")
            flags = T.alloc_shared(8, T.bool)
            r = T.alloc_fragment((4, 4), "float")
            loc = T.alloc_local((2,), torch.bfloat16)
            v = T.alloc_var(T.ptr)
            bar = T.alloc_barrier([128, 1])
            any_ = T.alloc_buffer((2,), "int8", "local")

    assert allocations(f) == [
        ("s", "shared.dyn", "float16"),
        ("static", "shared", "float32"),
        ("flags", "shared", "bool"),
        ("r", "local.fragment", "float32"),
        ("loc", "local", "bfloat16"),
        ("v", "local.var", "int64"),
        ("bar", "shared.barrier", "uint64"),
        ("any_", "local", "int8"),
    ]
    barrier = next(a for a in nodes(f, tir.AllocBuffer) if a.buffer.name == "bar")
    assert list(barrier.annotations["arrive_count"]) == [128, 1]
    assert all(a.buffer.ty.layout is None for a in nodes(f, tir.AllocBuffer))


def test_workspace_before_and_inside_a_launch_is_on_the_host_side():
    @T.prim_func
    def f(A: Ints, B: Ints, n: T.int32):
        first = T.alloc_global((16,), T.int32)
        with T.Kernel(1):
            second = T.alloc_global((n,), T.int32)
            T.copy(A, first)
            T.copy(first[0:4], second[0:4])
            T.copy(second[0:4], B[4:8])

    body = list(f.body.seq)
    assert [type(s) for s in body] == [tir.AllocBuffer, tir.AllocBuffer, tir.For]
    assert [s.buffer.name for s in body[:2]] == ["first", "second"]
    assert run_ints(f, 8)[4:8] == [0, 1, 2, 3]


def test_allocation_in_loops_and_branches():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            for i in range(4):
                x = T.alloc_var(T.int32, i)
                x += 1
                if x > 2:
                    tile = T.alloc_local((1,), T.int32)
                    tile[0] = x
                    B[i] = tile[0]

    assert run_ints(f)[:4] == [0, 0, 3, 4]


def test_extents_may_come_from_shapes():
    @T.prim_func
    def f(A: T.Tensor((4, 8), T.float16)):
        with T.Kernel(1):
            tile = T.alloc_shared((A.shape[0], A.shape[1] // 2), A.dtype)
            T.copy(A[0, 0], tile)

    assert allocations(f) == [("tile", "shared.dyn", "float16")]


def test_nested_launch_refused():
    with refused(TraceError, "inside another T.Kernel"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                with T.Kernel(1):  # BAD
                    pass


@pytest.mark.parametrize("threads", [0, -1, (32, 0)])
def test_thread_count_refused(threads):
    with pytest.raises(TraceError, match="threads must be > 0"):
        T.Kernel(1, threads=threads)


def test_launch_shapes_refused():
    with pytest.raises(TraceError, match="up to 3 grid dimensions, found 4"):
        T.Kernel(1, 2, 3, 4)
    with pytest.raises(TraceError, match="1 to 3 dimensions, found 4"):
        T.Kernel(1, threads=(1, 1, 1, 1))
    with pytest.raises(TraceError, match="must not be negative, found -2"):
        T.Kernel(-2)
    with pytest.raises(TraceTypeError, match="grid dimension must be an integer, found 1.5"):
        T.Kernel(1.5)
    with pytest.raises(TraceTypeError, match="threads must be ints"):
        T.Kernel(1, threads="many")


def test_launch_outside_a_kernel_function_refused():
    with pytest.raises(TraceError, match="T.Kernel is only valid inside a traced kernel"):
        with T.Kernel(1):
            pass


def test_missing_dimension_refused():
    with refused(TraceError, "block dimension 1", "has 1"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(4):
                T.get_block_binding(1)  # BAD


def test_questions_outside_a_launch_refused():
    with refused(TraceError, "T.get_thread_binding", "T.Kernel"):

        @T.prim_func
        def f(A: Ints):
            T.get_thread_binding()  # BAD

    with pytest.raises(TraceError, match="inside a traced kernel"):
        T.get_thread_extents()


@pytest.mark.parametrize("allocate", [T.alloc_shared, T.alloc_fragment, T.alloc_local])
def test_allocation_outside_a_launch_refused(allocate):
    with refused(TraceError, "T.Kernel"):

        @T.prim_func
        def f(A: Ints):
            tile = allocate((4,), T.int32)  # BAD


def test_shape_known_at_run_time_refused():
    with refused(TraceError, "T.alloc_shared", "known while the kernel is traced", "n"):

        @T.prim_func
        def f(A: Ints, n: T.int32):
            with T.Kernel(1):
                tile = T.alloc_shared((n, 4), T.int32)  # BAD


def test_bad_extents_refused():
    with refused(TraceError, "T.alloc_local", ">= 1", "found 0"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                tile = T.alloc_local((4, 0), T.int32)  # BAD

    with refused(TraceTypeError, "extent must be an integer", "2.5"):

        @T.prim_func
        def g(A: Ints):
            with T.Kernel(1):
                tile = T.alloc_local((2.5,), T.int32)  # BAD


def test_unknown_dtype_refused():
    with refused(TraceTypeError, "unknown dtype 'float17'"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                tile = T.alloc_local((4,), "float17")  # BAD


def test_alloc_var_arguments_refused():
    with refused(TraceTypeError, "T.alloc_var", "twice"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                x = T.alloc_var(T.int32, 1, init=2)  # BAD


def test_barrier_counts_refused():
    with refused(TraceError, "arrive counts", "0"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                bar = T.alloc_barrier([4, 0])  # BAD
