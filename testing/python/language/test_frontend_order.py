"""Values are read when Python reads them, although expressions are symbolic."""

# Kernels are traced, not run: unused names and odd expressions are the point.
# ruff: noqa: F841

import torch
from frontend_util import binds, loops, nodes, run_ints
from tvm import tirx as tir

import tilelang.language as T
from tilelang.interpreter import interpret

Ints = T.Tensor((16,), T.int32)


@T.macro
def bump(x: T.Ref):
    x += 10
    return x


@T.macro
def first(A):
    return A[0]


def test_left_operand_is_read_before_a_macro_writes():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            B[0] = A[1] + bump(A[1])
            B[1] = bump(A[2]) + A[2]
            B[2] = 1 if A[3] < bump(A[3]) < 20 else 0
            x = T.alloc_var(T.int32, 5)
            B[3] = x * 2 - bump(x)
            B[4] = T.max(x * 100, bump(x), x)

    assert run_ints(f)[:5] == [1 + 11, 12 + 12, 1, 10 - 15, 1500]


def test_only_what_is_written_is_kept():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            B[0] = A[1] + bump(B[2])
            B[3] = A[1] + first(B)
            B[4] = T.max(A[1], T.min(A[2], A[3]))

    assert binds(f) == []
    assert run_ints(f)[:5] == [11, 0, 10, 12, 2]


def test_augmented_assignment_reads_first():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            x = T.alloc_var(T.int32, 5)
            x += bump(x)
            B[0] = x
            A[1] += bump(A[1])
            B[1] = A[1]
            i = T.alloc_var(T.int32, 2)
            B[i] += bump(i)
            B[3] = i

    assert run_ints(f)[:4] == [5 + 15, 1 + 11, 12, 12]


def test_the_value_of_a_store_is_read_before_its_index():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            x = T.alloc_var(T.int32, 2)
            B[bump(x)] = x

    assert run_ints(f)[12] == 2


def test_arguments_of_nested_functions_are_taken_at_the_call():
    @T.prim_func
    def f(A: Ints, B: Ints):
        def put(value, at: T.Ref, extra=A[3]):
            B[0] = 50
            B[1] = value + extra
            at = 7

        with T.Kernel(1):
            B[0] = 4
            put(B[0], B[2])
            put(1, B[3], 2)

    assert run_ints(f)[:4] == [50, 3, 7, 7]


def test_bounds_of_loops_are_read_once():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            n = T.alloc_var(T.int32, 3)
            for i in range(n):
                n = n + 5
                B[i] = n
            m = T.alloc_var(T.int32, 9)
            for i in range(m, 6, -1):
                m -= 3
                B[i] = m

    assert run_ints(f)[:10] == [8, 13, 18, 0, 0, 0, 0, 0, 3, 6]
    assert all(not nodes_of_loads(loop) for loop in loops(f))


def nodes_of_loads(loop):
    return [e for e in (loop.min, loop.extent) if type(e).__name__ == "TensorLoad"]


def test_a_named_slice_keeps_its_bounds():
    @T.macro
    def move(tile, x: T.Ref):
        x = 0
        T.fill(tile, 9)

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            x = T.alloc_var(T.int32, 2)
            tile = A[x : x + 3]
            kept = [B[x : x + 2]]
            x = 8
            T.copy(tile, B[x : x + 3])
            T.copy(A[14:16], kept[0])
            move(B[x + 4 : x + 6], x)

    expected = [0, 0, 14, 15, 0, 0, 0, 0, 2, 3, 4, 0, 9, 9, 0, 0]
    assert run_ints(f) == expected


def test_values_kept_before_a_wrapped_rest():
    @T.macro
    def annotate_and_bump(x: T.Ref, A):
        T.annotate_safe_value({A: 3})
        x += 1
        return x

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            B[0] = 1
            B[1] = B[0] + annotate_and_bump(B[0], A)
            B[2] = A[5]

    assert run_ints(f)[:3] == [2, 3, 5]
    assert [b.var.name for b in nodes(f, tir.Bind)] == ["before"]


def test_order_of_two_effects():
    @T.prim_func
    def f(A: T.Tensor((2,), T.int32), B: Ints):
        with T.Kernel(1):
            B[0] = bump(A[0]) * 100 + bump(A[0])

    a, b = torch.tensor([1, 0], dtype=torch.int32), torch.zeros(16, dtype=torch.int32)
    interpret(f, a, b)
    assert b[0] == 11 * 100 + 21
