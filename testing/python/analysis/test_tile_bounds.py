"""Accesses that leave a tile or tensor are refused; those that may be guarded are not judged."""

from __future__ import annotations

import pytest

import tilelang.language as T
from tilelang.analysis import check_bounds
from tilelang.errors import SemanticError


def program(body, size=32):
    """A kernel whose body is the macro ``body``, with one shared tile ``s`` of ``size``."""
    inner = T.macro(body)

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), n: T.int32):
        with T.Kernel(2, threads=64) as bx:
            s = T.alloc_shared((size,), "float32")
            T.clear(s)
            inner(A, s, n, bx)

    return main


def parallel_read(A, s, n, bx):
    for i in T.Parallel(64):
        A[i] = s[i]


def shifted_store(A, s, n, bx):
    for i in T.serial(4):
        for j in T.Parallel(8):
            s[i * 8 + j + 1] = 0


def below(A, s, n, bx):
    for i in T.Parallel(8):
        A[i] = s[i - 1]


def constant(A, s, n, bx):
    s[32] = 1


def slice_of_a_copy(A, s, n, bx):
    T.copy(A[0:16], s[24:40])


def thread(A, s, n, bx):
    s[T.get_thread_binding()] = 1


@pytest.mark.parametrize(
    ("body", "index"),
    [
        (parallel_read, 63),
        (shifted_store, 32),
        (below, -1),
        (constant, 32),
        (slice_of_a_copy, 39),
        (thread, 63),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_refused(body, index):
    message = rf"index {index} is outside of dimension 0 of tile 's' \(32\).*indices 0 to 31"
    with pytest.raises(SemanticError, match=message) as caught:
        check_bounds(program(body))
    assert __file__ in str(caught.value)


def tensor_store(A, s, n, bx):
    A[64] = 1


def tensor_read(A, s, n, bx):
    s[0] = A[63] + A[64]


def tensor_read_in_a_serial_loop(A, s, n, bx):
    for i in T.serial(n):
        s[i] = A[64]


def tensor_atomic(A, s, n, bx):
    T.atomic_add(A[64], 1)


@pytest.mark.parametrize(
    ("body", "index"),
    [
        (tensor_store, 64),
        (tensor_read, 64),
        (tensor_read_in_a_serial_loop, 64),
        (tensor_atomic, 64),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_constant_index_outside_of_a_tensor_is_refused(body, index):
    message = rf"index {index} is outside of dimension 0 of tensor 'A' \(64\).*indices 0 to 63"
    with pytest.raises(SemanticError, match=message) as caught:
        check_bounds(program(body))
    assert __file__ in str(caught.value)


def tensor_in_parallel(A, s, n, bx):
    for i in T.Parallel(32):
        s[i] = A[64]


def tensor_slice_of_a_copy(A, s, n, bx):
    T.copy(A[48:80], s)
    A[60:68] = 1.0


def tensor_with_a_safe_value(A, s, n, bx):
    T.annotate_safe_value({A: 2.0})
    s[0] = A[64]


def tensor_under_a_condition(A, s, n, bx):
    if n > 64:
        A[64] = 1


def tensor_end_address(A, s, n, bx):
    T.call_extern("int32", "fill", T.address_of(A[0]), T.address_of(A[64]))


def guarded_by_if(A, s, n, bx):
    for i in T.Parallel(64):
        if i < 32:
            A[i] = s[i]


def guarded_by_select(A, s, n, bx):
    for i in T.Parallel(64):
        A[i] = T.if_then_else(i < 32, s[i], 0)


def guarded_by_and(A, s, n, bx):
    for i in T.serial(64):
        if i < 32 and s[i] > 0:
            A[i] = 1


def left_early(A, s, n, bx):
    for i in T.serial(64):
        if i >= 32:
            break
        A[i] = s[i]


def wrapped(A, s, n, bx):
    for i in T.Parallel(64):
        A[i] = s[i % 32]


def unknown(A, s, n, bx):
    for i in T.Parallel(32):
        A[i] = s[i + n]


def a_tensor(A, s, n, bx):
    for i in T.Parallel(128):
        A[i] = 0


def no_iterations(A, s, n, bx):
    for i in T.serial(0):
        s[i + 99] = 0


@pytest.mark.parametrize(
    "body",
    [
        guarded_by_if,
        guarded_by_select,
        guarded_by_and,
        left_early,
        wrapped,
        unknown,
        a_tensor,
        no_iterations,
        tensor_in_parallel,
        tensor_slice_of_a_copy,
        tensor_with_a_safe_value,
        tensor_under_a_condition,
        tensor_end_address,
    ],
)
def test_not_judged(body):
    check_bounds(program(body))
