"""Kernels inside ``torch.compile(fullgraph=True)``."""

import shutil

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.errors import LaunchError


def captured(function, backend="aot_eager", **options):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend=backend, **options)


@tilelang.jit
def scale(A, factor: T.float32, block: int = 16):
    N = T.const("N")
    A: T.Tensor((N,), T.float32)
    B = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] * factor
    return B


@tilelang.jit
def stretch(A, B, times: T.int32):
    n = T.dynamic("n")
    A: T.Tensor((n,), T.int32)
    B: T.Tensor((n,), T.int32)
    C = T.empty((n * 2 + 1,), T.int32)
    with T.Kernel(T.ceildiv(n, 16), threads=32) as bx:
        for i in T.Parallel(16):
            C[bx * 16 + i] = A[bx * 16 + i]
            B[bx * 16 + i] = B[bx * 16 + i] + A[bx * 16 + i] * times
    return C


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_kernel_with_an_output(add_factory, backend):
    kernel = tilelang.compile(add_factory(), out_idx=-1)
    graph = captured(lambda a, b: kernel(a * 2, b) + 1, backend)
    a, b = torch.ones(64), torch.ones(64)
    assert torch.equal(graph(a, b), a * 2 + b + 1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_kernel_that_writes_an_argument(add_factory, backend):
    kernel = tilelang.compile(add_factory())

    def function(a, b):
        c = torch.empty_like(a)
        kernel(a, b, C=c)
        return c + 1

    a, b = torch.ones(64), torch.ones(64)
    assert torch.equal(captured(function, backend)(a, b), a + b + 1)


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor compiles with g++")
def test_inductor_compiles_around_kernels(add_factory):
    adds, writes = tilelang.compile(add_factory(), out_idx=-1), tilelang.compile(add_factory())

    def function(a, b):
        c = adds(a * 2, b)
        d = torch.empty_like(c)
        writes(c, b, d)
        return d + 1

    a, b = torch.ones(64), torch.ones(64)
    assert torch.equal(captured(function, "inductor")(a, b), a * 2 + b + b + 1)


@pytest.mark.parametrize("dynamic", [False, True])
def test_an_eager_kernel_is_compiled_for_the_sizes_it_meets(dynamic):
    graph = captured(lambda x: scale(x * 2, 3.0, block=8) + 1, dynamic=dynamic)
    for n in (64, 40, 64):
        a = torch.arange(n).float()
        assert torch.equal(graph(a), a * 6 + 1)


def test_outputs_of_symbolic_size_and_written_arguments_together():
    graph = captured(lambda a, b, k: stretch(a, b, k)[: a.shape[0]] + b, dynamic=True)
    for n in (24, 33):
        a, b = torch.arange(n, dtype=torch.int32), torch.ones(n, dtype=torch.int32)
        assert torch.equal(graph(a, b, 3), a + 1 + 3 * torch.arange(n, dtype=torch.int32))
        assert torch.equal(b, 1 + 3 * a)


def test_several_outputs_are_a_list(add_factory):
    kernel = tilelang.compile(add_factory(), out_idx=[0, 2])

    def function(b):
        _, second = kernel(b)
        return second

    assert captured(function)(torch.ones(64)).shape == (64,)


def test_the_fake_implementation_agrees_with_the_kernel():
    tensors = [torch.arange(9, dtype=torch.int32), torch.ones(9, dtype=torch.int32)]
    call = stretch.compile(*tensors, 1).graph_call
    operator = getattr(torch.ops.tilelang, call.operator).default
    torch.library.opcheck(
        operator,
        (call.key, [2], [], tensors[:1], tensors[1:]),
        test_utils=("test_schema", "test_faketensor"),
    )


def test_names_of_arguments_work_in_a_graph(add_factory):
    kernel = tilelang.compile(add_factory(), out_idx=-1)
    a, b = torch.ones(64), torch.arange(64).float()
    assert torch.equal(captured(lambda a, b: kernel(B=b, A=a))(a, b), a + b)


def test_wrong_arguments_are_refused_in_a_graph(add_factory):
    kernel = tilelang.compile(add_factory(), out_idx=-1)
    with pytest.raises(Exception, match="missing|shorter"):
        captured(lambda a: kernel(a))(torch.ones(64))
    with pytest.raises(Exception, match="A.*float32.*float64"):
        captured(lambda a: kernel(a, a))(torch.ones(64, dtype=torch.float64))


def test_a_graph_does_not_keep_a_kernel_alive_silently(add_factory):
    call = tilelang.compile(add_factory(scale=41.0), out_idx=-1).graph_call
    with pytest.raises(LaunchError, match="not loaded"):
        getattr(torch.ops.tilelang, call.operator)(call.key, [], [], [torch.ones(64)] * 2)
