"""T.macro, T.Ref, T.inline and T.meta_class."""

# Kernels are traced, not run: unused names and odd expressions are the point.
# ruff: noqa: B007, C416, F841, RET504

import pytest
from frontend_util import allocations, binds, line_of, nodes, refused, run_ints
from tvm import ir
from tvm import tirx as tir

import tilelang.language as T
from tilelang.errors import TraceError, TraceTypeError

Ints = T.Tensor((16,), T.int32)


@T.macro
def add_one(x: T.Ref, by=1):
    x += by


@T.macro
def swap(a: T.Ref, b: T.Ref):
    a, b = b, a


@T.macro
def scaled(tile, factor, *, offset=0):
    """Documented."""
    for i in T.Parallel(tile.shape[0]):
        tile[i] = tile[i] * factor + offset
    return factor + 1, tile


def test_macro_is_traced_into_its_caller():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            tile = T.alloc_shared((16,), T.int32)
            T.copy(A, tile)
            more, same = scaled(tile, A[2] + 1, offset=5)
            T.copy(same, B)
            B[0] = more

    assert run_ints(f) == [4] + [3 * i + 5 for i in range(1, 16)]
    assert scaled.__name__ == "scaled" and scaled.__doc__ == "Documented."


def test_arguments_are_evaluated_once():
    @T.macro
    def twice(B, value):
        B[0] = value
        B[1] = value

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            twice(B, A[3] + B[0])
            twice(B, 4)

    assert binds(f) == ["value"]


def test_references_store_to_variables_elements_and_references():
    @T.macro
    def twice(x: T.Ref):
        add_one(x)
        add_one(x, 10)

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            x = T.alloc_var(T.int32, 5)
            add_one(x)
            B[0] = x
            add_one(B[1])
            twice(B[A[3]])
            twice(x)
            y = T.alloc_var(T.int32, 100)
            swap(x, y)
            swap(B[1], B[3])
            B[4], B[5] = x, y

    assert run_ints(f)[:6] == [6, 11, 0, 1, 100, 17]


def test_the_index_of_a_reference_is_fixed_at_the_call():
    @T.macro
    def store_and_move(x: T.Ref, i: T.Ref):
        i = 9
        x = 7

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            i = T.alloc_var(T.int32, 2)
            store_and_move(B[i], i)
            B[0] = i

    assert run_ints(f)[:3] == [9, 0, 7]


def test_a_slice_as_a_reference():
    @T.macro
    def zero(tile: T.Ref):
        T.fill(tile, 3)

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            zero(B[2:4])
            zero(B)

    assert run_ints(f) == [3] * 16


def test_old_spelling_of_a_reference():
    @T.macro
    def bump(x: T.Var, by: T.Var):
        x = x + by

    @T.prim_func
    def f(A: Ints, B: Ints, n: T.int32):
        with T.Kernel(1):
            bump(B[2], n)

    assert run_ints(f, 4)[2] == 4


def test_values_without_ref_are_snapshots():
    @T.macro
    def change(x):
        x = x + 1
        return x

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            x = T.alloc_var(T.int32, 5)
            B[0] = change(x)
            B[1] = x

    assert run_ints(f)[:2] == [6, 5]


def test_macros_call_macros_and_keep_their_closures():
    def make(width):
        @T.macro
        def inner(B, i):
            B[i] = width

        @T.macro
        def outer(B):
            for i in T.unroll(width):
                inner(B, i)

        return outer

    write = make(3)

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            write(B)

    assert run_ints(f)[:4] == [3, 3, 3, 0]


def test_compile_time_recursion():
    @T.macro
    def tree_sum(A, low, high):
        if high - low == 1:
            return A[low]
        middle = (low + high) // 2
        return tree_sum(A, low, middle) + tree_sum(A, middle, high)

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            B[0] = tree_sum(A, 0, 16)

    assert run_ints(f)[0] == sum(range(16))


def test_macro_defined_inside_the_kernel():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            base = A[2] * 10

            @T.macro
            def put(i):
                B[i] = base + i

            for k in (1, 4):
                put(k)

    assert run_ints(f)[:5] == [0, 21, 0, 0, 24]


def test_methods_and_partial_decoration():
    class Writer:
        def __init__(self, step):
            self.step = step

        @T.macro()
        def write(self, B, *values, **named):
            for k, value in enumerate(values):
                B[k * self.step] = value
            B[15] = named["last"]

    writer = Writer(2)

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            writer.write(B, A[5], 6, last=A[3])

    assert run_ints(f)[:3] == [5, 0, 6] and run_ints(f)[15] == 3


def test_buffers_of_a_macro_have_their_own_names():
    @T.macro
    def make():
        first = T.alloc_local((1,), T.int32)
        first[0] = 4
        return T.alloc_shared((2,), T.int32)

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            result = make()
            T.clear(result)

    assert [name for name, *_ in allocations(f)] == ["first", "shared"]


def test_nodes_of_a_macro_point_into_it():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            add_one(B[0])

    (store,) = nodes(f, tir.BufferStore)
    assert line_of(store) == "x += by"


def test_inline_is_a_plain_function_elsewhere():
    @T.inline
    def larger(a, b):
        return a if a > b else b

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            B[0] = larger(A[3], A[7])

    assert larger(3, 4) == 4 and run_ints(f)[0] == 7


def test_meta_class():
    @T.meta_class
    class Ring:
        def __init__(self, size, name=None):
            self.size = size
            self.slots = T.alloc_local((size,), "int32")
            self.at = T.alloc_var("int32", 0)
            for k in T.unroll(size):
                self.slots[k] = 0

        def push(self, value):
            if value > 2:
                self.slots[self.at % self.size] = value
                self.at += 1

        def capacity(self):
            return [k for k in range(self.size)]

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            ring = Ring(4, name="ring")
            for i in range(9):
                ring.push(A[i])
            for k in ring.capacity():
                B[k] = ring.slots[k]
            B[8] = ring.at

    assert [name for name, *_ in allocations(f)] == ["ring_slots", "ring_at"]
    assert run_ints(f)[:4] == [7, 8, 5, 6] and run_ints(f)[8] == 6


def test_pure_macro_works_anywhere():
    @T.macro
    def between(a, b, c):
        return (a < b and b < c) or not (a > 3)

    n = T.dynamic("n")
    assert between(1, 2, 3) is True and isinstance(between(n, 4, n), ir.Expr)


def test_macro_outside_a_kernel_refused():
    @T.macro
    def loops(n):
        for i in range(n):
            pass

    with pytest.raises(TraceError, match="only valid inside a traced kernel"):
        loops(4)


def test_variadic_arguments_are_evaluated_once():
    @T.macro
    def store(B, *values, **named):
        B[1] = 50
        B[2] = values[0]
        B[3] = named["last"]

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            B[1] = 4
            store(B, B[1], last=B[1])

    assert run_ints(f)[:4] == [0, 50, 4, 4]


def test_reference_to_a_value_refused():
    with refused(TraceTypeError, "parameter 'x' is a T.Ref", "'n' (int32)"):

        @T.prim_func
        def f(A: Ints, n: T.int32):
            with T.Kernel(1):
                add_one(n)  # BAD


def test_return_inside_run_time_control_flow_refused():
    @T.macro
    def early(A):
        for i in range(4):
            if A[i] > 2:
                return i  # BAD
        return 0

    with refused(TraceError, "return inside", "'early'"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                B[0] = early(A)


def test_errors_inside_a_macro_point_into_it():
    @T.macro
    def wrong(A):
        A[0, 1] = 2  # BAD

    with refused(TraceError, "1 dimensions"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                wrong(A)


def test_wrong_arguments_are_pythons_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                add_one(A[0], speed=2)


def test_only_functions_can_be_macros():
    with refused(TraceError, "only a plain Python function"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                T.macro(len)(A)  # BAD
