"""How constructs may be nested: each refusal with its line, and nests that are fine."""

import pytest

import tilelang.language as T
from tilelang.analysis import check_nesting
from tilelang.errors import SemanticError


def refused(program, text, marker):
    """The check names the problem and points at the line that holds ``marker``."""
    with pytest.raises(SemanticError, match=text) as caught:
        check_nesting(program)
    # The report shows the place and the line itself.
    assert f"--> {__file__}:" in str(caught.value) and marker in str(caught.value)


def test_a_parallel_loop_beside_other_statements_of_another():
    @T.prim_func
    def program(A: T.Tensor((4, 8), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                A[i, 0] = 1.0
                for j in T.Parallel(8):  # not alone
                    A[i, j] = 2.0

    refused(program, "must be its only statement", "# not alone")


def test_a_pipeline_inside_a_parallel_loop():
    @T.prim_func
    def program(A: T.Tensor((4, 8), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                for k in T.Pipelined(8, num_stages=2):  # pipeline
                    A[i, k] = 2.0

    refused(program, "T.Pipelined cannot stand inside T.Parallel", "# pipeline")


def test_a_tile_op_inside_a_parallel_loop():
    @T.prim_func
    def program(A: T.Tensor((4, 8), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((8,), "float32")
            for i in T.Parallel(4):
                T.copy(A[i, 0:8], tile)  # tile op

    refused(program, "the tile op T.copy cannot stand inside T.Parallel", "# tile op")


def test_per_thread_storage_indexed_by_a_parallel_variable():
    @T.prim_func
    def stored(A: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            mine = T.alloc_local((4,), "float32")
            for i in T.Parallel(4):
                mine[i] = A[i]  # stored

    @T.prim_func
    def loaded(A: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            mine = T.alloc_local((4,), "float32")
            for i in T.Parallel(4):
                A[i] = mine[3 - i]  # loaded

    refused(stored, "mine is a per-thread buffer .*use T.alloc_fragment", "# stored")
    refused(loaded, "mine is a per-thread buffer", "# loaded")


def test_a_fragment_indexed_over_a_range_known_only_at_run_time():
    @T.prim_func
    def program(A: T.Tensor((8,), "float32"), n: T.int32):
        with T.Kernel(1):
            tile = T.alloc_fragment((8,), "float32")
            for i in T.Parallel(n):
                tile[i] = A[i]  # run time

    refused(program, "fragment tile is indexed by i, whose range n", "# run time")


def test_nests_that_are_fine():
    @T.prim_func
    def program(A: T.Tensor((4, 8), "float32"), n: T.int32):
        with T.Kernel(1):
            tile = T.alloc_shared((4, 8), "float32")
            mine = T.alloc_local((4,), "float32")
            for i in T.Parallel(4):
                for j in T.Parallel(8):
                    tile[i, j] = A[i, j]
            for k in T.Pipelined(4, num_stages=2):
                mine[k] = 1.0
                for i, j in T.Parallel(4, 8):
                    for step in T.serial(2):
                        if step < n:
                            tile[i, j] += mine[k]
                T.copy(tile, A)
            for i in T.Parallel(n):
                A[0, i] = tile[0, i]

    check_nesting(program)
