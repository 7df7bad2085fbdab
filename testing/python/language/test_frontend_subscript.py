"""Elements, regions and stores."""

import torch
from frontend_util import binds, nodes, refused, run_ints
from tvm import ir
from tvm import tirx as tir

import tilelang.language as T
from tilelang.errors import TraceError, TraceTypeError
from tilelang.interpreter import interpret

Ints = T.Tensor((16,), T.int32)
Matrix = T.Tensor((4, 6), T.int32)


def regions_of(expressions):
    """Trace ``expressions(A, i)`` on a (4, 6) matrix; regions as lists of (start, extent) text."""
    seen = []

    @T.prim_func
    def f(A: Matrix, i: T.int32):
        look = T.inline(expressions)
        seen.extend(look(A, i))

    return [[(str(r.min), str(r.extent)) for r in region.region] for region in seen]


def test_regions():
    def look(A, i):
        return A[1], A[1:3], A[:, 2], A[i : i + 2, 1:4], A[i * 2 : (i + 1) * 2], A[:], A[...]

    assert regions_of(look) == [
        [("1", "1"), ("0", "6")],
        [("1", "2"), ("0", "6")],
        [("0", "4"), ("2", "1")],
        [("i", "2"), ("1", "3")],
        [("i * 2", "2"), ("0", "6")],
        [("0", "4"), ("0", "6")],
        [("0", "4"), ("0", "6")],
    ]


def test_negative_indices_and_bounds_count_from_the_end():
    def look(A, i):
        return A[-1], A[:-1, -2:], A[-3:-1, 0], A[..., -1]

    assert regions_of(look) == [
        [("3", "1"), ("0", "6")],
        [("0", "3"), ("4", "2")],
        [("1", "2"), ("0", "1")],
        [("0", "4"), ("5", "1")],
    ]


def test_negative_index_of_a_symbolic_extent():
    m = T.dynamic("m")

    @T.prim_func
    def f(A: T.Tensor((m,), T.int32), B: T.Tensor((m,), T.int32)):
        with T.Kernel(1):
            B[-1] = A[-2]
            T.copy(A[:-3], B[: m - 3])

    a = torch.arange(6, dtype=torch.int32)
    b = torch.zeros(6, dtype=torch.int32)
    interpret(f, a, b)
    assert b.tolist() == [0, 1, 2, 0, 0, 4]


def test_elements_with_expressions_and_variables():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            x = T.alloc_var(T.int32, 3)
            B[x] = A[x + 1]
            B[A[2]] = A[A[A[5]]]
            B[A[1] > 0] = 8
            B[T.int64(6)] = A[x * 2]

    assert run_ints(f)[:7] == [0, 8, 5, 4, 0, 0, 6]


def test_stores_convert_to_the_dtype_of_the_buffer():
    @T.prim_func
    def f(A: T.Tensor((4,), T.float16), B: T.Tensor((4,), T.int8), n: T.int32):
        with T.Kernel(1):
            A[0] = n
            A[1] = 3
            B[0] = A[1] * 2.0
            B[1] = True
            B[2] = n > 2

    values = [store.value.ty for store in nodes(f, tir.BufferStore)]
    assert values == ["float16", "float16", "int8", "int8", "int8"]


def test_region_stores_fill_and_copy():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            B[2:5] = 7
            B[8:12] = A[4:8]
            tile = T.alloc_shared((3,), T.int32)
            tile[:] = A[1] + 1
            B[12:15] = tile

    assert run_ints(f) == [0, 0, 7, 7, 7, 0, 0, 0, 4, 5, 6, 7, 2, 2, 2, 0]


def test_augmented_store_evaluates_the_index_once():
    @T.macro
    def next_index(counter):
        counter[0] += 1
        return counter[0]

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            counter = T.alloc_local((1,), T.int32)
            counter[0] = 2
            i = next_index(counter)
            B[i] += 5
            B[i] *= 3
            B[-1] -= 1

    assert run_ints(f) == [0, 0, 0, 15] + [0] * 11 + [-1]


def test_python_containers_keep_their_subscripts():
    @T.prim_func
    def f(A: Ints, B: Ints):
        table = {"k": [1, 2, 3], 4: "four"}
        table["new"] = 5
        table["k"][1] = 20
        table["k"][0] += 10
        del table[4]
        with T.Kernel(1):
            B[0] = table["k"][1] + table["new"] + len(table)
            B[1] = table["k"][-1] + table["k"][0:2][0]
            B[2] = [A[1], A[2]][A.shape[0] - 15]

    assert run_ints(f)[:3] == [27, 14, 2]


def test_loads_in_stores_are_not_bound():
    @T.prim_func
    def f(A: Matrix, B: Matrix):
        with T.Kernel(1):
            for i, j in T.Parallel(4, 6):
                B[i, j] = A[i, j] + A[3 - i, j]

    assert binds(f) == []
    (store,) = nodes(f, tir.BufferStore)
    assert all(isinstance(load, ir.TensorLoad) for load in (store.value.a, store.value.b))


def test_too_many_indices_refused():
    with refused(TraceError, "2 dimensions", "indexed with 3"):

        @T.prim_func
        def f(A: Matrix):
            with T.Kernel(1):
                A[0, 1, 2] = 1  # BAD

    with refused(TraceError, "more than one '...'"):

        @T.prim_func
        def g(A: Matrix):
            T.copy(A[..., ...], A)  # BAD


def test_negative_index_out_of_range_refused():
    with refused(TraceError, "index -5", "dimension 0", "'A'"):

        @T.prim_func
        def f(A: Matrix):
            with T.Kernel(1):
                A[-5, 0] = 1  # BAD


def test_index_that_is_no_integer_refused():
    with refused(TraceTypeError, "'A'", "float32", "an index is an integer"):

        @T.prim_func
        def f(A: Ints, x: T.float32):
            with T.Kernel(1):
                A[x * 2.0] = 1  # BAD

    with refused(TraceTypeError, "'A'", "float 1.5"):

        @T.prim_func
        def g(A: Ints):
            with T.Kernel(1):
                A[1.5] = 1  # BAD

    with refused(TraceTypeError, "'A'", "NoneType"):

        @T.prim_func
        def h(A: Ints):
            with T.Kernel(1):
                A[None] = 1  # BAD


def test_slice_step_refused():
    with refused(TraceError, "cannot have a step", "T.Parallel"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                A[0:8:2] = 1  # BAD


def test_empty_slice_refused():
    with refused(TraceError, "slice 5:5", "empty"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                A[5:5] = 1  # BAD


def test_update_of_a_region_refused():
    with refused(TraceError, "slice of buffer 'A'", "in place"):

        @T.prim_func
        def f(A: Ints):
            with T.Kernel(1):
                A[0:4] += 1  # BAD


def test_values_that_are_no_scalar_refused():
    with refused(TraceTypeError, "buffer 'B'", "one element of 'A'"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                A[0] = B  # BAD

    with refused(TraceTypeError, "str 'x'", "cannot be stored in 'A'"):

        @T.prim_func
        def g(A: Ints):
            with T.Kernel(1):
                A[0] = "x"  # BAD


def test_constant_that_does_not_fit_refused():
    with refused(TraceTypeError, "int 300", "'A'", "uint8"):

        @T.prim_func
        def f(A: T.Tensor((4,), T.uint8)):
            with T.Kernel(1):
                A[0] = 300  # BAD


def test_scalars_cannot_be_indexed():
    with refused(TraceTypeError, "'n' (int32)", "cannot be indexed"):

        @T.prim_func
        def f(A: Ints, n: T.int32):
            with T.Kernel(1):
                A[0] = n[0]  # BAD

    with refused(TraceTypeError, "slice of buffer 'A'", "index the buffer itself"):

        @T.prim_func
        def g(A: Ints):
            with T.Kernel(1):
                tile = A[0:4]
                A[0] = tile[0]  # BAD


def test_run_time_index_of_a_python_list_refused():
    with refused(TraceTypeError, "Python tuple", "'n' (int32)", "buffer"):

        @T.prim_func
        def f(A: Ints, n: T.int32):
            with T.Kernel(1):
                A[0] = (1, 2, 3)[n]  # BAD


def test_deleting_elements_refused():
    with refused(TraceError, "cannot be deleted"):

        @T.prim_func
        def f(A: Ints):
            del A[0]  # BAD
