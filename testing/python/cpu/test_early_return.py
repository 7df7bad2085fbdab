"""``T.ret`` ends one block; the blocks behind it run."""

from __future__ import annotations

import pytest
import torch
from ways import check

import tilelang
import tilelang.language as T
from tilelang.errors import UnsupportedError

BLOCKS = 24


def program(body):
    inner = T.macro(body)

    @T.prim_func
    def main(A: T.Tensor((BLOCKS,), "int32"), B: T.Tensor((BLOCKS, 8), "int32")):
        with T.Kernel(BLOCKS // 4, 4, threads=32) as (x, y):
            inner(A, B, y * (BLOCKS // 4) + x)

    return main


def under_a_condition(A, B, block):
    if A[block] > 3:
        T.ret(0)
    B[block, 0] = 1


def as_its_threads_do(A, B, block):
    if A[block] > 3:
        T.thread_return()
    B[block, 0] = 1


def at_once(A, B, block):
    B[block, 0] = 1
    T.ret(0)
    B[block, 1] = 1


def in_a_loop(A, B, block):
    for i in T.serial(8):
        if i == A[block]:
            T.ret(0)
        B[block, i] = 1
    B[block, 7] = 5


def in_nested_loops(A, B, block):
    for i in T.serial(3):
        for j in T.unroll(3):
            if i * 3 + j == A[block]:
                T.ret(0)
            B[block, i * 2 + j // 2] += 1
        B[block, 7] += 10
    B[block, 7] += 100


def in_a_while_loop(A, B, block):
    n = T.alloc_var("int32", init=0)
    while n < 6:
        if n == A[block]:
            T.ret(0)
        B[block, n] = 1
        n += 1
    B[block, 7] = 5


def beside_other_jumps(A, B, block):
    for i in T.serial(8):
        if i == 1:
            continue
        if i == 5:
            break
        if i == A[block]:
            T.ret(0)
        B[block, i] = 1
    B[block, 7] = 5


def between_tile_operations(A, B, block):
    tile = T.alloc_shared((8,), "int32")
    T.fill(tile, block)
    T.copy(tile, B[block, 0:8])
    if A[block] % 2 == 0:
        T.ret(0)
    T.fill(tile, -1)
    T.copy(tile, B[block, 0:8])


@pytest.mark.parametrize(
    "body",
    [
        under_a_condition,
        as_its_threads_do,
        at_once,
        in_a_loop,
        in_nested_loops,
        in_a_while_loop,
        beside_other_jumps,
        between_tile_operations,
    ],
)
def test_the_block_ends_and_no_other(body):
    a = torch.arange(BLOCKS, dtype=torch.int32) % 10
    written = check(program(body), a, torch.zeros((BLOCKS, 8), dtype=torch.int32))[1]
    assert written[-1].any(), "the last block ran"


def test_a_launch_of_one_dimension():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(64, threads=32) as bx:
            if bx == 3:
                T.ret(0)
            A[bx] = 1

    (written,) = check(main, torch.zeros(64, dtype=torch.int32))
    assert written.sum() == 63 and written[3] == 0


def in_a_parallel_loop(A, B, block):
    for i in T.Parallel(8):
        if i == A[block]:
            T.ret(0)
        B[block, i] = 1


def in_a_thread(A, B, block):
    if T.get_thread_binding() == 3:
        T.ret(0)
    B[block, T.get_thread_binding() % 8] = 1


def by_its_other_name(A, B, block):
    if T.get_thread_binding() == 3:
        T.thread_return()
    B[block, T.get_thread_binding() % 8] = 1


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (in_a_parallel_loop, "parallel loop"),
        (in_a_thread, "thread program"),
        (by_its_other_name, "thread program"),
    ],
)
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_one_of_many_that_run_together_cannot_end(target, body, where):
    with pytest.raises(UnsupportedError, match=f"(?s)T.ret in a {where}.*guard.*{__file__}"):
        tilelang.compile(program(body), target=target)
