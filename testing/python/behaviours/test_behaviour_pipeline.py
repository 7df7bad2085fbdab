"""`T.Pipelined` with explicit schedules, guards and stages; slices of batched tiles."""

import pytest
import torch
from behaviour_kernels import matmul

import tilelang
import tilelang.language as T
from tilelang.errors import TraceError

NO_WARP_SPECIALISATION = {tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True}


def scheduled_gemm(order, stage, size=128, block=(64, 64, 32)):
    block_M, block_N, block_K = block

    @tilelang.jit(out_idx=[-1], pass_configs=NO_WARP_SPECIALISATION)
    def factory():
        @T.prim_func
        def main(
            A: T.Tensor((size, size), "float16"),
            B: T.Tensor((size, size), "float16"),
            C: T.Tensor((size, size), "float16"),
        ):
            with T.Kernel(size // block_N, size // block_M, threads=128) as (bx, by):
                A_shared = T.alloc_shared((block_M, block_K), "float16")
                B_shared = T.alloc_shared((block_K, block_N), "float16")
                C_local = T.alloc_fragment((block_M, block_N), "float32")
                T.clear(C_local)
                for k in T.Pipelined(size // block_K, order=order, stage=stage):
                    T.copy(A[by * block_M, k * block_K], A_shared)
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                T.copy(C_local, C[by * block_M, bx * block_N])

        return main

    return factory()


@pytest.mark.devices
@pytest.mark.parametrize(
    ("order", "stage"),
    [
        ([0, 1, 2], [0, 0, 0]),
        ([0, 1, 2], [0, 0, 1]),
        ([1, 2, 0], [0, 0, 2]),
        ([1, 2, 0], [0, 0, 1]),
    ],
)
def test_an_explicit_schedule(order, stage):
    a, b = torch.randn(128, 128).half(), torch.randn(128, 128).half()
    torch.testing.assert_close(
        scheduled_gemm(order, stage)(a, b), matmul(a, b), rtol=1e-2, atol=1e-2
    )


def test_order_and_stage_need_one_entry_a_statement():
    with pytest.raises(TraceError):
        scheduled_gemm([0, 1], [0, 0, 1])


def block_sparse_gemm(num_stages, size=128, block=32):
    grid = size // block

    @tilelang.jit(out_idx=[-1], pass_configs=NO_WARP_SPECIALISATION)
    def factory():
        @T.prim_func
        def main(
            A: T.Tensor((size, size), "float16"),
            B: T.Tensor((size, size), "float16"),
            mask: T.Tensor((grid, grid, grid), "bool"),
            C: T.Tensor((size, size), "float16"),
        ):
            with T.Kernel(grid, grid, threads=128) as (bx, by):
                A_shared = T.alloc_shared((block, block), "float16")
                B_shared = T.alloc_shared((block, block), "float16")
                C_local = T.alloc_fragment((block, block), "float32")
                used = T.alloc_local((1,), "bool")
                T.clear(C_local)
                for k in T.Pipelined(grid, num_stages=num_stages):
                    used[0] = mask[by, bx, k]
                    if used[0]:
                        T.copy(A[by * block, k * block], A_shared)
                        T.copy(B[k * block, bx * block], B_shared)
                        T.gemm(A_shared, B_shared, C_local)
                T.copy(C_local, C[by * block, bx * block])

        return main

    return factory()


@pytest.mark.devices
@pytest.mark.parametrize("num_stages", [1, 2, 3])
def test_a_bool_guards_copies_and_gemm(num_stages):
    a, b = torch.randn(128, 128).half(), torch.randn(128, 128).half()
    mask = torch.rand(4, 4, 4) > 0.5
    expected = torch.zeros(4, 4, 32, 32)
    for i, j, k in mask.nonzero().tolist():
        left, right = a.float().view(4, 32, 4, 32), b.float().view(4, 32, 4, 32)
        expected[i, j] += left[i, :, k] @ right[k, :, j]
    expected = expected.permute(0, 2, 1, 3).reshape(128, 128).half()
    torch.testing.assert_close(
        block_sparse_gemm(num_stages)(a, b, mask), expected, rtol=1e-2, atol=1e-2
    )


@pytest.mark.devices
def test_bool_tensors_and_bool_local_buffers():
    @T.prim_func
    def main(A: T.Tensor((16,), "bool"), B: T.Tensor((16,), "bool")):
        with T.Kernel(1, threads=32):
            flag = T.alloc_local((1,), "bool")
            for i in T.serial(16):
                flag[0] = A[i]
                B[i] = not flag[0]

    a = torch.rand(16) > 0.5
    b = tilelang.compile(main, out_idx=-1)(a)
    assert b.dtype == torch.bool and torch.equal(b, ~a)


def batched_gemm(batch, size, block):
    block_M, block_N, block_K = block

    @T.prim_func
    def main(
        A: T.Tensor((batch, size, size), "float16"),
        B: T.Tensor((batch, size, size), "float16"),
        C: T.Tensor((batch, size, size), "float16"),
    ):
        with T.Kernel(size // block_N, size // block_M, threads=128) as (bx, by):
            A_shared = T.alloc_shared((batch, block_M, block_K), "float16")
            B_shared = T.alloc_shared((batch, block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.disable_warp_group_reg_alloc()
            for n in T.serial(batch):
                T.clear(C_local)
                for k in T.Pipelined(size // block_K, num_stages=0):
                    T.copy(
                        A[n, by * block_M : (by + 1) * block_M, k * block_K : (k + 1) * block_K],
                        A_shared[n, 0:block_M, 0:block_K],
                    )
                    T.copy(
                        B[n, k * block_K : (k + 1) * block_K, bx * block_N : (bx + 1) * block_N],
                        B_shared[n, 0:block_K, 0:block_N],
                    )
                    T.gemm(
                        A_shared[n, 0:block_M, 0:block_K],
                        B_shared[n, 0:block_K, 0:block_N],
                        C_local,
                    )
                T.copy(
                    C_local,
                    C[n, by * block_M : (by + 1) * block_M, bx * block_N : (bx + 1) * block_N],
                )

    return main


@pytest.mark.devices
def test_slices_of_batched_tiles_in_a_pipeline_inside_a_loop():
    kernel = tilelang.compile(
        batched_gemm(2, 128, (64, 64, 32)),
        out_idx=[2],
        pass_configs=NO_WARP_SPECIALISATION,
    )
    a, b = torch.randn(2, 128, 128).half(), torch.randn(2, 128, 128).half()
    expected = torch.matmul(a.float(), b.float()).half()
    torch.testing.assert_close(kernel(a, b), expected, rtol=1e-2, atol=1e-2)


def test_disable_warp_group_reg_alloc_takes_no_arguments():
    with pytest.raises(TypeError):
        T.disable_warp_group_reg_alloc(1)
