"""Forms of launch and hand-written matrix kernels on a real device."""

from __future__ import annotations

import pytest
import torch
from test_launch_forms_cuda import SCALE, scaled
from test_mma_emitter_cuda import gemm

import tilelang
import tilelang.language as T
from tilelang.testing import requires_cuda, requires_cuda_compute_version

pytestmark = requires_cuda.marks()


def on_gpu(program, *args, out_idx=-1):
    kernel = tilelang.compile(program, out_idx=out_idx, execution_backend="tvm_ffi")
    result = kernel(*(arg.cuda() for arg in args))
    torch.cuda.synchronize()
    return result.cpu()


def test_kernel_given_as_text():
    a = torch.randn(1000)
    assert SCALE.count("__global__") == 2 and torch.equal(on_gpu(scaled(SCALE), a), 2 * a + 1)


@pytest.mark.parametrize(
    ("dtype", "accum"),
    [("float16", "float32"), ("bfloat16", "float32"), ("float32", "float32"), ("int8", "int32"),
     ("float8_e4m3", "float32"), ("float64", "float64")],
)  # fmt: skip
def test_matrix_kernel(dtype, accum):
    program, a, b = gemm(dtype, accum)
    expected = a.double() @ b.double().T
    torch.testing.assert_close(on_gpu(program, a, b).double(), expected, rtol=0, atol=0)


@pytest.mark.parametrize("a_transposed", [False, True])
@pytest.mark.parametrize("b_transposed", [False, True])
def test_matrix_kernel_with_operands_in_any_order(a_transposed, b_transposed):
    program, a, b = gemm(
        a_transposed=a_transposed, b_transposed=b_transposed, target="global", is_m_first=True
    )
    left = a.double().T if a_transposed else a.double()
    right = b.double().T if b_transposed else b.double()
    assert torch.equal(on_gpu(program, a, b).double(), left @ right)


@requires_cuda_compute_version(9, 0)
def test_ranks_in_a_cluster():
    @T.prim_func
    def program(A: T.Tensor((8, 32), "int32"), B: T.Tensor((8, 32), "int32")):
        with T.ClusterKernel(8, cluster_dims=4, threads=32) as bx:
            tx = T.get_thread_binding()
            T.cluster_arrive()
            T.cluster_wait()
            B[bx, tx] = A[bx, tx] + T.block_rank_in_cluster()
            T.cluster_sync()

    a = torch.zeros(8, 32, dtype=torch.int32)
    assert on_gpu(program, a)[:, 7].tolist() == [0, 1, 2, 3, 0, 1, 2, 3]


@requires_cuda_compute_version(9, 0)
def test_dependent_launches_see_what_the_kernel_ahead_wrote():
    blocks = 512

    @T.prim_func
    def program(
        A: T.Tensor((blocks, 128), "float32"),
        W: T.Tensor((blocks, 128), "float32"),
        B: T.Tensor((blocks, 128), "float32"),
    ):
        with T.Kernel(blocks, threads=128) as bx:
            tx = T.get_thread_binding()
            T.pdl_trigger()
            W[bx, tx] = A[bx, tx] + 1
        with T.Kernel(blocks, threads=128) as bx:
            tx = T.get_thread_binding()
            T.pdl_sync()
            B[bx, tx] = W[blocks - 1 - bx, tx] * 2

    for _ in range(20):
        a, w = torch.randn(blocks, 128), torch.zeros(blocks, 128)
        assert torch.equal(on_gpu(program, a, w), (a.flip(0) + 1) * 2)


def test_barrier_of_the_grid():
    blocks = 64

    @T.prim_func
    def program(A: T.Tensor((blocks, 64), "int32"), B: T.Tensor((blocks, 64), "int32")):
        with T.Kernel(blocks, threads=64) as bx:
            tx = T.get_thread_binding()
            for step in T.serial(5):
                A[bx, tx] = bx + step
                T.sync_grid()
                B[bx, tx] += A[blocks - 1 - bx, tx]
                T.sync_grid()

    a = torch.zeros(blocks, 64, dtype=torch.int32).cuda()
    b = torch.zeros_like(a)
    tilelang.compile(program, execution_backend="tvm_ffi")(a, b)
    expected = 5 * torch.arange(blocks - 1, -1, -1, dtype=torch.int32) + 10
    assert torch.equal(b[:, 3].cpu(), expected)


@requires_cuda_compute_version(9, 0)
def test_register_budget():
    @T.prim_func
    def program(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            T.annotate_min_blocks_per_sm(1)
            T.dec_max_nreg(24)
            B[tx] = A[tx] + 1

    a = torch.randn(128)
    assert torch.equal(on_gpu(program, a), a + 1)
