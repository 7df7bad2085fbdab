"""Profiling compiled kernels whose sizes are known at the call only."""

from __future__ import annotations

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.profiler import TensorSupplyType


def gemm(m, n, k, block=32, stages=3):
    @T.prim_func
    def main(
        a: T.Tensor((m, k), "float32"),
        b: T.Tensor((k, n), "float32"),
        c: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, block), T.ceildiv(m, block), threads=128) as (bx, by):
            a_tile = T.alloc_shared((block, block), "float32")
            b_tile = T.alloc_shared((block, block), "float32")
            acc = T.alloc_fragment((block, block), "float32")
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(k, block), num_stages=stages):
                T.copy(a[by * block, ko * block], a_tile)
                T.copy(b[ko * block, bx * block], b_tile)
                T.gemm(a_tile, b_tile, acc)
            T.copy(acc, c[by * block, bx * block])

    return main


@pytest.fixture(scope="module")
def dynamic_rows():
    return tilelang.compile(gemm(T.dynamic("m"), 64, 64), out_idx=-1, target="llvm")


@pytest.fixture(scope="module")
def dynamic_rows_and_columns():
    program = gemm(T.dynamic("m"), T.dynamic("n"), 64)
    return tilelang.compile(program, out_idx=-1, target="llvm")


def test_one_symbol(dynamic_rows):
    profiler = dynamic_rows.get_profiler(tensor_supply_type=TensorSupplyType.Normal)
    latency = profiler.do_bench(warmup=1, rep=2, dynamic_symbolic_constraints={"m": 96})
    assert latency > 0


def test_two_symbols(dynamic_rows_and_columns):
    profiler = dynamic_rows_and_columns.get_profiler(tensor_supply_type=TensorSupplyType.Normal)
    sizes = {"m": 64, "n": 96}
    assert profiler.do_bench(warmup=1, rep=2, dynamic_symbolic_constraints=sizes) > 0


@pytest.mark.parametrize("m", [1, 128, 256, 500])
def test_every_size_is_right(dynamic_rows, m):
    inputs = [torch.randn(m, 64), torch.randn(64, 64)]
    profiler = dynamic_rows.get_profiler()
    profiler.assert_allclose(
        torch.matmul, input_tensors=inputs, atol=1e-4, rtol=1e-4, max_mismatched_ratio=0
    )
    profiler.assert_consistent(repeat=2, input_tensors=inputs)


def test_given_tensors_need_no_constraints_and_win(dynamic_rows):
    profiler = dynamic_rows.get_profiler()
    inputs = [torch.randn(32, 64), torch.randn(64, 64)]
    assert profiler.do_bench(warmup=1, rep=2, input_tensors=inputs) > 0
    ignored = {"m": -1}
    profiler.do_bench(
        n_warmup=1, n_repeat=1, input_tensors=inputs, dynamic_symbolic_constraints=ignored
    )


def test_a_missing_symbol_is_named(dynamic_rows_and_columns):
    with pytest.raises(ValueError, match="need a value for n"):
        dynamic_rows_and_columns.get_profiler().do_bench(dynamic_symbolic_constraints={"m": 64})


def test_static_kernels_need_nothing():
    kernel = tilelang.compile(gemm(64, 64, 64), out_idx=-1, target="llvm")
    kernel.get_profiler().assert_allclose(torch.matmul, atol=1e-4, rtol=1e-4)
    assert kernel.run_once().shape == (64, 64)
