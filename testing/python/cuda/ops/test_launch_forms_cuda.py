"""Forms of launch: kernels given as text, clusters, dependent launches, cooperation, hints."""

from __future__ import annotations

import pytest
import torch
from devices import on_gpu
from emulated_ops import TARGET, compiles, emulate, interpreted, source_of

import tilelang
import tilelang.language as T
from tilelang.errors import (
    EmulatorError,
    LoweringError,
    SemanticError,
    TraceError,
    TraceTypeError,
    UnsupportedError,
)

SCALE = """
// scale(A, B, n): __global__ void other(int)
__device__ float twice(float x) { return 2 * x; }
__global__ void __launch_bounds__(128) scale(const float* A, float* B, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) B[i] = twice(A[i]) + SHIFT;
}
"""
N = T.dynamic("N")
Floats = T.Tensor((N,), "float32")
Block = T.Tensor((128,), "float32")


def plan_of(program, arch="sm_90a"):
    return tilelang.lower(program, target={"kind": "cuda", "arch": arch}).plan


def scaled(source, shift="1", entry="scale"):
    @T.prim_func
    def program(A: Floats, B: Floats):
        T.CUDASourceCodeKernel(
            T.ceildiv(N, 128),
            threads=128,
            source_code_or_path=source,
            entry_name=entry,
            prelude=f"#define SHIFT {shift}",
        )

    return program


@pytest.mark.parametrize("size", [1, 300, 512])
def test_kernel_given_as_text(size):
    program = scaled(SCALE)
    compiles(program)
    a = torch.randn(size)
    assert torch.equal(emulate(program, a), 2 * a + 1)
    text = source_of(program)
    assert text.count('extern "C" __global__') == 1 and text.startswith("#define SHIFT 1\n")
    (kernel,) = plan_of(program).kernels
    assert kernel.entry == "scale" and [a.source for a in kernel.args] == [
        "param",
        "param",
        "symbol",
    ]


def test_kernel_given_as_file(tmp_path):
    path = tmp_path / "scale.cu"
    path.write_text(SCALE)
    a = torch.randn(200)
    assert torch.equal(emulate(scaled(str(path), "0.5f"), a), 2 * a + 0.5)
    assert torch.equal(emulate(scaled(path, "2.0f"), a), 2 * a + 2)


def test_kernel_given_as_text_beside_another_in_eager_style():
    @tilelang.jit(target=TARGET, execution_backend="emulator")
    def run(A: T.Tensor((N,), "float32")):
        B = T.empty((N,), "float32")
        T.CUDASourceCodeKernel(
            T.ceildiv(N, 128), threads=128, source_code_or_path=SCALE, entry_name="scale",
            prelude="#define SHIFT 3",
        )  # fmt: skip
        with T.Kernel(1, threads=32):
            B[0] = -1.0
        return B

    a = torch.randn(130)
    b = run(a)
    assert b[0] == -1 and torch.equal(b[1:], 2 * a[1:] + 3)


def test_same_text_launched_twice_is_printed_once():
    source = SCALE.replace("SHIFT", "1").replace("B[i] =", "B[i] +=")

    @T.prim_func
    def program(A: Floats, B: Floats):
        for _ in T.serial(2):
            T.CUDASourceCodeKernel(
                T.ceildiv(N, 128), threads=128, source_code_or_path=source, entry_name="scale"
            )

    assert source_of(program).count("B[i] +=") == 1
    a, b = torch.randn(64), torch.zeros(64)
    emulate(program, a, b, out_idx=None)
    torch.testing.assert_close(b, 4 * a + 2)


def test_two_texts_under_one_name_are_refused():
    @T.prim_func
    def program(A: Floats, B: Floats):
        T.CUDASourceCodeKernel(1, source_code_or_path=SCALE, entry_name="scale")
        T.CUDASourceCodeKernel(1, source_code_or_path=SCALE.replace("2", "3"), entry_name="scale")

    with pytest.raises(SemanticError, match="two different kernels are named 'scale'"):
        source_of(program)


@pytest.mark.parametrize(
    ("source", "entry", "message", "kind"),
    [
        (SCALE, "main_kernel", "no __global__ function 'main_kernel'; it has: scale", TraceError),
        (SCALE, "other", "no __global__ function 'other'", TraceError),
        (SCALE, "twice", "no __global__ function 'twice'", TraceError),
        ("no/such/file.cu", "scale", "there is no file 'no/such/file.cu'", TraceError),
        (
            "template <class T>\n__global__ void scale(T* A, T* B, int n) {}\n",
            "scale",
            "is a template",
            TraceError,
        ),
        (7, "scale", "expected CUDA text or the path of a file, found int", TraceTypeError),
    ],
)
def test_text_without_a_kernel_to_launch_is_refused(source, entry, message, kind):
    with pytest.raises(kind, match=message):
        scaled(source, entry=entry)


def test_kernel_given_as_cuda_text_needs_cuda():
    with pytest.raises(UnsupportedError, match=r"T\.CUDASourceCodeKernel .* available on: cuda"):
        tilelang.lower(scaled(SCALE), target="llvm")


def clustered(dims, use_barrier=False):
    @T.prim_func
    def program(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.ClusterKernel(4, cluster_dims=dims, threads=64) as bx:
            tx = T.get_thread_binding()
            B[bx * 64 + tx] = A[bx * 64 + tx] + 1
            if use_barrier:
                B[bx * 64 + tx] += T.cast(T.block_rank_in_cluster(), "float32")
                T.cluster_arrive_relaxed()
                T.cluster_wait()
                T.cluster_arrive()
                T.cluster_wait()
                T.cluster_sync()

    return program


@pytest.mark.parametrize(("dims", "expected"), [(2, (2, 1, 1)), ([4, 1], (4, 1, 1)), (1, (1,) * 3)])
def test_cluster_is_in_the_plan(dims, expected):
    program = clustered(dims)
    assert plan_of(program).kernels[0].cluster == expected
    a = torch.randn(256)
    assert torch.equal(emulate(program, a), a + 1)


def test_barrier_of_a_cluster():
    compiles(clustered(2, True))
    a = torch.randn(256)
    assert torch.equal(emulate(clustered(1, True), a), a + 1)
    if on_gpu():
        ranks = torch.tensor([0.0, 1.0, 0.0, 1.0]).repeat_interleave(64)
        assert torch.equal(emulate(clustered(2, True), a), a + 1 + ranks)
        return
    with pytest.raises(
        EmulatorError, match=r"in clusters of \(2, 1, 1\) blocks that work together"
    ):
        emulate(clustered(2, True), a)


@pytest.mark.parametrize("dims", [0, [2, 0], [1, 1, 1, 2], "2"])
def test_cluster_of_no_blocks_is_refused(dims):
    with pytest.raises(TraceError, match="cluster_dims takes 1 to 3 ints above 0"):
        clustered(dims)


@pytest.mark.parametrize(
    ("dims", "arch", "message"),
    [(2, "sm_80", "clusters from sm_90 on, the target is sm_80"), (32, "sm_90a", "at most 16")],
)
def test_cluster_the_device_lacks_is_refused(dims, arch, message):
    with pytest.raises(LoweringError, match=message):
        plan_of(clustered(dims), arch)


def test_dependent_launch():
    @T.prim_func
    def program(A: Block, B: Block):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            A[tx] = A[tx] + 1
            T.pdl_trigger()
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            T.pdl_sync()
            B[tx] = A[tx] * 2

    compiles(program)
    assert [kernel.flags for kernel in plan_of(program).kernels] == [(), ("pdl",)]
    a = torch.randn(128)
    expected = (a + 1) * 2
    assert torch.equal(emulate(program, a), expected)
    with pytest.raises(UnsupportedError, match=r"T\.pdl_trigger needs programmatic dependent"):
        source_of(program, "sm_80")


@pytest.mark.parametrize("barrier", [T.sync_grid, T.sync_global])
def test_barrier_of_the_grid_makes_the_launch_cooperative(barrier):
    @T.prim_func
    def program(A: T.Tensor((256,), "int32"), B: T.Tensor((256,), "int32")):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            A[bx * 64 + tx] = bx * 64 + tx
            barrier()
            B[bx * 64 + tx] = A[255 - bx * 64 - tx]

    compiles(program)
    assert plan_of(program).kernels[0].flags == ("cooperative",)
    b = emulate(program, torch.zeros(256, dtype=torch.int32))
    assert torch.equal(b, torch.arange(255, -1, -1, dtype=torch.int32))


def test_hints_change_no_result():
    @T.prim_func
    def program(A: Block, B: Block):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            T.annotate_l2_hit_ratio({A: 0.5})
            T.annotate_min_blocks_per_sm(3)
            T.annotate_restrict_buffers(B)
            T.annotate_producer_reg_dealloc()
            T.annotate_consumer_reg_alloc()
            T.no_set_max_nreg()
            T.disable_warp_group_reg_alloc()
            B[tx] = A[tx] + 1

    compiles(program)
    text = source_of(program)
    assert "__launch_bounds__(128, 3)" in text
    assert "const float* __restrict__ A, float* B" in text
    a = torch.randn(128)
    assert torch.equal(emulate(program, a), a + 1)
    assert torch.equal(interpreted(program, a), a + 1)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_90a"])
def test_register_budget(arch):
    @T.prim_func
    def program(A: Block, B: Block):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            T.dec_max_nreg(40)
            T.inc_max_nreg(160)
            T.set_max_nreg(24, False)
            B[tx] = A[tx] + 1

    compiles(program, arch)
    a = torch.randn(128)
    assert "tl::inc_max_nreg<160>();" in source_of(program, arch)
    assert torch.equal(emulate(program, a, arch=arch), a + 1)


def test_named_barriers_hand_over_between_halves_of_a_block():
    @T.prim_func
    def program(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            shared = T.alloc_shared((64,), "float32")
            if tx < 64:
                shared[tx] = A[tx] * 3
                T.named_barrier_arrive(2, 128)
            else:
                T.sync_threads(2, 128)
                B[tx - 64] = shared[127 - tx]

    compiles(program)
    a = torch.randn(64)
    assert torch.equal(emulate(program, a), (a * 3).flip(0))


def test_launch_control_is_refused_with_the_architecture_it_needs():
    @T.prim_func
    def program(A: Block):
        with T.Kernel(1, threads=128):
            answer = T.alloc_shared((4,), "uint32")
            barrier = T.alloc_barrier(1)
            T.clc_try_cancel(answer, barrier)
            A[0] = 0.0

    with pytest.raises(UnsupportedError, match=r"clc_try_cancel needs .* from sm_100 on"):
        source_of(program)
    with pytest.raises(UnsupportedError, match=r"clc_try_cancel is not in this version"):
        source_of(program, "sm_100a")
