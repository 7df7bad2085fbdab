"""Atomics and reducers."""

import pytest
import torch

import tilelang.language as T
from tilelang.errors import SemanticError, TraceError
from tilelang.interpreter import InterpreterError, interpret


def ints(*values):
    return torch.tensor(values, dtype=torch.int32)


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16", "int64", "bfloat16"])
def test_atomic_add_sums_a_parallel_loop(dtype):
    @T.prim_func
    def program(A: T.Tensor((128,), dtype), B: T.Tensor((1,), dtype)):
        with T.Kernel(1):
            for i in T.Parallel(128):
                T.atomic_add(B[0], A[i])

    kind = getattr(torch, dtype)
    a, b = torch.arange(128).remainder(5).to(kind), torch.zeros(1, dtype=kind)
    interpret(program, a, b)
    assert float(b) == float(a.double().sum()) or dtype == "bfloat16"


@pytest.mark.parametrize(
    "update, expected", [("atomic_max", 127), ("atomic_min", -3), ("atomic_or", 127)]
)
def test_other_updates(update, expected):
    start = {"atomic_max": 5, "atomic_min": -3, "atomic_or": 0}[update]

    @T.prim_func
    def program(B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(128):
                getattr(T, update)(B[0], i)

    b = ints(start)
    interpret(program, b)
    assert b.tolist() == [expected]


@pytest.mark.parametrize("update", ["atomic_add", "atomic_max", "atomic_min"])
def test_the_previous_value_is_that_of_the_points_before(update):
    fold = {"atomic_add": lambda a, b: a + b, "atomic_max": max, "atomic_min": min}[update]

    @T.prim_func
    def program(A: T.Tensor((8,), "int32"), B: T.Tensor((1,), "int32"), P: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            for i in T.serial(8):
                P[i] = getattr(T, update)(B[0], A[i], return_prev=True)

    a, b = ints(3, -1, 4, -1, 5, -9, 2, 6), ints(0)
    previous = interpret(program, a, b, out_idx=-1)
    expected, running = [], 0
    for value in a.tolist():
        expected.append(running)
        running = fold(running, value)
    assert previous.tolist() == expected and b.tolist() == [running]


def test_threads_update_in_order():
    @T.prim_func
    def program(B: T.Tensor((2,), "int32"), P: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            P[tx] = T.atomic_add(B[tx % 2], tx, return_prev=True)

    b = ints(0, 0)
    previous = interpret(program, b, out_idx=-1)
    assert previous.tolist() == [sum(range(t % 2, t, 2)) for t in range(32)]
    assert b.tolist() == [sum(range(0, 32, 2)), sum(range(1, 32, 2))]


def test_two_updates_in_one_statement_run_in_order():
    @T.prim_func
    def program(B: T.Tensor((1,), "int32"), P: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            P[0] = T.atomic_add(B[0], 5, return_prev=True) * 100 + T.atomic_add(
                B[0], 7, return_prev=True
            )

    b = ints(1)
    assert interpret(program, b, out_idx=-1).tolist() == [106] and b.tolist() == [13]


def test_atomic_load_and_store():
    @T.prim_func
    def program(A: T.Tensor((1,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1):
            x = T.atomic_load(A[0], memory_order="acquire")
            T.atomic_store(B[0], x + 1.0, memory_order="release")

    assert interpret(program, torch.tensor([2.5]), out_idx=-1).tolist() == [3.5]


def test_tile_atomics_update_every_element():
    @T.prim_func
    def program(A: T.Tensor((4, 8), "float32"), B: T.Tensor((6, 8), "float32")):
        with T.Kernel(3):
            tile = T.alloc_shared((4, 8), "float32")
            T.copy(A, tile)
            T.atomic_add(B[1:5, :], tile)

    a, b = torch.randn(4, 8), torch.zeros(6, 8)
    interpret(program, a, b)
    assert torch.allclose(b[1:5], 3 * a) and b[0].sum() == 0 and b[5].sum() == 0


def test_a_scalar_is_added_to_a_whole_tile():
    @T.prim_func
    def program(B: T.Tensor((4, 8), "float32")):
        with T.Kernel(1):
            T.atomic_add(B, 2)

    b = torch.ones(4, 8)
    interpret(program, b)
    assert (b == 3).all()


def test_an_update_outside_a_tensor_is_dropped_in_a_parallel_loop():
    @T.prim_func
    def program(B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(8):
                T.atomic_add(B[i - 2], 1)

    b = ints(0, 0, 0, 0)
    interpret(program, b)
    assert b.tolist() == [1, 1, 1, 1]


def test_an_update_outside_a_tensor_in_a_plain_loop_is_an_error():
    @T.prim_func
    def program(B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            for i in T.serial(5):
                T.atomic_add(B[i], 1)

    with pytest.raises(InterpreterError, match=r"update of B\[4\] is outside"):
        interpret(program, ints(0, 0, 0, 0))


def test_an_update_of_an_unwritten_element_is_an_error():
    @T.prim_func
    def program(B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            tile = T.alloc_shared((4,), "int32")
            T.atomic_add(tile[0], 1)
            B[0] = tile[0]

    with pytest.raises(InterpreterError, match="read before it is written"):
        interpret(program, ints(0, 0, 0, 0))


REDUCERS = {
    "sum": lambda t: t.sum(1),
    "max": lambda t: t.amax(1),
    "min": lambda t: t.amin(1),
}


@pytest.mark.parametrize("op", ["sum", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
def test_a_reducer_collects_each_iteration_once(op, dtype):
    @T.prim_func
    def program(A: T.Tensor((6, 40), dtype), B: T.Tensor((6,), dtype)):
        with T.Kernel(1):
            total = T.alloc_reducer((6,), dtype, op=op)
            result = T.alloc_fragment((6,), dtype)
            T.reducer_init(total)
            for k in T.serial(4):
                for j, i in T.Parallel(10, 6):
                    T.reducer_update(total[i], A[i, k * 10 + j])
            T.finalize_reducer(total, result)
            T.copy(result, B)

    a = torch.randint(-8, 8, (6, 40)).to(getattr(torch, dtype))
    assert torch.equal(interpret(program, a, out_idx=-1), REDUCERS[op](a).to(a.dtype))


@pytest.mark.parametrize("op", ["bitand", "bitor", "bitxor"])
def test_bitwise_reducers(op):
    @T.prim_func
    def program(A: T.Tensor((32,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            total = T.alloc_reducer((1,), "int32", op=op)
            result = T.alloc_fragment((1,), "int32")
            T.reducer_init(total)
            for i in T.Parallel(32):
                T.reducer_update(total[0], A[i])
            T.finalize_reducer(total, result)
            T.copy(result, B)

    a = torch.randint(-(2**31), 2**31 - 1, (32,), dtype=torch.int32)
    fold = {"bitand": "__and__", "bitor": "__or__", "bitxor": "__xor__"}[op]
    expected = -1 if op == "bitand" else 0
    for value in a.tolist():
        expected = getattr(expected, fold)(value)
    assert interpret(program, a, out_idx=-1).tolist() == [expected]


def test_a_start_value_counts_once():
    @T.prim_func
    def program(B: T.Tensor((2,), "float32")):
        with T.Kernel(1, threads=128):
            total = T.alloc_reducer((2,), "float32", op="sum")
            result = T.alloc_fragment((2,), "float32")
            T.reducer_init(total, T.float32(100))
            for i, j in T.Parallel(2, 8):
                T.reducer_update(total[i], T.cast(j + 1, "float32"))
            T.finalize_reducer(total, result)
            T.copy(result, B)

    assert interpret(program, out_idx=-1).tolist() == [136, 136]


@pytest.mark.parametrize("op", ["sum", "max"])
def test_the_older_style_updates_with_assignments(op):
    @T.prim_func
    def program(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            total = T.alloc_reducer((4,), "float32", op=op, replication="all")
            T.fill(total, -1000 if op == "max" else 0)
            for i, j in T.Parallel(4, 8):
                if op == "sum":
                    total[i] += A[i, j]
                else:
                    total[i] = T.max(total[i], A[i, j])
            T.finalize_reducer(total)
            T.copy(total, B)

    a = torch.randint(-9, 9, (4, 8)).float()
    assert torch.equal(interpret(program, a, out_idx=-1), REDUCERS[op](a))


def test_an_update_before_the_init_is_an_error():
    @T.prim_func
    def program(B: T.Tensor((1,), "float32")):
        with T.Kernel(1):
            total = T.alloc_reducer((1,), "float32")
            for _ in T.Parallel(8):
                T.reducer_update(total[0], 1.0)
            T.finalize_reducer(total, B)

    with pytest.raises((InterpreterError, SemanticError), match="before"):
        interpret(program, out_idx=-1)


def test_a_bitwise_reducer_needs_integers():
    with pytest.raises(TraceError, match="integer dtype"):

        @T.prim_func
        def program(B: T.Tensor((1,), "float32")):
            with T.Kernel(1):
                T.alloc_reducer((1,), "float32", op="bitor")
