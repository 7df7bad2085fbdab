"""`T.Parallel`: extents, scalar arguments, spellings, unrolled and thread-bound loops."""

import re

import pytest
import torch

import tilelang
import tilelang.language as T


@pytest.mark.devices
def test_a_static_extent_of_the_block_size():
    @tilelang.jit(out_idx=[1])
    def plus_one(length=256, block=256):
        @T.prim_func
        def main(A: T.Tensor((length,), "float32"), B: T.Tensor((length,), "float32")):
            with T.Kernel(1, threads=block):
                for i in T.Parallel(block):
                    B[i] = A[i] + 1.0

        return main

    a = torch.randn(256)
    torch.testing.assert_close(plus_one()(a), a + 1.0)


def prefix_copy(limit=512):
    @tilelang.jit(out_idx=[1])
    def factory():
        @T.prim_func
        def main(
            A: T.Tensor((limit,), "float32"), B: T.Tensor((limit,), "float32"), valid: T.int32
        ):
            with T.Kernel(1, threads=256):
                tile = T.alloc_shared((limit,), "float32")
                T.fill(tile, 0.0)
                for i in T.Parallel(T.min(valid, limit)):
                    tile[i] = A[i]
                T.copy(tile, B)

        return main

    return factory()


@pytest.mark.devices
@pytest.mark.parametrize("valid", [0, 13, 200, 600])
def test_a_run_time_extent_covers_only_the_prefix(valid):
    a = torch.randn(512)
    count = min(valid, 512)
    expected = torch.zeros(512)
    expected[:count] = a[:count]
    assert torch.equal(prefix_copy()(a, valid), expected)


def test_an_int32_parameter_takes_a_python_int_only():
    kernel = prefix_copy()
    with pytest.raises(TypeError, match="valid"):
        kernel(torch.randn(512), "13")
    with pytest.raises(ValueError, match="valid"):
        kernel(torch.randn(512), 2**31)


@pytest.mark.devices
def test_lower_case_parallel():
    @tilelang.jit
    def double(A):
        A: T.Tensor((64,), "float32")
        B = T.empty((64,), "float32")
        with T.Kernel(1, threads=64):
            for i in T.parallel(64):
                B[i] = A[i] * 2.0
        return B

    a = torch.randn(64)
    assert torch.equal(double(a), a * 2)


@pytest.mark.devices("llvm", "c")
def test_the_source_of_an_eager_kernel_without_arguments():
    @tilelang.jit
    def count():
        B = T.empty((64,), "int32")
        with T.Kernel(1, threads=64):
            for i in T.parallel(64):
                B[i] = i
        return B

    assert "count" in count.get_kernel_source()
    assert count().tolist() == list(range(64))


@pytest.mark.devices
@pytest.mark.parametrize(
    "loop",
    [
        lambda: T.unroll(2, 14, step=4),
        lambda: T.unroll(2, 14, 4, unroll_factor=4),
        lambda: T.unroll(2, 14, 4, explicit=True),
    ],
    ids=["step", "factor", "explicit"],
)
def test_unrolled_loops_keep_start_and_step(loop):
    @T.prim_func
    def main(A: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=32):
            T.clear(A)
            for i in loop():
                A[i] = i

    kernel = tilelang.compile(main, out_idx=[0])
    expected = torch.zeros(16, dtype=torch.int32)
    expected[2:14:4] = torch.arange(2, 14, 4, dtype=torch.int32)
    assert torch.equal(kernel(), expected)


def unrolled():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.unroll(0, 64, step=4):
                A[i] = i
            for i in T.unroll(64, unroll_factor=4):
                A[i] += 1

    return main


def test_c_source_says_how_far_to_unroll():
    source = tilelang.compile(unrolled(), out_idx=[0], target="c").get_kernel_source()
    assert re.findall(r"#pragma GCC unroll (\d+)", source) == ["16", "4"]


def test_cuda_source_says_how_far_to_unroll():
    source = tilelang.lower(unrolled(), target={"kind": "cuda", "arch": "sm_90a"}).kernel_source
    assert re.findall(r"#pragma unroll(?: (\d+))?", source) == ["", "4"]


@pytest.mark.devices("llvm", "c")
def test_a_long_unrolled_loop_compiles_like_a_short_one():
    @T.prim_func
    def main(A: T.Tensor((70000,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.unroll(70000):
                A[i] = i

    found = tilelang.compile(main, out_idx=[0])()
    assert torch.equal(found, torch.arange(70000, dtype=torch.int32))


@pytest.mark.devices
def test_an_unrolled_extent_may_depend_on_the_thread():
    @T.prim_func
    def main(A: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding(0)
            A[tx] = 0
            for i in T.unroll(tx):
                A[tx] += i

    kernel = tilelang.compile(main, out_idx=[0])
    assert kernel().tolist() == [n * (n - 1) // 2 for n in range(32)]


@pytest.mark.devices
def test_handles_and_thread_binding_loops():
    @T.prim_func
    def main(a_handle: T.handle, b_handle: T.handle):
        A = T.match_buffer(a_handle, (4, 32), "float32")
        B = T.match_buffer(b_handle, (4, 32), "float32")
        for bx in T.thread_binding(4, "blockIdx.x"):
            for tx in T.thread_binding(32, "threadIdx.x"):
                B[bx, tx] = A[bx, tx] * 2.0

    a = torch.randn(4, 32)
    assert torch.equal(tilelang.compile(main, out_idx=[1])(a), a * 2)
