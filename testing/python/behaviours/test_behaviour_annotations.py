"""Expressions as tensor sizes, guarded copies, safe values, empty grids."""

import pytest
import torch
from devices import tvm_ffi

import tilelang
import tilelang.language as T


@pytest.mark.devices
@pytest.mark.parametrize(
    ("size", "extent"),
    [(lambda n: n * 4, 16), (lambda n: n + 1, 16), (lambda n: n * 3 + 1, 16)],
    ids=["n*4", "n+1", "n*3+1"],
)
def test_a_symbol_is_solved_from_an_expression(size, extent):
    @tilelang.jit(execution_backend=tvm_ffi())
    def fill():
        with pytest.warns(DeprecationWarning, match="T.dynamic"):
            n = T.symbolic("n")

        @T.prim_func
        def main(A: T.Tensor((size(n),), "int32")):
            with T.Kernel(1, threads=1):
                for i in range(size(n)):
                    A[i] = i + 1

        return main

    a = torch.zeros(extent, dtype=torch.int32)
    fill()(a)
    assert a.tolist() == list(range(1, extent + 1))


def test_an_extent_without_a_solution():
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n * 4,), "int32")):
        with T.Kernel(1, threads=1):
            T.clear(A)

    with pytest.raises(ValueError, match="A"):
        tilelang.compile(main)(torch.zeros(15, dtype=torch.int32))


def guarded_copy(parallel, upper, size=256, block=128):
    @tilelang.jit(out_idx=[1], pass_configs={"tl.disable_warp_specialized": True})
    def factory():
        @T.prim_func
        def main(A: T.Tensor((size, size), "float16"), B: T.Tensor((size, size), "float16")):
            with T.Kernel(size // block, size // block, threads=256) as (bx, by):
                tile = T.alloc_shared((block, block), "float16")
                tx = T.get_thread_binding(0)
                if (tx >= 128 and tx < 256) if upper else tx < 128:
                    if parallel:
                        for i, j in T.Parallel(block, block):
                            tile[i, j] = A[by * block + i, bx * block + j]
                    else:
                        T.copy(A[by * block, bx * block], tile)
                T.copy(tile, B[by * block, bx * block])

        return main

    return factory()


@pytest.mark.devices
@pytest.mark.parametrize("upper", [False, True], ids=["lower-half", "upper-half"])
@pytest.mark.parametrize("parallel", [False, True], ids=["copy", "parallel"])
def test_a_copy_by_half_of_the_threads_fills_the_whole_tile(parallel, upper):
    a = torch.randn(256, 256).half()
    assert torch.equal(guarded_copy(parallel, upper)(a), a)


@pytest.mark.parametrize(
    "key", ["tl.disable_warp_specialized", tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED]
)
def test_pass_configs_take_strings_and_members(key):
    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            T.clear(A)

    kernel = tilelang.compile(main, pass_configs={key: True})
    assert kernel.pass_configs == {"tl.disable_warp_specialized": True}


def test_a_misspelt_key_names_its_neighbours():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            T.clear(A)

    with pytest.raises(ValueError, match=r"tl\.disable_warp_specialized"):
        tilelang.compile(main, pass_configs={"tl.disable_warp_specialised": True})


@pytest.mark.devices("llvm", "c")
@pytest.mark.parametrize("value", [10.0, -1.5, 0.0])
def test_reading_outside_yields_the_safe_value(value, size=128, block=64):
    @T.prim_func
    def main(A: T.Tensor((size, size), "float16"), B: T.Tensor((size, size), "float16")):
        with T.Kernel(size // block, size // block, threads=128) as (bx, by):
            tile = T.alloc_shared((block, block), "float16")
            T.annotate_safe_value({A: value})
            for i, j in T.Parallel(block, block):
                tile[i, j] = A[by * block + i - 10, bx * block + j]
            T.copy(tile, B[by * block, bx * block])

    kernel = tilelang.compile(
        main,
        out_idx=[1],
        pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True},
    )
    a = torch.randn(size, size).half()
    expected = torch.full_like(a, value)
    expected[10:] = a[:-10]
    assert torch.equal(kernel(a), expected)


def test_a_safe_value_belongs_to_a_buffer():
    with pytest.raises((TypeError, ValueError), match="safe_value"):

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32):
                T.annotate_safe_value({3: 1.0})
                T.clear(A)


@pytest.mark.devices
def test_a_symbolic_grid_of_four_and_of_zero():
    @T.prim_func
    def main(A: T.Tensor((T.dynamic("rows"), 8), "float32")):
        with T.Kernel(A.shape[0], threads=32) as bx:
            for j in T.Parallel(8):
                A[bx, j] = A[bx, j] + 1.0

    kernel = tilelang.compile(main)
    a = torch.zeros(4, 8)
    kernel(a)
    assert torch.equal(a, torch.ones(4, 8))
    kernel(torch.zeros(0, 8))


@pytest.mark.devices("llvm", "c")
def test_a_static_grid_of_zero_leaves_the_output_untouched():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(0, threads=32):
            T.clear(A)

    a = torch.ones(8)
    tilelang.compile(main)(a)
    assert torch.equal(a, torch.ones(8))
