"""Parallel iterations that touch one element; sizes and outer loops stand for any value."""

from __future__ import annotations

import pytest

import tilelang.language as T
from tilelang.analysis import check_parallel_writes
from tilelang.errors import SemanticError

N = T.dynamic("N")


def program(body):
    inner = T.macro(body)

    @T.prim_func
    def main(A: T.Tensor((64 * N,), "float32"), n: T.int32):
        with T.Kernel(4, threads=64) as bx:
            inner(A, n, bx)

    return main


def one_element(A, n, bx):
    for i in T.Parallel(8):
        A[0] = i


def halves(A, n, bx):
    for i in T.Parallel(8):
        A[bx * 8 + i // 2] = i


def neighbours(A, n, bx):
    for i in T.Parallel(8):
        A[i + 1] = A[i]


def other_row(A, n, bx):
    for i, j in T.Parallel(4, 4):
        A[i * n] = j


@pytest.mark.parametrize("body", [one_element, halves, neighbours, other_row])
def test_refused(body):
    with pytest.raises(SemanticError, match=r"iterations \(i=.*touch the same element of A"):
        check_parallel_writes(program(body))


def flattened_rows(A, n, bx):
    for i, j in T.Parallel(8, 4):
        A[i * N + j] = 1


def stride_of_an_argument(A, n, bx):
    for i in T.Parallel(8):
        A[i * n] = 1


def stride_of_an_outer_loop(A, n, bx):
    for s in T.serial(1, 4):
        for i in T.Parallel(8):
            A[i * s] = s


def divided_by_an_argument(A, n, bx):
    for i in T.Parallel(8):
        A[i // n] = 1


def stride_of_a_block(A, n, bx):
    for i in T.Parallel(8):
        A[i * (bx + 1)] = 1


def through_a_table(A, n, bx):
    for i in T.Parallel(8):
        A[T.cast(A[i + 64], "int32")] = 1


@pytest.mark.parametrize(
    "body",
    [
        flattened_rows,
        stride_of_an_argument,
        stride_of_an_outer_loop,
        divided_by_an_argument,
        stride_of_a_block,
        through_a_table,
    ],
)
def test_not_judged(body):
    check_parallel_writes(program(body))
