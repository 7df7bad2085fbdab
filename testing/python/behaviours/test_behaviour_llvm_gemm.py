"""Matrix products on target ``llvm``, with local buffers and no threads."""

import pytest
import torch
from tvm.target import Target

import tilelang
import tilelang.language as T


def local_gemm(M, N, K, block, transpose_A=False, transpose_B=False):
    block_M, block_N, block_K = block
    A_shape, A_tile = ((K, M), (block_K, block_M)) if transpose_A else ((M, K), (block_M, block_K))
    B_shape, B_tile = ((N, K), (block_N, block_K)) if transpose_B else ((K, N), (block_K, block_N))

    @T.prim_func
    def main(
        A: T.Tensor(A_shape, "float32"),
        B: T.Tensor(B_shape, "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            A_local = T.alloc_local(A_tile, "float32")
            B_local = T.alloc_local(B_tile, "float32")
            C_local = T.alloc_local((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.serial(T.ceildiv(K, block_K)):
                if transpose_A:
                    T.copy(A[k * block_K, by * block_M], A_local)
                else:
                    T.copy(A[by * block_M, k * block_K], A_local)
                if transpose_B:
                    T.copy(B[bx * block_N, k * block_K], B_local)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_local)
                T.gemm(A_local, B_local, C_local, transpose_A, transpose_B)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


SIZES = [
    ((128, 128, 128), (32, 32, 32)),
    ((128, 256, 64), (32, 64, 32)),
    ((256, 64, 128), (64, 32, 16)),
    ((64, 64, 64), (16, 16, 16)),
]
TRANSPOSED = [(True, False), (False, True), (True, True)]


@pytest.mark.parametrize(("size", "block"), SIZES)
def test_lowering_gives_source(size, block):
    with Target("llvm"):
        artifact = tilelang.lower(local_gemm(*size, block))
    assert artifact.kernel_source is not None


@pytest.mark.parametrize("transposed", TRANSPOSED)
def test_lowering_transposed_operands_gives_source(transposed):
    with Target("llvm"):
        artifact = tilelang.lower(local_gemm(64, 128, 96, (32, 32, 32), *transposed))
    assert artifact.kernel_source is not None


def compiled(*arguments):
    return tilelang.compile(
        local_gemm(*arguments), target="llvm", out_idx=[2], execution_backend="tvm_ffi"
    )


@pytest.mark.parametrize(("size", "block"), SIZES)
def test_products(size, block):
    M, N, K = size
    a, b = torch.randn(M, K), torch.randn(K, N)
    torch.testing.assert_close(compiled(M, N, K, block)(a, b), a @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("transposed", TRANSPOSED)
def test_products_of_transposed_operands(transposed):
    a, b = torch.randn(64, 96), torch.randn(96, 128)
    found = compiled(64, 128, 96, (32, 32, 32), *transposed)(
        a.T.contiguous() if transposed[0] else a, b.T.contiguous() if transposed[1] else b
    )
    torch.testing.assert_close(found, a @ b, rtol=1e-3, atol=1e-3)


def test_operands_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="gemm"):

        @T.prim_func
        def main(A: T.Tensor((16, 16), "float32")):
            with T.Kernel(1):
                a, b, c = (
                    T.alloc_local(shape, "float32") for shape in ((16, 8), (16, 16), (16, 16))
                )
                T.gemm(a, b, c)
