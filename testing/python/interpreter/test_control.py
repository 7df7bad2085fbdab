"""Serial control flow, temporaries, launches, host statements."""

import pytest
import torch

import tilelang.language as T
from tilelang.errors import ArgumentValueError
from tilelang.interpreter import InterpreterError, interpret


def zeros(*shape):
    return torch.zeros(*shape, dtype=torch.int32)


@pytest.mark.parametrize("bounds", [(0, 10, 1), (2, 10, 3), (10, 0, -2), (5, 5, 1), (7, 3, 1)])
def test_serial_loops_follow_range(bounds):
    start, stop, step = bounds

    @T.prim_func
    def program(B: T.Tensor((20,), "int32"), n: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            n[0] = 0
            for i in T.serial(start, stop, step):
                B[n[0]] = i
                n[0] += 1

    b, n = zeros(20), zeros(1)
    interpret(program, b, n)
    assert b[: int(n)].tolist() == list(range(*bounds))


@pytest.mark.parametrize("kind", [T.unroll, T.serial, range])
def test_every_ordered_loop_runs_in_order(kind):
    @T.prim_func
    def program(B: T.Tensor((5,), "int32")):
        with T.Kernel(1):
            B[0] = 1
            for i in kind(4):
                B[i + 1] = B[i] * 2

    assert interpret(program, out_idx=-1).tolist() == [1, 2, 4, 8, 16]


@pytest.mark.parametrize("stages", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("trips", [0, 1, 2, 7])
def test_a_pipelined_loop_is_the_serial_loop(stages, trips):
    @T.prim_func
    def program(A: T.Tensor((8, 4), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((4,), "float32")
            total = T.alloc_fragment((4,), "float32")
            T.clear(total)
            for k in T.Pipelined(trips, num_stages=stages):
                T.copy(A[k, 0:4], tile)
                for i in T.Parallel(4):
                    total[i] = total[i] * 0.5 + tile[i]
            T.copy(total, B)

    a, expected = torch.randn(8, 4), torch.zeros(4)
    for k in range(trips):
        expected = expected * 0.5 + a[k]
    assert torch.equal(interpret(program, a, out_idx=-1), expected)


def test_while_break_and_continue():
    @T.prim_func
    def program(B: T.Tensor((2,), "int32")):
        with T.Kernel(1):
            n = T.alloc_var("int32", init=27)
            steps = T.alloc_var("int32", init=0)
            odd = T.alloc_var("int32", init=0)
            while n != 1:
                steps += 1
                if steps > 1000:
                    break
                if n % 2 == 0:
                    n = n // 2
                    continue
                odd += 1
                n = 3 * n + 1
            B[0] = steps
            B[1] = odd

    assert interpret(program, out_idx=-1).tolist() == [111, 41]


def test_break_leaves_only_the_innermost_loop():
    @T.prim_func
    def program(B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            for i in T.serial(4):
                B[i] = 0
                for _ in T.serial(10):
                    if B[i] == i:
                        break
                    B[i] += 1

    assert interpret(program, out_idx=-1).tolist() == [0, 1, 2, 3]


def test_a_temporary_is_evaluated_where_it_is_assigned():
    @T.prim_func
    def program(B: T.Tensor((3,), "int32")):
        with T.Kernel(1):
            B[0] = 5
            x = B[0] + 1
            B[0] = 100
            B[1] = x
            B[2] = x

    assert interpret(program, out_idx=-1).tolist() == [100, 6, 6]


def test_comparisons_chain():
    @T.prim_func
    def program(A: T.Tensor((6,), "int32"), B: T.Tensor((6,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(6):
                B[i] = T.if_then_else(1 < A[i] <= 4, 1, 0)

    a = torch.arange(6, dtype=torch.int32)
    assert interpret(program, a, out_idx=-1).tolist() == [0, 0, 1, 1, 1, 0]


def test_logical_operators():
    @T.prim_func
    def program(A: T.Tensor((4, 2), "bool"), B: T.Tensor((4, 3), "bool")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                B[i, 0] = A[i, 0] and A[i, 1]
                B[i, 1] = A[i, 0] or A[i, 1]
                B[i, 2] = not A[i, 0]

    a = torch.tensor([[False, False], [False, True], [True, False], [True, True]])
    b = interpret(program, a, out_idx=-1)
    assert torch.equal(b[:, 0], a[:, 0] & a[:, 1])
    assert torch.equal(b[:, 1], a[:, 0] | a[:, 1])
    assert torch.equal(b[:, 2], ~a[:, 0])


@pytest.mark.parametrize("grid", [(3,), (3, 2), (3, 2, 4)])
def test_blocks_cover_the_grid(grid):
    axes = "xyz"[: len(grid)]

    @T.prim_func
    def program(B: T.Tensor(grid[::-1], "int32")):
        with T.Kernel(*grid):
            index = [T.get_block_binding(d) for d in range(len(axes))]
            if len(grid) == 1:
                B[index[0]] = index[0]
            elif len(grid) == 2:
                B[index[1], index[0]] = index[1] * 10 + index[0]
            else:
                B[index[2], index[1], index[0]] = index[2] * 100 + index[1] * 10 + index[0]

    b = interpret(program, out_idx=-1)
    assert b.unique().numel() == b.numel()
    assert int(b.flatten()[-1]) == int("".join(str(n - 1) for n in grid[::-1]))


def test_the_order_of_blocks_can_be_changed():
    @T.prim_func
    def program(B: T.Tensor((1,), "int32")):
        with T.Kernel(4) as bx:
            B[0] = B[0] * 10 + bx

    def run(**options):
        b = zeros(1)
        interpret(program, b, **options)
        return int(b)

    assert run() == 123
    assert run(block_order="reverse") == 3210
    orders = {run(block_order="random", seed=seed) for seed in range(8)}
    assert len(orders) > 3 and all(sorted(f"{n:04}") == list("0123") for n in orders)


@pytest.mark.parametrize("blocks", [0, 3])
def test_a_zero_grid_launches_nothing(blocks):
    @T.prim_func
    def program(n: T.int32, B: T.Tensor((4,), "int32")):
        with T.Kernel(n) as bx:
            B[bx] = 1

    b = zeros(4)
    interpret(program, blocks, b)
    assert int(b.sum()) == blocks


def test_a_negative_grid_is_an_error():
    @T.prim_func
    def program(n: T.int32, B: T.Tensor((4,), "int32")):
        with T.Kernel(n) as bx:
            B[bx] = 1

    with pytest.raises(ArgumentValueError, match="grid"):
        interpret(program, -1, zeros(4))


def test_launches_run_one_after_another():
    @T.prim_func
    def program(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        space = T.alloc_global((8,), "int32")
        with T.Kernel(8) as bx:
            space[bx] = A[bx] + 1
        with T.Kernel(8) as bx:
            B[bx] = space[7 - bx] * 2

    b = interpret(program, torch.arange(8, dtype=torch.int32), out_idx=-1)
    assert b.tolist() == [16, 14, 12, 10, 8, 6, 4, 2]


def test_a_host_assertion_names_its_message_and_line():
    n = T.dynamic("n")

    @T.prim_func
    def program(A: T.Tensor((n,), "int32")):
        assert n % 4 == 0, "n must be a multiple of 4"
        with T.Kernel(1):
            A[0] = 1

    interpret(program, zeros(8))
    with pytest.raises(InterpreterError, match=r"(?s)n must be a multiple of 4.*assert n % 4"):
        interpret(program, zeros(6))


def test_a_kernel_assertion_names_its_message_and_line():
    @T.prim_func
    def program(A: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                T.device_assert(A[i] < 3, "small values only")

    interpret(program, zeros(4))
    with pytest.raises(InterpreterError, match=r"at \(3,\): small values only"):
        interpret(program, torch.arange(4, dtype=torch.int32))


def test_persistent_loops_visit_every_tile_once():
    @T.prim_func
    def program(B: T.Tensor((5, 7), "int32")):
        with T.Kernel(3) as bx:
            for i, j in T.Persistent([5, 7], 3, bx):
                B[i, j] += 1

    b = zeros(5, 7)
    interpret(program, b)
    assert (b == 1).all()


def chained_sum(A, count):
    total = A[0]
    for i in range(1, count):
        total = total + A[i]
    return total


def test_long_sums_do_not_exhaust_the_stack():
    @T.prim_func
    def program(A: T.Tensor((1500,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            B[0] = chained_sum(A, 1500)

    a = torch.arange(1500, dtype=torch.int32)
    assert interpret(program, a, out_idx=-1).tolist() == [int(a.sum())]
