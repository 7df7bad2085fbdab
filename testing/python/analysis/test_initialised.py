"""Tiles that are read before anything is in them, and programs that only look like that."""

import pytest

import tilelang.language as T
from tilelang.analysis import check_initialised
from tilelang.errors import SemanticError


def refused(program, text, marker):
    """The check names the problem and points at the line that holds ``marker``."""
    with pytest.raises(SemanticError, match=text) as caught:
        check_initialised(program)
    # The report shows the place and the line itself.
    assert f"--> {__file__}:" in str(caught.value) and marker in str(caught.value)


def test_a_tile_that_nothing_ever_writes():
    @T.prim_func
    def program(B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((8,), "float32")
            T.copy(tile, B)  # never written

    refused(program, "tile .*is read but nothing ever writes it", "# never written")


def test_a_tile_that_is_written_only_later():
    @T.prim_func
    def program(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((8,), "float32")
            for i in T.Parallel(8):
                B[i] = tile[i]  # too early
            T.copy(A, tile)

    refused(program, "tile .*it is written only later", "# too early")


def test_an_accumulator_that_is_not_cleared():
    @T.prim_func
    def program(A: T.Tensor((16, 16), "float32"), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((16, 16), "float32")
            total = T.alloc_fragment((16, 16), "float32")
            for _ in T.Pipelined(4):
                T.copy(A, tile)
                T.gemm(tile, tile, total)  # not cleared
            T.copy(total, C)

    refused(program, r"total .*T.clear\(total\)", "# not cleared")


def test_updates_of_what_was_never_set():
    @T.prim_func
    def variable(B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            x = T.alloc_var("int32")
            for i in T.serial(4):
                x += i  # variable
            B[0] = x

    @T.prim_func
    def atomic(A: T.Tensor((8,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            counts = T.alloc_shared((4,), "int32")
            for i in T.Parallel(8):
                T.atomic_add(counts[A[i]], 1)  # atomic
            T.copy(counts, B)

    @T.prim_func
    def reduction(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            tile = T.alloc_fragment((4, 8), "float32")
            total = T.alloc_fragment((4,), "float32")
            T.copy(A, tile)
            T.reduce_sum(tile, total, dim=1, clear=False)  # reduction
            T.copy(total, B)

    refused(variable, "x .*is read", "# variable")
    refused(atomic, "counts .*is read", "# atomic")
    refused(reduction, "total .*is read", "# reduction")


def test_a_condition_and_an_index_are_reads():
    @T.prim_func
    def condition(B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            flag = T.alloc_shared((1,), "int32")
            if flag[0] > 0:  # condition
                B[0] = 1

    @T.prim_func
    def index(A: T.Tensor((8,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            where = T.alloc_shared((1,), "int32")
            B[0] = A[where[0]]  # index

    refused(condition, "flag .*is read", "# condition")
    refused(index, "where .*is read", "# index")


def test_a_read_under_a_condition_of_what_is_never_written():
    @T.prim_func
    def program(B: T.Tensor((8,), "int32"), n: T.int32):
        with T.Kernel(1):
            tile = T.alloc_shared((8,), "int32")
            for i in T.Parallel(8):
                B[i] = T.if_then_else(i < n, tile[i], 0)  # in an arm

    refused(program, "nothing ever writes it", "# in an arm")


# --- legitimate programs ------------------------------------------------------------------------


def views():
    @T.prim_func
    def program(A: T.Tensor((16,), "uint16"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((8,), "float32")
            T.copy(A, T.view(tile, (16,), "uint16"))
            T.copy(T.reshape(tile, (8,)), B)

    return program


def earlier_iterations():
    @T.prim_func
    def program(A: T.Tensor((8, 4), "int32"), B: T.Tensor((8, 4), "int32")):
        with T.Kernel(1):
            previous = T.alloc_shared((4,), "int32")
            for k in T.serial(8):
                if k > 0:
                    T.copy(previous, B[k, 0:4])
                T.copy(A[k, 0:4], previous)

    return program


def other_arms():
    @T.prim_func
    def program(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((64,), "int32")
            if tx >= 32:
                B[tx] = tile[tx - 32]
            else:
                tile[tx] = A[tx]

    return program


def named_barriers():
    @T.prim_func
    def program(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((32,), "int32")
            if tx >= 32:
                T.sync_threads(1, 64)
                B[tx] = tile[tx - 32]
            if tx < 32:
                tile[tx] = A[tx]
                T.sync_threads(1, 64)

    return program


def first_of_a_search():
    @T.prim_func
    def program(A: T.Tensor((8,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            found = T.alloc_var("int32")
            for i in T.serial(8):
                found = T.if_then_else(A[i] > 3, i, found)
            B[0] = found

    return program


def overwriting_products_and_reductions():
    @T.prim_func
    def program(A: T.Tensor((16, 16), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((16, 16), "float32")
            total = T.alloc_fragment((16, 16), "float32")
            row = T.alloc_fragment((16,), "float32")
            T.copy(A, tile)
            T.gemm(tile, tile, total, clear_accum=True)
            T.reduce_max(total, row, dim=1)
            T.copy(row, B)

    return program


def foreign_functions():
    @T.prim_func
    def program(B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((8,), "float32")
            T.call_extern("void", "fill_it", T.address_of(tile[0]), 8)
            T.copy(tile, B)

    return program


def reducers():
    @T.prim_func
    def program(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            total = T.alloc_reducer((4,), "float32", op="sum")
            out = T.alloc_fragment((4,), "float32")
            T.reducer_init(total)
            for i, j in T.Parallel(4, 8):
                T.reducer_update(total[i], A[i, j])
            T.finalize_reducer(total, out)
            T.copy(out, B)

    return program


@pytest.mark.parametrize(
    "make",
    [
        views,
        earlier_iterations,
        other_arms,
        named_barriers,
        first_of_a_search,
        overwriting_products_and_reductions,
        foreign_functions,
        reducers,
    ],
)
def test_legitimate_programs_pass(make):
    check_initialised(make())
