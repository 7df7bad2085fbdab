"""Lazy factories, compile-time arguments, parallel compilation, eager options."""

import pytest
import torch
from behaviour_kernels import gemm, matmul
from devices import ON_CPU

import tilelang
import tilelang.language as T


def make_factory():
    @tilelang.jit(out_idx=-1, verbose=True)
    def factory(M, N, K, block_M, block_N, block_K, dtype="float16"):
        return gemm(M, N, K, (block_M, block_N, block_K), dtype, dtype, num_stages=2)

    return factory


@pytest.mark.devices
def test_three_configurations_compiled_in_parallel(capsys):
    configurations = [
        (128, 128, 128, 64, 64, 32),
        (192, 64, 128, 64, 32, 32),
        (256, 96, 64, 128, 32, 64),
    ]
    kernels = make_factory().par_compile(configurations)
    assert len(kernels) == 3
    for (M, N, K, *_), kernel in zip(configurations, kernels, strict=True):
        a, b = torch.randn(M, K).half(), torch.randn(K, N).half()
        torch.testing.assert_close(kernel(a, b), matmul(a, b), rtol=1e-2, atol=1e-2)


def test_every_spelling_of_a_call_gives_one_kernel():
    factory = make_factory()
    kernel = factory(64, 64, 64, 32, 32, 32)
    assert factory(64, 64, 64, 32, 32, 32) is kernel
    assert factory(64, 64, 64, 32, 32, 32, "float16") is kernel
    assert factory(block_K=32, K=64, N=64, M=64, block_N=32, block_M=32) is kernel
    assert factory(64, 64, 64, 32, 32, 32, dtype="bfloat16") is not kernel


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f(64, M=64), "multiple values"),
        (lambda f: f(64), "missing a required argument"),
        (lambda f: f(64, 64, 64, 32, 32, 32, options={"a": []}), "unhashable|unexpected"),
        (
            lambda f: f(64, 64, 64, 32, 32, 32, dtype=bytearray(b"x")),
            "Unsupported unhashable JIT compile-time cache key value",
        ),
    ],
)
def test_wrong_calls_are_python_type_errors(call, message):
    with pytest.raises(TypeError, match=message):
        call(make_factory())


@pytest.mark.devices
def test_keyword_parameters_are_compile_time_values():
    seen = []

    @tilelang.jit(out_idx=-1)
    def factory(n, **options):
        seen.append(options)

        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(n):
                    B[i] = A[i] * options["table"]["scale"][0]

        return main

    kernel = factory(32, table={"scale": [3.0]}, note="x")
    assert factory(32, note="x", table={"scale": [3.0]}) is kernel
    assert factory(32, note="x", table={"scale": [4.0]}) is not kernel
    assert seen[0] == {"table": {"scale": [3.0]}, "note": "x"}
    a = torch.randn(32)
    assert torch.equal(kernel(a), a * 3)


def test_unhashable_defaults_and_equal_explicit_values_share_a_kernel():
    @tilelang.jit(out_idx=-1)
    def factory(n, blocks=[16, 32], table={"scale": 2.0}):  # noqa: B006
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(n // blocks[0], threads=blocks[1]) as bx:
                for i in T.Parallel(blocks[0]):
                    B[bx * blocks[0] + i] = A[bx * blocks[0] + i] * table["scale"]

        return main

    kernel = factory(32)
    assert factory(32, [16, 32]) is kernel
    assert factory(32, blocks=[16, 32], table={"scale": 2.0}) is kernel
    assert factory(32, [8, 32]) is not kernel


@tilelang.jit
def eager_matmul(A, B, block_M: int = 32, block_N: int = 32, dtype=T.float32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((N, K), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=64) as (bx, by):
        T.use_swizzle(panel_size=4, enable=True)
        A_shared = T.alloc_shared((block_M, 32), dtype)
        B_shared = T.alloc_shared((block_N, 32), dtype)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
            T.copy(A[by * block_M, k * 32], A_shared)
            T.copy(B[bx * block_N, k * 32], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_B=True)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


@pytest.mark.devices
def test_several_sizes_at_once_a_swizzle_and_a_transposed_operand_by_keyword(way):
    error = 1e-4 if way in ON_CPU else 2e-2
    a, b = torch.randn(100, 64), torch.randn(70, 64)
    torch.testing.assert_close(eager_matmul(a, b), a @ b.T, rtol=error, atol=error)
    wide = eager_matmul(a, b, block_M=64)
    torch.testing.assert_close(wide, a @ b.T, rtol=error, atol=error)


def test_eager_kernels_are_found_by_compile_time_values_and_sizes_only():
    a, b = torch.randn(64, 32), torch.randn(32, 32)
    kernel = eager_matmul.compile(M=64, N=32, K=32)
    assert eager_matmul.compile(a, b) is kernel
    assert eager_matmul.compile(torch.zeros(64, 32), b, dtype=T.float32) is kernel
    assert eager_matmul.compile(a, b, block_M=16) is not kernel


def test_sizes_that_contradict_each_other():
    with pytest.raises(ValueError, match=r"'B'.*\[32, 32\], got \[32, 48\]"):
        eager_matmul(torch.randn(64, 32), torch.randn(32, 48))


def test_a_size_nobody_knows():
    with pytest.raises((TypeError, ValueError), match="K"):
        eager_matmul.compile(M=64, N=32)


@pytest.mark.devices
def test_a_launch_of_one_block_names_only_its_threads():
    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(threads=32):
            T.copy(A, B)

    a = torch.randn(32)
    assert torch.equal(tilelang.compile(main, out_idx=-1)(a), a)
