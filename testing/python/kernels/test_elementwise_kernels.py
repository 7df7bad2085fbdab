"""Elementwise kernels: dynamic shapes, views, casts, scalars, several styles of the same thing."""

from __future__ import annotations

import pytest
import torch

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def elementwise_add(M, N, block_M, block_N, in_dtype, out_dtype, threads):
    @T.prim_func
    def elem_add(
        A: T.Tensor((M, N), in_dtype), B: T.Tensor((M, N), in_dtype), C: T.Tensor((M, N), out_dtype)
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_N), in_dtype)
            B_shared = T.alloc_shared((block_M, block_N), in_dtype)
            C_local = T.alloc_fragment((block_M, block_N), out_dtype)
            C_shared = T.alloc_shared((block_M, block_N), out_dtype)
            T.copy(A[by * block_M, bx * block_N], A_shared)
            T.copy(B[by * block_M, bx * block_N], B_shared)
            for local_y, local_x in T.Parallel(block_M, block_N):
                C_local[local_y, local_x] = A_shared[local_y, local_x] + B_shared[local_y, local_x]
            T.copy(C_local, C_shared)
            T.copy(C_shared, C[by * block_M, bx * block_N])

    return elem_add


@pytest.mark.everywhere
@pytest.mark.parametrize("in_dtype, out_dtype", [("float32", "float32"), ("bfloat16", "float32")])
def test_add(in_dtype, out_dtype):
    a, b = (torch.randn(33, 70).to(getattr(torch, in_dtype)) for _ in range(2))
    c = elementwise_add(33, 70, 16, 32, in_dtype, out_dtype, 128)(a, b)
    torch.testing.assert_close(c, (a + b).float())


@pytest.mark.everywhere
def test_add_of_dynamic_shapes():
    M, N = T.dynamic("m, n")
    kernel = elementwise_add(M, N, 16, 32, "float32", "float32", 128)
    for shape in ((5, 9), (40, 64), (0, 4), (1, 1)):
        a, b = torch.randn(shape), torch.randn(shape)
        torch.testing.assert_close(kernel(a, b), a + b)


@tilelang.jit
def fused_swiglu(X, alpha: T.float32, limit: T.float32, block: int = 32):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], T.bfloat16]
    Y = T.empty([M, N // 2], T.bfloat16)
    with T.Kernel(T.ceildiv(N // 2, block), M, threads=block) as (bx, row):
        for j in T.Parallel(block):
            col = bx * block + j
            gate = T.min(X[row, col].astype(T.float32), limit)
            up = T.clamp(T.cast(X[row, col + N // 2], T.float32), -limit, limit)
            Y[row, col] = gate / (1 + T.exp(-alpha * gate)) * (up + 1)
    return Y


@pytest.mark.everywhere
def test_swiglu_with_scalars_at_run_time():
    x = torch.randn(9, 140).bfloat16() * 3
    for alpha, limit in ((1.702, 2.0), (1.0, 7.0)):
        y = fused_swiglu(x, alpha, limit)
        gate, up = x.float()[:, :70].clamp(max=limit), x.float()[:, 70:].clamp(-limit, limit)
        ref = gate * torch.sigmoid(alpha * gate) * (up + 1)
        torch.testing.assert_close(y.float(), ref, rtol=2e-2, atol=2e-2)


ACTIVATIONS = {
    "relu": (lambda x: T.max(x, 0), torch.relu),
    "silu": (lambda x: x * T.sigmoid(x), torch.nn.functional.silu),
    "gelu": (
        lambda x: 0.5 * x * (1 + T.tanh(0.7978845608 * (x + 0.044715 * x * x * x))),
        lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    ),
    "softplus": (
        lambda x: T.if_then_else(x > 20, x, T.log1p(T.exp(x))),
        torch.nn.functional.softplus,
    ),
    "leaky": (
        lambda x: T.Select(x > 0, x, x * 0.1),
        lambda x: torch.nn.functional.leaky_relu(x, 0.1),
    ),
}


@tilelang.jit(out_idx=[1])
def activation(n, name):
    function = ACTIVATIONS[name][0]

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
            for i in T.Parallel(128):
                B[bx * 128 + i] = function(A[bx * 128 + i])

    return main


@pytest.mark.everywhere
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_passed_as_functions(name):
    x = torch.randn(300) * 4
    torch.testing.assert_close(
        activation(300, name)(x), ACTIVATIONS[name][1](x), rtol=1e-5, atol=1e-6
    )


@tilelang.jit
def strided_copy(A, B, block: int = 16):
    M, N, sA = T.dynamic("M, N, sA")
    A: T.StridedTensor((M, N), (sA, 1), "float32")
    B: T.Tensor((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
        T.copy(
            A[by * block, bx * block],
            B[by * block : (by + 1) * block, bx * block : (bx + 1) * block],
        )


@pytest.mark.everywhere
def test_rows_of_a_wider_tensor():
    wide = torch.randn(20, 50)
    out = torch.empty(20, 33)
    strided_copy(wide[:, 5:38], out)
    assert torch.equal(out, wide[:, 5:38])


@tilelang.jit(out_idx=[-1])
def dropout_mask(n, p):
    """A counter-based generator in integer arithmetic that wraps."""

    @T.macro
    def hashed(x):
        h = T.alloc_var("uint32")
        h = T.cast(x, "uint32") * T.uint32(2654435761)
        h = (h ^ (h >> T.uint32(15))) * T.uint32(0x85EBCA6B)
        return h ^ (h >> T.uint32(13))

    @T.prim_func
    def main(X: T.Tensor((n,), "float32"), seed: T.int32, Y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                h = hashed(bx * 64 + i + seed)
                keep = T.cast(h, "float32") * (1.0 / 4294967296.0) >= p
                Y[bx * 64 + i] = T.if_then_else(keep, X[bx * 64 + i] / (1 - p), 0)

    return main


@pytest.mark.everywhere
def test_random_mask_by_integer_hash():
    x = torch.randn(200)
    y = dropout_mask(200, 0.25)(x, 7)
    h = (torch.arange(200) + 7) * 2654435761 % 2**32
    h = (h ^ (h >> 15)) * 0x85EBCA6B % 2**32
    h = h ^ (h >> 13)
    ref = torch.where(h / 2**32 >= 0.25, x / 0.75, 0.0)
    torch.testing.assert_close(y, ref)


@tilelang.jit(out_idx=[1], target="c", execution_backend="cython")
def cast_kernel(n, src, dst):
    @T.prim_func
    def main(A: T.Tensor((n,), src), B: T.Tensor((n,), dst)):
        with T.Kernel(T.ceildiv(n, 32)) as bx:
            a = T.alloc_fragment((32,), src)
            b = T.alloc_fragment((32,), dst)
            T.copy(A[bx * 32], a)
            T.copy(a, b)
            T.copy(b, B[bx * 32])

    return main


@pytest.mark.parametrize("dst", ["float16", "bfloat16", "float8_e5m2", "int8", "int32", "bool"])
def test_casts_on_target_c(dst):
    x = torch.randn(70) * 20
    kernel = cast_kernel(70, "float32", dst)
    assert "#include" in kernel.get_kernel_source()
    assert torch.equal(kernel(x).to(torch.float32), x.to(getattr(torch, dst)).to(torch.float32))
