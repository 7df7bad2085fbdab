"""``T.tvm_thread_allreduce`` and the scope of ``T.attr``."""

from __future__ import annotations

import pytest
import torch
from tvm import tirx as tir
from tvm_ffi import structural_walk

import tilelang
import tilelang.language as T
from tilelang.errors import TraceError, TraceTypeError
from tilelang.interpreter import interpret


def runs(program, *args, out_idx):
    yield interpret(program, *args, out_idx=out_idx)
    for target in ("llvm", "c"):
        yield tilelang.compile(program, target=target, out_idx=out_idx)(*args)


def argmax(rows, columns):
    """Value and place of the maximum of each row, in one reduction of pairs."""

    def larger(v, i, w, j):
        take = tir.Or(v > w, tir.And(tir.EQ(v, w), i < j))
        return tir.Select(take, v, w), tir.Select(take, i, j)

    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), "float32"),
        valid: T.int32,
        value: T.Tensor((rows,), "float32"),
        place: T.Tensor((rows,), "int32"),
    ):
        with T.Kernel(1, threads=(rows, columns)):
            r, c = T.get_thread_binding(0), T.get_thread_binding(1)
            best = T.alloc_local((1,), "float32")
            where = T.alloc_local((1,), "int32")
            with T.attr(
                T.comm_reducer(larger, [-T.infinity("float32"), T.int32(-1)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), "handle"),
            ):
                T.tvm_thread_allreduce(
                    T.uint32(2), A[r, c], c, c < valid, best[0], where[0], c, dtype="handle"
                )
            if c == 0:
                value[r] = best[0]
                place[r] = where[0]

    return main


def test_pairs_over_one_axis():
    x = torch.randn(5, 13)
    for value, place in runs(argmax(5, 13), x, 9, out_idx=[2, 3]):
        expected = x[:, :9].max(1)
        assert torch.equal(value, expected.values)
        assert torch.equal(place.long(), expected.indices)


def test_every_thread_gets_the_result_of_all_axes():
    @T.prim_func
    def main(A: T.Tensor((3, 4), "int64"), B: T.Tensor((3, 4), "int64")):
        with T.Kernel(1, threads=(4, 3)):
            x, y, _ = T.get_thread_bindings()
            total = T.alloc_local((1,), "int64")
            T.attr(T.comm_reducer(lambda a, b: a + b, [T.int64(0)]), "reduce_scope", 0)
            T.evaluate(T.tvm_thread_allreduce(1, A[y, x], True, total[0], x, y))
            B[y, x] = total[0] - A[y, x]

    a = torch.randint(-(2**40), 2**40, (3, 4))
    for b in runs(main, a, out_idx=[1]):
        assert torch.equal(b, a.sum() - a)


def test_with_ends_the_attribute():
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            with T.attr(A, "inner", 1):
                A[0] = 1
            A[1] = 2

    found = []
    structural_walk(main.body, (tir.AttrStmt, lambda attr: found.append(attr.body)))
    assert [str(body.value) for body in found] == ["1"]


@pytest.mark.parametrize(
    ("size", "arguments", "error", "message"),
    [
        (1, lambda A, R, t: (A[t], True, t), TraceTypeError, "elements for the results"),
        (2, lambda A, R, t: (A[t], True, R[0], t), TraceTypeError, "works on 1 values, found size"),
        (1, lambda A, R, t: (A[t], True, R[0]), TraceTypeError, "are thread indices of the launch"),
        (1, lambda A, R, t: (A[t], True, R[0], t + 1), TraceTypeError, "are thread indices"),
    ],
)
def test_wrong_arguments(size, arguments, error, message):
    with pytest.raises(error, match=message):

        @T.prim_func
        def main(A: T.Tensor((32,), "int32")):
            with T.Kernel(1, threads=32):
                t = T.get_thread_binding()
                R = T.alloc_local((1,), "int32")
                with T.attr(T.comm_reducer(lambda a, b: a + b, [0]), "reduce_scope", 0):
                    T.tvm_thread_allreduce(size, *arguments(A, R, t))


def test_without_a_combiner():
    with pytest.raises(TraceError, match="needs its combiner"):

        @T.prim_func
        def main(A: T.Tensor((32,), "int32")):
            with T.Kernel(1, threads=32):
                t = T.get_thread_binding()
                R = T.alloc_local((1,), "int32")
                T.tvm_thread_allreduce(1, A[t], True, R[0], t)


def test_identity_is_a_list():
    with pytest.raises(TraceTypeError, match="the identity is a list of values, found int"):
        T.comm_reducer(lambda a, b: a + b, 0)
