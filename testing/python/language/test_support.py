"""The matrix of operations and backends, and the refusal made from it."""

from __future__ import annotations

import pytest

import tilelang
import tilelang.language as T
from tilelang.cuda import language as cuda
from tilelang.errors import UnsupportedError
from tilelang.ir import intrin
from tilelang.ir.op import tile_ops
from tilelang.ir.support import TILE_OPS, backends_of, check_support, support_table


def test_the_table_is_complete():
    table = support_table()
    assert set(TILE_OPS) <= {op.name for op in tile_ops()}
    assert {record.name for record in intrin.intrinsics()} <= set(table)
    assert all(backends and backends <= intrin.ALL for backends in table.values())


def test_backends_of():
    assert backends_of("copy") == backends_of("exp") == intrin.ALL
    assert "webgpu" not in backends_of("gemm")
    assert backends_of("ptx_commit_group") == {"cuda", "cutedsl", "rocm"}
    with pytest.raises(KeyError):
        backends_of("nothing")


def test_asynchronous_units_are_not_on_the_cpu():
    assert not [r.name for r in intrin.intrinsics() if r.asynchronous and "cpu" in r.backends]


@T.prim_func
def plain(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=32):
        tile = T.alloc_shared((32,), "float32")
        T.copy(A, tile)
        for i in T.Parallel(32):
            B[i] = T.exp(tile[i])


@pytest.mark.parametrize("backend", sorted(intrin.ALL))
def test_a_neutral_program_runs_everywhere(backend):
    check_support(plain, backend)


def test_refused_programs_name_operation_line_and_backends():
    @T.prim_func
    def kernel(A: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            T.sync_threads()
            cuda.fence_proxy_async()  # refused here

    with pytest.raises(UnsupportedError) as failure:
        check_support(kernel, "cpu")
    text = str(failure.value)
    assert "T.fence_proxy_async is not available on backend 'cpu'" in text
    assert "available on: cuda, cutedsl" in text
    assert "# refused here" in text and __file__ in text
    check_support(kernel, "cuda")


def test_tile_operations_are_refused_by_name():
    @T.prim_func
    def kernel(A: T.Tensor((32, 4), "float32")):
        with T.Kernel(1, threads=32):
            x = T.alloc_fragment((32, 4), "float32")
            y = T.alloc_fragment((32,), "float32")
            T.copy(A, x)
            T.reduce_sum(x, y, dim=1)

    with pytest.raises(UnsupportedError, match=r"T.reduce is not available on backend 'metal'"):
        check_support(kernel, "metal")
    check_support(kernel, "cpu")


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        (lambda: T.ptx_wait_group(0), "ptx_wait_group"),
        (lambda: T.sync_grid(), "sync_grid"),
        (lambda: cuda.pdl_trigger(), "pdl_trigger"),
        (lambda: T.evaluate(T.ieee_mul(1.0, 2.0, "rz")), "ieee_mul_rz"),
    ],
)
def test_compiling_for_the_cpu_names_what_is_missing(statement, name):
    @T.prim_func
    def kernel(A: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            statement()

    with pytest.raises(UnsupportedError, match=f"T.{name} is not available on backend 'cpu'"):
        tilelang.compile(kernel, target="llvm")
