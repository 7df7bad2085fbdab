"""Assignment: temporaries, variables of T.alloc_var, tuples, attributes, annotations."""

# Kernels are traced, not run: unused names and odd expressions are the point.
# ruff: noqa: B007, F841, RUF059

import pytest
from frontend_util import allocations, binds, nodes, refused, run_ints
from tvm import ir
from tvm import tirx as tir

import tilelang.language as T
from tilelang.errors import TraceError, TraceTypeError

Ints = T.Tensor((16,), T.int32)


def test_a_temporary_is_evaluated_once_where_it_is_assigned():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            v = A[3] + 1
            A[3] = 100
            B[0] = v
            v = v * 2
            B[1] = v

    assert binds(f) == ["v", "v"]
    assert run_ints(f)[:2] == [4, 8]


def test_constants_variables_and_buffers_are_only_named():
    @T.prim_func
    def f(A: Ints, B: Ints, n: T.int32):
        with T.Kernel(2) as bx:
            k = 3
            alias, same, tile = B, bx, A[0:4]
            m = n
            alias[same + 4] = k + m
            T.copy(tile, B[8:12])

    assert binds(f) == []
    assert run_ints(f, 5) == [0] * 4 + [8, 8, 0, 0, 0, 1, 2, 3] + [0] * 4


def test_alloc_var_reads_and_writes_like_a_variable():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            x = T.alloc_var(T.int32, 1)
            y = T.alloc_var("int32")
            y = x + 4
            snapshot = x
            for i in range(3):
                x = x * 2 + i
            x -= 1
            B[0] = x
            B[1] = y
            B[2] = snapshot
            B[x - 6] = x[0]

    assert allocations(f) == [("x", "local.var", "int32"), ("y", "local.var", "int32")]
    x = ((1 * 2) * 2 + 1) * 2 + 2 - 1
    assert run_ints(f)[:3] == [x, 5, 1] and run_ints(f)[x - 6] == x


def test_alloc_var_initial_value_forms():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            a = T.alloc_var(T.int32, 1, "local.var")
            b = T.alloc_var(T.int32, "local.var", init=2)
            c = T.alloc_var(T.int32, init=A[3])
            B[0], B[1], B[2] = a, b, c

    assert run_ints(f)[:3] == [1, 2, 3]


def test_swap_is_two_phase():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            x = T.alloc_var(T.int32, 1)
            y = T.alloc_var(T.int32, 2)
            x, y = y, x + 10
            B[0], B[1] = x, y
            A[4], A[5] = A[5], A[4]
            B[4], B[5] = A[4], A[5]

    assert run_ints(f)[:6] == [2, 11, 0, 0, 5, 4]


def test_unpacking_forms():
    @T.prim_func
    def f(A: T.Tensor((4, 4), T.int32), B: Ints):
        with T.Kernel(1):
            rows, cols = A.shape
            (a, b), *rest = (A[0, 1], A[0, 2]), 7, 8
            first, *middle, last = [1, 2, 3, 4]
            [c, d] = (5, 6)
            B[0], B[1], B[2] = rows * 10 + cols, a, b
            B[3], B[4] = rest[1], len(middle) * 100 + middle[1] * 10 + last
            B[5] = c * 10 + d + first

    data = list(range(16))
    b = _run_2d(f, data)
    assert b[:6] == [44, 1, 2, 8, 234, 57]


def _run_2d(program, data):
    import torch

    from tilelang.interpreter import interpret

    a = torch.tensor(data, dtype=torch.int32).reshape(4, 4)
    b = torch.zeros(16, dtype=torch.int32)
    interpret(program, a, b)
    return b.tolist()


def test_chained_assignment_evaluates_once():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            x = T.alloc_var(T.int32)
            x = y = B[3] = A[2] + 1
            A[2] = 50
            B[0] = x
            B[1] = y

    assert run_ints(f)[:4] == [3, 3, 0, 3]


def test_walrus():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            if (v := A[3]) > 2:
                B[0] = v
            B[1] = (w := 4) + w
            B[2] = sum([z := A[k] for k in (1, 2)])
            B[3] = z

    assert run_ints(f)[:4] == [3, 8, 3, 2]


def test_augmented_assignment_of_names_items_and_attributes():
    class Box:
        n = 3

    box = Box()
    numbers = {"a": 1}

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            v = A[2]
            v += 1
            v <<= 2
            B[1] += v
            B[A[1]] -= 1
            box.n *= 2
            numbers["a"] |= 6
            steps = [1]
            steps += [2]
            B[2] = box.n + numbers["a"] * 10 + len(steps) * 100

    assert run_ints(f)[:3] == [0, 11, 276]
    assert box.n == 6 and numbers == {"a": 7}


def test_annotated_assignment_converts():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            x: T.float32 = A[3]
            y: T.int8 = 200 - 100
            z: int = 5
            B[0] = T.cast(x / 2.0 * 10.0, T.int32)
            B[1] = y
            B[2] = z

    assert run_ints(f)[:3] == [15, 100, 5]
    assert [b.var.ty for b in nodes(f, tir.Bind)] == ["float32"]


def test_variables_in_containers_and_attributes():
    class State:
        pass

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            state = State()
            state.turn = T.alloc_var(T.int32, 5)
            pair = [T.alloc_var(T.int32, k) for k in (7, 8)]
            for i in range(3):
                state.turn = state.turn + 1
                state.turn += 1
                pair[0] = pair[0] + pair[1]
                pair[1] += 1
            B[0] = state.turn
            B[1] = pair[0]
            B[2] = pair[1]

    assert run_ints(f)[:3] == [11, 7 + 8 + 9 + 10, 11]
    assert allocations(f)[0][0] == "turn"


def test_containers_hold_values_not_expressions():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            old = [A[k] for k in (1, 2)]
            kept = {"three": A[3]}
            more = []
            more.append(A[4])
            A[1] = A[2] = A[3] = A[4] = 0
            B[0], B[1], B[2], B[3] = old[0], old[1], kept["three"], more[0]

    assert run_ints(f)[:4] == [1, 2, 3, 4]


def test_attribute_of_a_compile_time_object():
    class Config:
        pass

    config = Config()

    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            config.width = 4
            config.value = A[2] * 2
            A[2] = 0
            B[0] = config.value + config.width

    assert run_ints(f)[0] == 8 and config.width == 4
    assert binds(f) == ["value"]


def test_names_of_buffers_follow_the_assignment():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            tile = T.alloc_shared((4,), T.int32)
            left, right = T.alloc_local((2,), "int32"), T.alloc_fragment(8, "float32")
            T.alloc_local(1, "bool")

    assert allocations(f) == [
        ("tile", "shared.dyn", "int32"),
        ("left", "local", "int32"),
        ("right", "local.fragment", "float32"),
        ("local", "local", "bool"),
    ]


def test_closures_globals_and_nonlocal():
    offset = 3
    seen = 0

    @T.prim_func
    def f(A: Ints, B: Ints):
        nonlocal seen
        seen += 1

        def twice(x):
            return x * 2 + offset

        with T.Kernel(1):
            B[0] = twice(A[4]) + len(Ints.shape)

    assert run_ints(f)[0] == 12 and seen == 1


def test_nested_functions_are_traced_too():
    @T.prim_func
    def f(A: Ints, B: Ints):
        def clip(x, low=2):
            return low if x < low else x

        def emit(at):
            for k in range(3):
                B[at + k] = clip(A[k])

        with T.Kernel(1):
            emit(1)
            pick = lambda x: x > 1 and x < 4  # noqa: E731
            B[8] = 1 if pick(A[3]) else 0

    assert run_ints(f)[:4] == [0, 2, 2, 2] and run_ints(f)[8] == 1


def test_private_names_in_methods():
    class Maker:
        __hidden = 7

        def make(self):
            @T.prim_func
            def f(A: Ints, B: Ints):
                with T.Kernel(1):
                    B[0] = self.__hidden

            return f

        @T.macro
        def write(self, B):
            B[1] = self.__hidden + 1

    maker = Maker()
    assert run_ints(maker.make())[0] == 7

    @T.prim_func
    def g(A: Ints, B: Ints):
        with T.Kernel(1):
            maker.write(B)

    assert run_ints(g)[1] == 8


def test_indented_source_with_odd_strings():
    if True:

        @T.prim_func
        def f(A: Ints, B: Ints):
            text = """first
second"""
            with T.Kernel(1):
                B[0] = len(text.splitlines()[1])

    assert run_ints(f)[0] == 6


def test_use_before_assignment_is_pythons_error():
    with pytest.raises(UnboundLocalError, match="'q'"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            B[0] = q  # noqa: F821
            q = 1


def test_deleted_name_is_unbound():
    with pytest.raises(UnboundLocalError, match="'q'"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            q = 1
            del q
            B[0] = q  # noqa: F821


def test_exception_of_the_user_passes_unchanged():
    class Mine(Exception):
        pass

    with pytest.raises(Mine) as caught:

        @T.prim_func
        def f(A: Ints, B: Ints):
            raise Mine("hello")

    assert caught.value.args == ("hello",)


def test_value_of_another_launch_refused():
    with refused(TraceError, "'v'", "has ended"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                v = A[0] + 1
            with T.Kernel(1):
                B[0] = v  # BAD


def test_tile_of_another_launch_refused():
    with refused(TraceError, "buffer 'tile'", "has ended"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                tile = T.alloc_shared((4,), T.int32)
            with T.Kernel(1):
                T.clear(tile)  # BAD


def test_update_of_a_whole_buffer_refused():
    with refused(TraceError, "buffer 'B'", "as a whole"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                B += 1  # BAD


def test_variable_cannot_hold_other_things():
    with refused(TraceTypeError, "'x'", "cannot hold", "'abc'"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                x = T.alloc_var(T.int32, 0)
                x = "abc"  # BAD


def test_wrong_number_of_values_refused():
    with refused(TraceError, "not enough values", "expected 3, got 2"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1, 2) as (bx, by, bz):  # BAD
                pass

    with refused(TraceError, "too many values", "expected 2, got 3"):

        @T.prim_func
        def g(A: Ints, B: Ints):
            a, *b, (c, d) = 1, 2, (3, 4, 5)  # BAD


def test_attribute_changed_in_a_run_time_loop_refused():
    class State:
        turn = 0

    state = State()
    with refused(TraceError, "attribute 'turn'", "State", "T.alloc_var"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            with T.Kernel(1):
                for i in range(3):
                    state.turn = 1  # BAD


def test_attribute_of_a_buffer_cannot_be_assigned():
    with refused(TraceError, "attributes of buffer 'A'"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            A.note = 1  # BAD


def test_annotation_that_cannot_hold_the_value_refused():
    with refused(TraceTypeError, "cannot hold", "str 'a'"):

        @T.prim_func
        def f(A: Ints, B: Ints):
            x: T.int32 = "a"  # BAD


def test_lambda_and_builtin_cannot_be_traced():
    with pytest.raises(TraceError, match="lambda"):
        T.prim_func(lambda: None)
    with pytest.raises(TraceError, match="source"):
        namespace = {"T": T, "Ints": Ints}
        exec("def f(A: Ints):\n    pass", namespace)
        T.prim_func(namespace["f"])


def test_every_temporary_is_a_scalar():
    @T.prim_func
    def f(A: Ints, B: Ints):
        with T.Kernel(1):
            v = A[0] > 1
            w = v and A[1] > 0
            B[0] = T.if_then_else(w, 1, 0)

    assert [b.var.ty for b in nodes(f, tir.Bind)] == ["bool", "bool"]
    assert all(isinstance(b.value, ir.Expr) for b in nodes(f, tir.Bind))
