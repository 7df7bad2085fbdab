"""Tiled matrix products: operand forms, dtypes, sizes, stages."""

import pytest
import torch
from behaviour_kernels import gemm, matmul

import tilelang
import tilelang.language as T


def check(program, dtype, **transposed):
    """Compile with the third parameter as output and let the profiler compare."""
    kernel = tilelang.compile(program, out_idx=[2])
    profiler = kernel.get_profiler()
    profiler.assert_allclose(lambda a, b: matmul(a, b, dtype, **transposed), atol=1e-2, rtol=1e-2)
    return kernel


@pytest.mark.devices
def test_out_idx_allocates_the_third_parameter():
    kernel = tilelang.compile(gemm(128, 96, 64), out_idx=[2])
    a, b = torch.randn(128, 64).half(), torch.randn(64, 96).half()
    c = kernel(a, b)
    assert c.shape == (128, 96) and c.dtype == torch.float16
    torch.testing.assert_close(c, matmul(a, b), rtol=1e-2, atol=1e-2)
    assert "main" in kernel.get_kernel_source()


@pytest.mark.devices
def test_the_profiler_calls_the_reference_with_the_inputs_only():
    seen = []

    def reference(a, b):
        seen.append((a.shape, b.shape))
        return matmul(a, b)

    kernel = tilelang.compile(gemm(128, 96, 64), out_idx=[2])
    kernel.get_profiler().assert_allclose(reference, atol=1e-2, rtol=1e-2)
    assert seen[0] == ((128, 64), (64, 96))


@pytest.mark.devices
def test_the_profiler_notices_a_wrong_result():
    kernel = tilelang.compile(gemm(128, 96, 64), out_idx=[2])
    with pytest.raises(AssertionError):
        kernel.get_profiler().assert_allclose(lambda a, b: matmul(a, b) + 1, atol=1e-2, rtol=1e-2)


@pytest.mark.devices
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True)])
def test_f16_accumulated_in_f16(transposed):
    a, b = transposed
    program = gemm(
        256, 384, 128, (128, 128, 32), accum_dtype="float16", transpose_A=a, transpose_B=b,
        num_stages=2,
    )  # fmt: skip
    check(program, torch.float16, transpose_A=a, transpose_B=b)


@pytest.mark.devices
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_accumulated_in_float32(dtype):
    check(gemm(128, 128, 96, dtype=dtype, out_dtype="float32"), torch.float32)


def tf32(x):
    """Round to the ten mantissa bits of TF32."""
    return (x.view(torch.int32) + 0x1000 & ~0x1FFF).view(torch.float32)


@pytest.mark.devices
@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False)])
def test_tfloat32_operands_are_float32_tensors(transposed):
    a, b = transposed
    program = gemm(
        64, 128, 64, (64, 128, 32), T.tfloat32, "float32", transpose_A=a, transpose_B=b
    )  # fmt: skip
    kernel = tilelang.compile(program, out_idx=[2])
    left, right = (torch.randn(64, 64) for _ in range(2))
    right = torch.randn((128, 64) if b else (64, 128))
    expected = matmul(tf32(left), tf32(right), torch.float32, transpose_A=a, transpose_B=b)
    torch.testing.assert_close(kernel(left, right), expected, rtol=2e-2, atol=2e-2)


@pytest.mark.devices
@pytest.mark.parametrize("transposed", [(False, True), (True, False)])
def test_int8_accumulated_in_int32_is_exact(transposed):
    a, b = transposed
    program = gemm(
        128, 64, 128, (64, 64, 64), "int8", "int32", "int32", transpose_A=a, transpose_B=b
    )
    kernel = tilelang.compile(program, out_idx=[2])
    left = torch.randint(-128, 128, (128, 128), dtype=torch.int8)
    right = torch.randint(-128, 128, (64, 128) if b else (128, 64), dtype=torch.int8)
    expected = matmul(left, right, torch.int32, transpose_A=a, transpose_B=b)
    assert torch.equal(kernel(left, right), expected)


@pytest.mark.devices
def test_float64():
    program = gemm(
        128, 64, 96, (64, 32, 16), "float64", "float64", "float64", transpose_B=True
    )  # fmt: skip
    check(program, torch.float64, transpose_B=True)


@pytest.mark.devices
@pytest.mark.parametrize(
    ("size", "block", "stages"),
    [
        ((120, 136, 56), (64, 64, 32), 2),
        ((121, 133, 57), (64, 64, 32), 2),
        ((130, 259, 67), (128, 256, 32), 2),
        ((100, 40, 60), (128, 64, 32), 0),
        ((1, 3, 5), (64, 64, 32), 2),
    ],
)
def test_sizes_that_are_no_multiples_of_the_tile(size, block, stages):
    check(gemm(*size, block, num_stages=stages), torch.float16)


@pytest.mark.devices
@pytest.mark.parametrize("num_stages", [0, 1, 3])
def test_the_number_of_stages_does_not_change_the_result(num_stages):
    a, b = torch.randn(64, 96).half(), torch.randn(96, 64).half()
    plain = tilelang.compile(gemm(64, 64, 96, (32, 32, 32)), out_idx=[2])
    staged = gemm(64, 64, 96, (32, 32, 32), num_stages=num_stages)
    assert torch.equal(tilelang.compile(staged, out_idx=[2])(a, b), plain(a, b))


def register_gemm(M, N, K, block, register_A, register_B):
    block_M, block_N, block_K = block

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            A_local = T.alloc_fragment((block_M, block_K), "float16")
            B_local = T.alloc_fragment((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.copy(A_shared, A_local)
                T.copy(B_shared, B_local)
                T.gemm(
                    A_local if register_A else A_shared,
                    B_local if register_B else B_shared,
                    C_local,
                )
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@pytest.mark.devices
@pytest.mark.parametrize("registers", [(True, False), (False, True), (True, True)])
def test_operands_may_be_register_fragments(registers):
    check(register_gemm(128, 64, 96, (64, 64, 32), *registers), torch.float16)
