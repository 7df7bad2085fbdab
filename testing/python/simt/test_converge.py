"""Tile ops under conditions that threads decide one by one."""

from __future__ import annotations

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.errors import LoweringError

CUDA = {"kind": "cuda", "arch": "sm_90a"}


@T.prim_func
def one_thread_asks(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), which: T.int32):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        tile = T.alloc_shared((64,), "float32")
        tile[tx] = 0.0
        if tx == which:
            T.copy(A, tile)
        B[tx] = tile[tx]


@pytest.mark.parametrize(("which", "copied"), [(5, True), (63, True), (64, False)])
def test_a_copy_that_one_thread_asks_for_is_done_by_all(which, copied):
    a = torch.randn(64)
    kernel = tilelang.compile(one_thread_asks, out_idx=1, target=CUDA, execution_backend="emulator")
    expected = a if copied else torch.zeros(64)
    torch.testing.assert_close(kernel(a, which), expected, rtol=0, atol=0)
    reference = tilelang.interpret(one_thread_asks, a, which, out_idx=1)
    torch.testing.assert_close(kernel(a, which), reference, rtol=0, atol=0)


def test_a_branch_that_mixes_both_is_refused_at_its_line():
    @T.prim_func
    def mixed(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((64,), "float32")
            if tx < 5:
                T.copy(A, tile)
                B[tx] = A[tx]

    with pytest.raises(LoweringError, match=r"(?s)taken by some threads only.*test_converge"):
        tilelang.lower(mixed, target=CUDA)


def test_a_loop_of_each_thread_is_refused():
    @T.prim_func
    def uneven(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((64,), "float32")
            for _ in T.serial(tx):
                T.copy(A, tile)

    with pytest.raises(LoweringError, match="different number of times"):
        tilelang.lower(uneven, target=CUDA)


def test_an_op_on_storage_of_the_thread_stays_with_it():
    @T.prim_func
    def own(A: T.Tensor((64, 4), "float32"), B: T.Tensor((64, 4), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            mine = T.alloc_local((4,), "float32")
            if tx % 2 == 0:
                T.copy(A[tx, 0:4], mine)
                T.copy(mine, B[tx, 0:4])
            else:
                T.clear(mine)
                T.copy(mine, B[tx, 0:4])

    a = torch.randn(64, 4)
    kernel = tilelang.compile(own, out_idx=1, target=CUDA, execution_backend="emulator")
    expected = torch.where(torch.arange(64)[:, None] % 2 == 0, a, torch.zeros(()))
    torch.testing.assert_close(kernel(a), expected, rtol=0, atol=0)
