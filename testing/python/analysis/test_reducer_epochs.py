"""The life of a reducer: init, updates, finalize, in one scope."""

import pytest

import tilelang.language as T
from tilelang.analysis import check_reducers
from tilelang.errors import SemanticError


def program_of(steps, **options):
    """A program with a reducer ``total``, a fragment ``out`` and the traced ``steps``."""

    @T.prim_func
    def program(A: T.Tensor((4, 8), "float32"), n: T.int32):
        with T.Kernel(1):
            out = T.alloc_fragment((4,), "float32")
            total = T.alloc_reducer((4,), "float32", op="sum", **options)
            steps(total, out, A, n)

    return program


def refused(steps, text, marker, **options):
    """The check names the problem and points at the line that holds ``marker``."""
    with pytest.raises(SemanticError, match=text) as caught:
        check_reducers(program_of(steps, **options))
    # The report shows the place and the line itself.
    assert f"--> {__file__}:" in str(caught.value) and marker in str(caught.value)


def test_update_before_init():
    @T.macro
    def steps(total, out, A, n):
        for i, j in T.Parallel(4, 8):
            T.reducer_update(total[i], A[i, j])  # early
        T.reducer_init(total)
        T.finalize_reducer(total, out)

    refused(steps, "update of reducer total before T.reducer_init", "# early")


def test_update_outside_a_parallel_loop():
    @T.macro
    def steps(total, out, A, n):
        T.reducer_init(total)
        for i in T.serial(4):
            T.reducer_update(total[i], A[i, 0])  # serial
        T.finalize_reducer(total, out)

    refused(steps, "outside any T.Parallel", "# serial")


def test_two_inits():
    @T.macro
    def steps(total, out, A, n):
        T.reducer_init(total)
        T.reducer_init(total)  # again
        T.finalize_reducer(total, out)

    refused(steps, "double T.reducer_init", "# again")


def test_no_finalize():
    @T.macro
    def steps(total, out, A, n):
        T.reducer_init(total)  # left open
        for i, j in T.Parallel(4, 8):
            T.reducer_update(total[i], A[i, j])

    refused(steps, "never finalized", "# left open")


def test_finalize_without_init():
    @T.macro
    def steps(total, out, A, n):
        T.finalize_reducer(total, out)  # nothing open

    refused(steps, "before T.reducer_init", "# nothing open")


def test_finalize_in_another_scope():
    @T.macro
    def steps(total, out, A, n):
        T.reducer_init(total)
        for _ in T.serial(2):
            T.finalize_reducer(total, out)  # deeper

    refused(steps, "not in the scope of its T.reducer_init", "# deeper")


def test_an_epoch_opened_in_a_branch_must_close_there():
    @T.macro
    def steps(total, out, A, n):
        if n > 0:
            T.reducer_init(total)  # in a branch
        T.finalize_reducer(total, out)

    refused(steps, "initialised in a branch but never finalized in it", "# in a branch")


def test_ordinary_accesses():
    @T.macro
    def store(total, out, A, n):
        T.reducer_init(total)
        total[0] = 1.0  # store
        T.finalize_reducer(total, out)

    @T.macro
    def load(total, out, A, n):
        T.reducer_init(total)
        A[0, 0] = total[0]  # load
        T.finalize_reducer(total, out)

    @T.macro
    def tile(total, out, A, n):
        T.reducer_init(total)
        T.copy(total, out)  # tile read
        T.finalize_reducer(total, out)

    @T.macro
    def clear(total, out, A, n):
        T.clear(total)  # tile write
        T.reducer_init(total)
        T.finalize_reducer(total, out)

    refused(store, "illegal store to reducer total", "# store")
    refused(load, "illegal read of reducer total", "# load")
    refused(tile, "illegal read of reducer total by T.copy", "# tile read")
    refused(clear, "illegal store to reducer total by T.fill", "# tile write")


def epochs_in_loops(total, out, A, n):
    for _ in T.serial(3):
        T.reducer_init(total)
        for k in T.Pipelined(2, num_stages=2):
            for i, j in T.Parallel(4, 4):
                T.reducer_update(total[i], A[i, j + 4 * k])
        T.finalize_reducer(total, out)


def finalised_in_branches(total, out, A, n):
    T.reducer_init(total)
    for i, j in T.Parallel(4, 8):
        T.reducer_update(total[i], A[i, j])
    if n > 0:
        T.finalize_reducer(total, out)


def whole_epoch_in_a_branch(total, out, A, n):
    if n > 0:
        T.reducer_init(total, A[0, 0])
        for i in T.Parallel(4):
            for j in T.serial(8):
                T.reducer_update(total[i], A[i, j])
        T.finalize_reducer(total, out)


@pytest.mark.parametrize("steps", [epochs_in_loops, finalised_in_branches, whole_epoch_in_a_branch])
def test_legitimate_epochs_pass(steps):
    check_reducers(program_of(T.macro(steps)))


def test_the_older_style_passes():
    @T.macro
    def steps(total, out, A, n):
        T.clear(total)
        for i, j in T.Parallel(4, 8):
            total[i] += A[i, j]
        T.finalize_reducer(total)
        T.copy(total, out)

    check_reducers(program_of(steps, replication="all"))
