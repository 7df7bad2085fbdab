"""Variables, workspaces, and eager kernels that combine sizes, outputs and options."""

import re

import pytest
import torch

import tilelang
import tilelang.language as T


def test_an_assigned_variable_keeps_its_name_in_the_source():
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=1):
            counter = T.alloc_var("int32")
            counter = 7
            for i in T.serial(32):
                counter = counter + A[i]
                B[i] = counter

    kernel = tilelang.compile(main, out_idx=-1, target="c")
    assert re.search(r"counter\w*(\[0\])? = ", kernel.get_kernel_source())
    a = torch.arange(32, dtype=torch.int32)
    assert torch.equal(kernel(a), 7 + a.cumsum(0, dtype=torch.int32))


@pytest.mark.devices("llvm", "c")
def test_a_variable_in_a_parallel_loop():
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(4, threads=32) as bx:
            base = T.alloc_var("int32")
            base = bx * 32
            for i in T.Parallel(32):
                B[base + i] = A[base + i] + base

    a = torch.randn(128)
    found = tilelang.compile(main, out_idx=-1)(a)
    torch.testing.assert_close(found, a + torch.arange(128) // 32 * 32)


def test_initial_values_are_written_once():
    @T.prim_func
    def main(B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=32):
            first = T.alloc_var("int32", 1)
            second = T.alloc_var("int32", init=2)
            for i in T.serial(64):
                B[i] = first * 10 + second
                first = first + 1

    kernel = tilelang.compile(main, out_idx=-1, target="c")
    source = kernel.get_kernel_source(kernel_only=True)
    for name, value in (("first", 1), ("second", 2)):
        assert len(re.findall(rf"\b{name}\w*(?:\[0\])? = (?:\(\w+\))?{value};", source)) == 1
    assert kernel().tolist() == [(1 + i) * 10 + 2 for i in range(64)]


def test_an_initial_value_that_does_not_fit():
    with pytest.raises(TypeError, match="1000 cannot be stored in 'var' of int8"):

        @T.prim_func
        def main(B: T.Tensor((1,), "int8")):
            with T.Kernel(1, threads=32):
                B[0] = T.alloc_var("int8", init=1000)


@pytest.mark.devices
def test_a_workspace_of_a_program():
    @T.prim_func
    def main(A: T.Tensor((128, 64), "float32"), B: T.Tensor((128, 64), "float32")):
        workspace = T.alloc_global((128, 64), "float32")
        with T.Kernel(4, threads=32) as bx:
            tile = T.alloc_shared((32, 64), "float32")
            T.copy(A[bx * 32 : (bx + 1) * 32, :], tile)
            T.copy(tile, workspace[bx * 32 : (bx + 1) * 32, :])
        with T.Kernel(4, threads=32) as bx:
            tile = T.alloc_shared((32, 64), "float32")
            T.copy(workspace[bx * 32 : (bx + 1) * 32, :], tile)
            T.copy(tile, B[bx * 32 : (bx + 1) * 32, :])

    a = torch.randn(128, 64)
    assert torch.equal(tilelang.compile(main, out_idx=-1)(a), a)


@tilelang.jit
def through_a_workspace(A, block: int = 32, dtype: str = "float32"):
    N = T.const("N")
    A: T.Tensor((N, 16), dtype)
    B = T.empty((N, 16), dtype)
    workspace = T.alloc_global((N, 16), dtype)
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        T.copy(
            A[bx * block : (bx + 1) * block, 0:16], workspace[bx * block : (bx + 1) * block, 0:16]
        )
        T.copy(
            workspace[bx * block : (bx + 1) * block, 0:16], B[bx * block : (bx + 1) * block, 0:16]
        )
    return B


@pytest.mark.devices
@pytest.mark.parametrize(("block", "dtype"), [(32, "float32"), (16, "float16"), (64, T.int32)])
def test_an_eager_workspace_with_sizes_outputs_and_options(block, dtype):
    a = (torch.randn(96, 16) * 100).to(T.dtype(dtype).as_torch())
    assert torch.equal(through_a_workspace(a, block=block, dtype=dtype), a)


def test_a_tensor_of_another_dtype_than_the_option():
    with pytest.raises(TypeError, match="float16"):
        through_a_workspace(torch.randn(32, 16), dtype="float16")
