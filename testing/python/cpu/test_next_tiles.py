"""What a pipelined loop announces to the products in it."""

from __future__ import annotations

import pytest
import torch
from tvm import tirx
from tvm_ffi import structural_walk

import tilelang
import tilelang.language as T
from tilelang.cpu.transform.next_tiles import next_tiles


def announced(program):
    """Text of the regions that each loop of ``program`` announces, without empty answers."""
    found = []

    def on_loop(loop):
        if regions := next_tiles(loop):
            found.append(sorted(str(region) for region in regions))

    structural_walk(program.body, (tirx.For, on_loop))
    return found


def product(num_stages, block_k=32, n=128, k=96):
    @T.prim_func
    def main(
        a: T.Tensor((n, k), "float32"),
        b: T.Tensor((k, n), "float32"),
        c: T.Tensor((n, n), "float32"),
    ):
        with T.Kernel(n // 64, n // 64, threads=32) as (bx, by):
            a_tile = T.alloc_shared((64, block_k), "float32")
            b_tile = T.alloc_shared((block_k, 64), "float32")
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(k, block_k), num_stages=num_stages):
                T.copy(a[by * 64, ko * block_k], a_tile)
                T.copy(b[ko * block_k, bx * 64], b_tile)
                T.gemm(a_tile, b_tile, acc)
            T.copy(acc, c[by * 64, bx * 64])

    return main


def test_tiles_of_the_next_iteration():
    ((a, b),) = announced(product(3))
    assert a.startswith("a[") and b.startswith("b[")
    assert "(ko + 1) * 32" in a and "(ko + 1) * 32" in b


@pytest.mark.parametrize("num_stages", [0, 1])
def test_a_loop_without_stages_announces_nothing(num_stages):
    assert announced(product(num_stages)) == []


def test_tiles_at_places_read_from_memory_are_not_announced():
    @T.prim_func
    def main(
        a: T.Tensor((8, 16, 32), "float32"),
        pages: T.Tensor((4,), "int32"),
        b: T.Tensor((32, 16), "float32"),
        c: T.Tensor((16, 16), "float32"),
    ):
        with T.Kernel(1, threads=32):
            a_tile = T.alloc_shared((16, 32), "float32")
            b_tile = T.alloc_shared((32, 16), "float32")
            acc = T.alloc_fragment((16, 16), "float32")
            T.copy(b, b_tile)
            T.clear(acc)
            for i in T.Pipelined(4, num_stages=2):
                T.copy(a[pages[i], 0:16, 0:32], a_tile)
                T.gemm(a_tile, b_tile, acc)
            T.copy(acc, c)

    assert announced(main) == []
    a, b = torch.randn(8, 16, 32), torch.randn(32, 16)
    pages = torch.tensor([7, 0, 3, 3], dtype=torch.int32)
    c = torch.empty(16, 16)
    tilelang.compile(main, target="llvm")(a, pages, b, c)
    torch.testing.assert_close(c, (a[pages.long()] @ b).sum(0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("block_k", "k"), [(32, 96), (17, 90)])
def test_prefetches_appear_in_the_code_and_change_no_result(block_k, k):
    program = product(2, block_k, 128, k)
    assert "llvm.prefetch" in tilelang.lower(program, target="llvm").kernel_source
    plain = product(0, block_k, 128, k)
    assert "llvm.prefetch" not in tilelang.lower(plain, target="llvm").kernel_source
    a, b = torch.randn(128, k), torch.randn(k, 128)
    results = [torch.empty(128, 128) for _ in range(2)]
    for p, c in zip((program, plain), results, strict=True):
        tilelang.compile(p, target="llvm")(a, b, c)
    assert torch.equal(*results)
