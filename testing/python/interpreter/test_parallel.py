"""Parallel loops: unordered iterations, masks, private temporaries, conflicts."""

import pytest
import torch

import tilelang.language as T
from tilelang.interpreter import InterpreterError, interpret


def ints(*values):
    return torch.tensor(values, dtype=torch.int32)


def test_iterations_of_a_nest_combine_their_indices():
    @T.prim_func
    def program(B: T.Tensor((3, 4, 5), "int32")):
        with T.Kernel(1):
            for i, j, k in T.Parallel(3, 4, 5):
                B[i, j, k] = i * 100 + j * 10 + k

    b = interpret(program, out_idx=-1)
    assert b[2, 3, 4] == 234 and b[0, 1, 2] == 12 and b.unique().numel() == 60


@pytest.mark.parametrize("length", [0, 13, 200, 600])
def test_the_extent_may_be_known_at_run_time(length):
    @T.prim_func
    def program(n: T.int32, A: T.Tensor((512,), "float32")):
        with T.Kernel(1):
            T.fill(A, 0)
            for i in T.Parallel(T.min(n, 512)):
                A[i] = 1.0

    a = torch.full((512,), -1.0)
    interpret(program, length, a)
    assert a.sum() == min(length, 512) and a[: min(length, 512)].all()


def test_branches_take_their_iterations():
    @T.prim_func
    def program(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(8):
                if A[i] > 5:
                    B[i] = 1
                elif A[i] > 2:
                    B[i] = 2
                else:
                    B[i] = 3

    b = interpret(program, torch.arange(8, dtype=torch.int32), out_idx=-1)
    assert b.tolist() == [3, 3, 3, 2, 2, 2, 1, 1]


def test_a_branch_guards_what_it_reads():
    @T.prim_func
    def program(B: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            tile = T.alloc_shared((4,), "int32")
            T.fill(tile, 5)
            for i in T.Parallel(8):
                if i < 4:
                    B[i] = tile[i]
                else:
                    B[i] = T.if_then_else(i < 4, tile[i], 9)

    assert interpret(program, out_idx=-1).tolist() == [5] * 4 + [9] * 4


def test_an_inner_loop_may_differ_in_length():
    @T.prim_func
    def program(B: T.Tensor((6,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(6):
                B[i] = 0
                for k in T.serial(i, 2 * i):
                    B[i] += k

    assert interpret(program, out_idx=-1).tolist() == [sum(range(i, 2 * i)) for i in range(6)]


def test_break_and_continue_are_taken_one_by_one():
    @T.prim_func
    def program(B: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(8):
                B[i] = 0
                for k in T.serial(8):
                    if k > i:
                        break
                    if k % 2 == 1:
                        continue
                    B[i] += 1

    expected = [len(range(0, i + 1, 2)) for i in range(8)]
    assert interpret(program, out_idx=-1).tolist() == expected


def test_while_loops_end_one_by_one():
    @T.prim_func
    def program(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(8):
                B[i] = 0
                while B[i] * B[i] < A[i]:
                    B[i] += 1

    a = ints(0, 1, 2, 4, 5, 9, 10, 100)
    assert interpret(program, a, out_idx=-1).tolist() == [0, 1, 2, 2, 3, 3, 4, 10]


def test_a_temporary_belongs_to_its_iteration():
    @T.prim_func
    def program(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(8):
                x = T.alloc_var("int32")
                x = A[i] * 2
                if x > 6:
                    x = 0
                B[i] = x

    b = interpret(program, torch.arange(8, dtype=torch.int32), out_idx=-1)
    assert b.tolist() == [0, 2, 4, 6, 0, 0, 0, 0]


def outer_variable(read_after):
    @T.prim_func
    def program(A: T.Tensor((4,), "int32"), B: T.Tensor((5,), "int32")):
        with T.Kernel(1):
            x = T.alloc_var("int32", init=7)
            for i in T.Parallel(4):
                x = A[i] * 2
                B[i] = x
            if read_after:
                B[4] = x

    return program


def test_an_outer_variable_serves_as_scratch():
    b = ints(0, 0, 0, 0, 0)
    interpret(outer_variable(False), ints(1, 2, 3, 4), b)
    assert b.tolist() == [2, 4, 6, 8, 0]


def test_what_iterations_disagree_on_is_unknown_afterwards():
    with pytest.raises(InterpreterError, match="iterations of a T.Parallel loop left different"):
        interpret(outer_variable(True), ints(1, 2, 3, 4), ints(0, 0, 0, 0, 0))


def test_what_iterations_agree_on_is_kept():
    b = ints(0, 0, 0, 0, 0)
    interpret(outer_variable(True), ints(3, 3, 3, 3), b)
    assert b.tolist() == [6, 6, 6, 6, 6]


def test_an_outer_variable_is_seen_by_all_iterations():
    @T.prim_func
    def program(B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            x = T.alloc_var("int32", init=7)
            for i in T.Parallel(4):
                B[i] = x + i

    assert interpret(program, out_idx=-1).tolist() == [7, 8, 9, 10]


@pytest.mark.parametrize("kind", ["two write", "same value", "neighbour"])
def test_iterations_that_share_an_element_with_a_write_conflict(kind):
    @T.prim_func
    def program(A: T.Tensor((4, 4), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1):
            for i, j in T.Parallel(4, 4):
                if kind == "two write":
                    B[i] = A[i, j]
                elif kind == "same value":
                    B[0] = 1
                else:
                    B[i * 4 + j] = B[T.max(i * 4 + j - 1, 0)] + 1

    a, b = torch.zeros(4, 4, dtype=torch.int32), torch.zeros(16, dtype=torch.int32)
    with pytest.raises(InterpreterError, match="touch one element of B"):
        interpret(program, a, b)
    interpret(program, a, b, check_conflicts=False)


def test_a_conflict_across_statements_is_found():
    @T.prim_func
    def program(B: T.Tensor((9,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(8):
                B[i] = i
                B[i + 1] = i

    with pytest.raises(InterpreterError, match="touch one element of B"):
        interpret(program, out_idx=-1)


def test_a_conflict_that_only_data_show_is_found():
    @T.prim_func
    def program(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                B[A[i]] = i

    assert interpret(program, ints(2, 0, 3, 1), out_idx=-1).tolist() == [1, 3, 0, 2]
    with pytest.raises(InterpreterError, match=r"touch one element of B"):
        interpret(program, ints(2, 0, 2, 1), out_idx=-1)


def test_conflicts_through_a_view_are_found():
    @T.prim_func
    def program(B: T.Tensor((4, 2), "int32")):
        with T.Kernel(1):
            tile = T.alloc_shared((4, 2), "int32")
            flat = T.reshape(tile, (8,))
            for i in T.Parallel(4):
                tile[i, 0] = i
                flat[i] = i
            T.copy(tile, B)

    with pytest.raises(InterpreterError, match="touch one element"):
        interpret(program, torch.zeros(4, 2, dtype=torch.int32))


@pytest.mark.parametrize("word", [True, False])
def test_elements_of_different_sizes_conflict_where_they_overlap(word):
    @T.prim_func
    def program(B: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            tile = T.alloc_shared((8,), "int32")
            halves = T.view(tile, (16,), "int16")
            T.clear(tile)
            for i in T.Parallel(16):
                halves[i] = T.cast(i, "int16")
                if word and i == 15:
                    tile[0] = 1
            T.copy(tile, B)

    if not word:
        assert interpret(program, out_idx=-1)[1] == 2 + (3 << 16)
        return
    with pytest.raises(InterpreterError, match="touch one element of tile"):
        interpret(program, out_idx=-1)


def test_an_iteration_may_update_its_own_element_repeatedly():
    @T.prim_func
    def program(A: T.Tensor((4, 8), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                B[i] = 0
                for j in T.serial(8):
                    B[i] += A[i, j]

    a = torch.randint(-9, 9, (4, 8), dtype=torch.int32)
    assert torch.equal(interpret(program, a, out_idx=-1), a.sum(1).int())


def test_iterations_that_do_not_write_do_not_conflict():
    @T.prim_func
    def program(A: T.Tensor((4, 4), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            for i, j in T.Parallel(4, 4):
                if j == i:
                    B[i] = A[i, j]

    a = torch.arange(16, dtype=torch.int32).reshape(4, 4)
    assert interpret(program, a, out_idx=-1).tolist() == [0, 5, 10, 15]


def test_a_fragment_may_be_read_at_any_index():
    @T.prim_func
    def program(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(1):
            tile = T.alloc_fragment((16,), "float32")
            T.copy(A, tile)
            for i in T.Parallel(16):
                B[i] = tile[15 - i] + tile[(i * 7) % 16]

    a = torch.randn(16)
    b = interpret(program, a, out_idx=-1)
    assert torch.equal(b, a.flip(0) + a[torch.arange(16) * 7 % 16])


def test_lower_case_parallel_is_the_same():
    @T.prim_func
    def program(B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            for i in T.parallel(4):
                B[i] = i

    assert interpret(program, out_idx=-1).tolist() == [0, 1, 2, 3]


def test_an_empty_loop_does_nothing():
    @T.prim_func
    def program(n: T.int32, B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            T.clear(B)
            for i, j in T.Parallel(4, n):
                B[i] = j

    assert interpret(program, 0, out_idx=-1).tolist() == [0] * 4
