"""The tvm_ffi execution backend: outputs, symbolic sizes, convolution, several launches."""

import pytest
import torch
from behaviour_kernels import gemm, matmul
from devices import tvm_ffi

import tilelang
import tilelang.language as T


@pytest.mark.devices
def test_an_output_is_allocated_and_returned():
    kernel = tilelang.compile(
        gemm(256, 256, 64, (128, 256, 32), num_stages=2),
        out_idx=-1,
        execution_backend=tvm_ffi(),
    )
    a, b = torch.randn(256, 64).half(), torch.randn(64, 256).half()
    torch.testing.assert_close(kernel(a, b), matmul(a, b), rtol=1e-2, atol=1e-2)


@pytest.mark.devices
def test_the_native_callable_allocates_the_output():
    kernel = tilelang.compile(gemm(T.dynamic("m"), 64, 64), out_idx=-1, execution_backend=tvm_ffi())
    a, b = torch.randn(48, 64).half(), torch.randn(64, 64).half()
    c = kernel.torch_function(a, b)
    assert c.shape == (48, 64) and torch.equal(c, kernel(a, b))


@pytest.mark.devices
def test_without_out_idx_the_output_is_passed():
    kernel = tilelang.compile(gemm(128, 64, 64), execution_backend=tvm_ffi())
    a, b = torch.randn(128, 64).half(), torch.randn(64, 64).half()
    c = torch.empty(128, 64, dtype=torch.float16)
    assert kernel(a, b, c) is None
    torch.testing.assert_close(c, matmul(a, b), rtol=1e-2, atol=1e-2)


def test_without_out_idx_all_tensors_are_needed():
    kernel = tilelang.compile(gemm(128, 64, 64), execution_backend=tvm_ffi())
    with pytest.raises(TypeError, match="C"):
        kernel(torch.randn(128, 64).half(), torch.randn(64, 64).half())


@pytest.mark.devices
@pytest.mark.parametrize("symbolic", ["M", "MN", "MNK"])
def test_one_kernel_is_right_for_every_size(symbolic):
    M, N, K = (T.dynamic(name) if name in symbolic else 96 for name in "MNK")
    kernel = tilelang.compile(gemm(M, N, K, num_stages=2), out_idx=-1, execution_backend=tvm_ffi())
    for size in ((64, 64, 64), (100, 33, 70)):
        m, n, k = (s if name in symbolic else 96 for name, s in zip("MNK", size, strict=True))
        a, b = torch.randn(m, k).half(), torch.randn(k, n).half()
        torch.testing.assert_close(kernel(a, b), matmul(a, b), rtol=1e-2, atol=1e-2)


def test_dtypes_convert_to_torch_and_a_symbolic_size_is_a_var():
    assert T.dtype("float16").as_torch() is torch.float16
    assert T.dtype("bfloat16").as_torch() is torch.bfloat16
    assert T.dtype("int8").as_torch() is torch.int8
    assert isinstance(T.dynamic("m"), T.Var)


@pytest.mark.parametrize(
    ("part", "dtype", "there"),
    [("8", T.int8, True), ("int", T.int16, True), ("uint", T.uint8, True), ("uint", T.int8, False)],
)
def test_dtypes_are_searched_like_text(part, dtype, there):
    assert (part in dtype) is there


def convolution(N, C, H, W, F, K, S, D, P, block_M=64, block_N=32, block_K=32):
    """NHWC convolution as a product of unfolded tiles and a re-viewed kernel."""
    OH = (H + 2 * P - D * (K - 1) - 1) // S + 1
    OW = (W + 2 * P - D * (K - 1) - 1) // S + 1

    @T.prim_func
    def main(
        data: T.Tensor((N, H, W, C), "float16"),
        kernel: T.Tensor((K, K, C, F), "float16"),
        out: T.Tensor((N, OH, OW, F), "float16"),
    ):
        with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(N * OH * OW, block_M), threads=128) as (
            bx,
            by,
        ):
            data_shared = T.alloc_shared((block_M, block_K), "float16")
            kernel_shared = T.alloc_shared((block_K, block_N), "float16")
            out_local = T.alloc_fragment((block_M, block_N), "float32")
            kernel_flat = T.Tensor((K * K * C, F), "float16", kernel.data)
            out_flat = T.Tensor((N * OH * OW, F), "float16", out.data)
            T.clear(out_local)
            for k in T.Pipelined(T.ceildiv(K * K * C, block_K), num_stages=3):
                T.im2col(data, data_shared, by, k, K, S, D, P)
                T.copy(kernel_flat[k * block_K, bx * block_N], kernel_shared)
                T.gemm(data_shared, kernel_shared, out_local)
            T.copy(out_local, out_flat[by * block_M, bx * block_N])

    return main


@pytest.mark.devices
@pytest.mark.parametrize("geometry", [(3, 1, 1, 1), (3, 2, 1, 1), (3, 1, 2, 2), (1, 1, 1, 0)])
def test_im2col_and_gemm_are_a_convolution(geometry):
    K, S, D, P = geometry
    program = convolution(2, 32, 10, 12, 48, K, S, D, P)
    kernel = tilelang.compile(program, out_idx=-1, execution_backend=tvm_ffi())
    data, weight = torch.randn(2, 10, 12, 32).half(), torch.randn(K, K, 32, 48).half() * 0.1
    expected = torch.nn.functional.conv2d(
        data.float().permute(0, 3, 1, 2),
        weight.float().permute(3, 2, 0, 1),
        stride=S,
        dilation=D,
        padding=P,
    )
    torch.testing.assert_close(
        kernel(data, weight), expected.permute(0, 2, 3, 1).half(), rtol=1e-2, atol=1e-2
    )


def two_launches(hint=False):
    @T.prim_func
    def main(
        A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")
    ):
        with T.Kernel(2, threads=32) as bx:
            if hint:
                T.annotate_l2_hit_ratio({A: 0.5})
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] * 2.0
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(32):
                C[bx * 32 + i] = B[63 - bx * 32 - i] + 1.0

    return main


@pytest.mark.devices
@pytest.mark.parametrize("hint", [False, True])
def test_two_launches_run_in_order_whatever_the_hint_about_the_cache(hint):
    kernel = tilelang.compile(two_launches(hint), execution_backend=tvm_ffi())
    a, b, c = torch.randn(64), torch.zeros(64), torch.zeros(64)
    kernel(a, b, c)
    assert torch.equal(b, a * 2) and torch.equal(c, (a * 2).flip(0) + 1)


@pytest.mark.parametrize("ratio", [-0.1, 1.5])
def test_a_hit_ratio_is_a_share(ratio):
    with pytest.raises(ValueError, match="ratio"):

        @T.prim_func
        def main(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=32):
                T.annotate_l2_hit_ratio({A: ratio})
                T.clear(A)
