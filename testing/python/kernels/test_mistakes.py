"""Mistakes of users: one short error that names the construct, the line and what to change."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.errors import TileLangError

INTERNALS = re.compile(r"Check failed|\.cc:|InternalError|TVM_|llvm::|0x[0-9a-f]{6}")


def refused(run, *texts, located=True):
    """``run()`` raises a located error of ours whose message holds all of ``texts``."""
    with pytest.raises(TileLangError) as caught:
        run()
    message = str(caught.value)
    for text in texts:
        assert text in message, message
    assert not INTERNALS.search(message), message
    assert not located or f"--> {__file__}:" in message, message


def traced(body):
    """A thunk that traces and compiles a kernel with the macro ``body`` inside."""
    inner = T.macro(body)

    def run():
        @T.prim_func
        def main(A: T.Tensor((64, 64), "float32"), n: T.int32):
            with T.Kernel(4, threads=64) as bx:
                inner(A, n, bx)

        tilelang.compile(main)

    return run


# --- names and calls ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "near"),
    [("aloc_shared", "alloc_shared"), ("Paralel", "Parallel"), ("flaot16", "float16")],
)
def test_misspelt_name(name, near):
    with pytest.raises(
        AttributeError, match=f"'tilelang.language'.*'{name}'; did you mean.*{near}"
    ):
        getattr(T, name)


def test_misspelt_dtype():
    refused(lambda: T.Tensor((4,), "flaot32"), "unknown dtype 'flaot32'")


def forgotten_prefix(A, n, bx):
    A[0, 0] = ceildiv(n, 2)  # noqa: F821


def method_of_a_buffer(A, n, bx):
    A.fill(0)


def size_of_a_buffer(A, n, bx):
    A[0, 0] = A.size(0)


def python_math(A, n, bx):
    A[0, 0] = math.exp(A[1, 1])


def numpy_function(A, n, bx):
    A[0, 0] = np.exp(A[1, 1])


def torch_function(A, n, bx):
    A[0, 0] = torch.exp(A[1, 1])


def plain_branch(x):
    return x if x > 0 else -x


def plain_range(count):
    return sum(i for i in range(count))


def branch_in_a_helper(A, n, bx):
    A[0, 0] = plain_branch(A[0, 0])


def range_in_a_helper(A, n, bx):
    A[0, 0] = plain_range(n)


def float_of_a_value(A, n, bx):
    A[0, 0] = float(n)


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        (forgotten_prefix, ["name 'ceildiv' is not defined", "T.ceildiv"]),
        (method_of_a_buffer, ["buffer 'A' (64, 64) of float32", "'fill'", "T.fill(...)"]),
        (size_of_a_buffer, ["no attribute 'size'", "it has shape and dtype"]),
        (python_math, ["needs a number", "T.exp for math.exp"]),
        (numpy_function, ["needs a number", "T.exp for math.exp"]),
        (torch_function, ["needs a number", "T.exp for math.exp"]),
        (branch_in_a_helper, ["no truth value", "T.macro", "T.if_then_else"]),
        (range_in_a_helper, ["needs a number", "T.macro"]),
        (float_of_a_value, ["float() of 'n'", "T.cast(x, 'float32')"]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_python_where_the_language_is_meant(body, texts):
    refused(traced(body), *texts)


# --- tiles -------------------------------------------------------------------------------------


def copy_of_other_extents(A, n, bx):
    a, b = T.alloc_shared((64, 32), "float32"), T.alloc_shared((32, 64), "float32")
    T.copy(a, b)


def too_many_indices(A, n, bx):
    T.copy(A[0, 0, 0], T.alloc_shared((8, 8), "float32"))


def gemm_shapes(A, n, bx):
    a, b = T.alloc_shared((64, 32), "float32"), T.alloc_shared((64, 64), "float32")
    T.gemm(a, b, T.alloc_fragment((64, 64), "float32"))


def gemm_dtypes(A, n, bx):
    a, b = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, 64), "float32")
    T.gemm(a, b, T.alloc_fragment((64, 64), "float32"))


def gemm_accumulator(A, n, bx):
    a = T.alloc_shared((32, 32), "int8")
    T.gemm(a, a, T.alloc_fragment((32, 32), "float32"))


def gemm_without_clear(A, n, bx):
    a, c = T.alloc_shared((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
    T.copy(A, a)
    T.gemm(a, a, c)
    T.copy(c, A)


def reduce_shape(A, n, bx):
    a, b = T.alloc_fragment((8, 16), "float32"), T.alloc_fragment((16,), "float32")
    T.clear(a)
    T.reduce_sum(a, b, dim=1)


def swapped_allocation(A, n, bx):
    T.alloc_shared("float32", (64,))


def run_time_tile(A, n, bx):
    T.alloc_shared((n,), "float32")


def huge_tile(A, n, bx):
    T.clear(T.alloc_shared((1 << 20, 1 << 14), "float32"))


def whole_buffer_arithmetic(A, n, bx):
    a = T.alloc_fragment((64, 64), "float32")
    T.copy(A, a)
    T.copy(a + 1, A)


def layout_with_collisions(A, n, bx):
    a = T.alloc_shared((64, 64), "float32")
    T.annotate_layout({a: T.Layout((64, 64), lambda i, j: (i // 2, j))})
    T.copy(A, a)


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        (copy_of_other_extents, ["T.copy", "src a(64, 32), dst b(32, 64)", "Slice"]),
        (too_many_indices, ["'A'", "has 2 dimensions and is indexed with 3"]),
        (gemm_shapes, ["T.gemm: K of A and B differ: 32 and 64"]),
        (gemm_dtypes, ["T.gemm: A is float16 but B is float32", "cast"]),
        (gemm_accumulator, ["int8", "C of float32", "make C int32"]),
        (gemm_without_clear, ["c (scope local.fragment)", "T.clear(c)"]),
        (reduce_shape, ["dim 1 of a(8, 16)", "(8,) or (8, 1)", "b has (16,)"]),
        (swapped_allocation, ["dtype", "(64,)"]),
        (run_time_tile, ["T.alloc_shared", "must be known while the kernel is traced", "n"]),
        (huge_tile, ["64.0 GiB", "smaller tiles"]),
        (whole_buffer_arithmetic, ["buffer 'a'", "int 1", "T.Parallel"]),
        (layout_with_collisions, ["layout of 'a'", "(0, 0) and (1, 0) share place (0, 0)"]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_tiles(body, texts):
    refused(traced(body), *texts)


# --- structure ---------------------------------------------------------------------------------


def tile_op_in_parallel(A, n, bx):
    for _ in T.Parallel(64):
        T.copy(A, T.alloc_shared((64, 64), "float32"))


def rebound_in_a_loop(A, n, bx):
    x = 0
    for i in T.serial(n):
        x = x + i
    A[0, 0] = x


def bound_in_a_branch(A, n, bx):
    if n > 0:
        x = 1
    else:
        x = 2
    A[0, 0] = x


def endless_recursion(A, n, bx):
    if n > 0:
        T.macro(endless_recursion)(A, n - 1, bx)


def unpacked_size(A, n, bx):
    x, y = n
    A[0, 0] = x + y


@T.prim_func
def ready_program(A: T.Tensor((64, 64), "float32")):
    with T.Kernel(1):
        T.clear(A)


def program_in_a_program(A, n, bx):
    ready_program(A)


def kernel_in_a_program(A, n, bx):
    tilelang.compile(ready_program)(A)


def gpu_only(A, n, bx):
    T.tma_store_wait()


def not_yet(A, n, bx):
    with T.ws(0):
        A[0, 0] = 1


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        (tile_op_in_parallel, ["T.copy cannot stand inside T.Parallel"]),
        (rebound_in_a_loop, ["'x'", "x = T.alloc_var(dtype)"]),
        (bound_in_a_branch, ["'x'", "x = T.alloc_var(dtype)"]),
        (endless_recursion, ["without end", "compile-time condition"]),
        (unpacked_size, ["'n' (int32) is one value", "2 names"]),
        (program_in_a_program, ["@T.prim_func cannot be called inside a kernel", "@T.macro"]),
        (kernel_in_a_program, ["kernel 'ready_program'", "kernels are run from Python"]),
        (gpu_only, ["T.tma_store_wait", "backend 'cpu'", "available on: cuda"]),
        (not_yet, ["T.ws is not in this version", "CUDA"]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_structure(body, texts):
    refused(traced(body), *texts)


# --- decorators --------------------------------------------------------------------------------


def test_size_without_const():
    @tilelang.jit
    def kernel(A):
        A: T.Tensor((M,), "float32")  # noqa: F821
        with T.Kernel(1):
            T.clear(A)

    refused(lambda: kernel(torch.zeros(4)), "name 'M' is not defined", 'M = T.const("M")')


def test_const_in_an_expression_only():
    @tilelang.jit
    def kernel(A):
        M = T.const("M")
        A: T.Tensor((M * 2,), "float32")
        with T.Kernel(1):
            T.clear(A)

    refused(lambda: kernel(torch.zeros(4)), "T.const 'M'", "use it as an extent", "M=...")


def test_factory_that_returns_nothing():
    @tilelang.jit
    def factory(n):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32")):
            with T.Kernel(1):
                T.clear(A)

    refused(lambda: factory(4), "factory", "returned nothing", "return main")


def test_factory_called_with_tensors():
    @tilelang.jit
    def factory(n):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32")):
            with T.Kernel(1):
                T.clear(A)

        return main

    refused(lambda: factory(torch.zeros(4)), "found a torch.Tensor", "a factory takes sizes")


def test_output_that_is_not_returned():
    @tilelang.jit
    def kernel(A):
        A: T.Tensor((4,), "float32")
        B = T.empty((4,), "float32")
        with T.Kernel(1):
            T.copy(A, B)

    refused(lambda: kernel(torch.zeros(4)), "must return each of its outputs", "B")


def test_input_that_is_returned():
    @tilelang.jit
    def kernel(A):
        A: T.Tensor((4,), "float32")
        with T.Kernel(1):
            T.clear(A)
        return A

    refused(lambda: kernel(torch.zeros(4)), "returns 'A'", "T.empty")


def test_decorators_in_the_wrong_order():
    def kernel(A: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            T.clear(A)

    for outer, inner in ((T.prim_func, tilelang.jit), (T.macro, tilelang.jit)):
        refused(lambda o=outer, i=inner: o(i(kernel)), "only a plain Python function", "EagerJIT")
    refused(lambda: tilelang.jit(T.macro(kernel)), "is a @T.macro", "leave @T.macro away")


def test_kernel_that_runs_itself():
    @tilelang.jit
    def kernel(A):
        A: T.Tensor((4,), "float32")
        with T.Kernel(1):
            kernel(A)

    refused(lambda: kernel(torch.zeros(4)), "kernel 'kernel' is run inside a kernel", "@T.macro")


def test_function_without_a_decorator():
    def kernel(A: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            T.clear(A)

    refused(lambda: kernel(torch.zeros(4)), "T.Kernel is only valid inside", "@tilelang.jit")


def test_kernel_from_text():
    text = """
@tilelang.jit
def f(A: T.Tensor((4,), "float32")):
    with T.Kernel(1):
        T.clear(A)
"""
    names = {"T": T, "tilelang": tilelang}
    run = lambda: exec(text, names)  # noqa: E731
    refused(run, "source of 'f' is not available", "a file or a notebook cell", located=False)


# --- calls -------------------------------------------------------------------------------------


@tilelang.jit
def add(A, B, block: int = 16):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    B: T.Tensor((M, N), "float32")
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(M, block)) as bx:
        for i, j in T.Parallel(block, N):
            C[bx * block + i, j] = A[bx * block + i, j] + B[bx * block + i, j]
    return C


@tilelang.jit(out_idx=[2])
def scale_rows(M, N):
    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float32"),
        B: T.Tensor((M,), "float16"),
        C: T.Tensor((M, N), "float32"),
        s: T.float32,
        n: T.int32,
    ):
        with T.Kernel(M) as bx:
            for j in T.Parallel(N):
                C[bx, j] = A[bx, j] * B[bx] * s + n

    return main


X, Y = torch.ones(4, 5), torch.ones(4, dtype=torch.float16)


@pytest.mark.parametrize(
    ("args", "texts"),
    [
        (([[1.0]], X), ["'A'", "must be a tensor", "list"]),
        ((None, X), ["'A' is None", "size 'M'"]),
        ((X, X.T.contiguous()), ["'B' (position 1)", "shape [4, 5]", "[5, 4]"]),
        ((X, X[0].clone()), ["'B'", "rank 2", "rank 1"]),
        ((X, X.double()), ["'B'", "float32", "float64"]),
        ((X, torch.ones(5, 4).T), ["'B'", "strides [1, 4]", ".contiguous()", "T.StridedTensor"]),
        ((X.to("meta"), X), ["'A'", "dense tensor in memory", "meta"]),
        ((X.to_sparse(), X), ["'A'", "dense tensor in memory"]),
    ],
)
def test_arguments_of_an_eager_kernel(args, texts):
    refused(lambda: add(*args), "add", *texts, located=False)


@pytest.mark.parametrize(
    ("args", "texts"),
    [
        ((Y, X, 1.0, 3), ["'A' (position 0)", "float32", "float16"]),
        ((X, Y, 3, 1.0), ["'n' (position 3)", "int32", "float"]),
        ((X, Y), ["4 arguments, got 2", "'s' is missing"]),
        ((X, Y, torch.empty(4, 5), 1.0, 3), ["4 arguments, got 5"]),
        ((X, Y, "1", 3), ["'s'", "float32", "str"]),
        ((X, Y, None, 3), ["'s'", "None"]),
        ((X, Y, 1.0, 2**40), ["'n'", "does not fit int32"]),
        ((X.tolist(), Y, 1.0, 3), ["'A'", "tensor", "list"]),
    ],
)
def test_arguments_of_a_compiled_kernel(args, texts):
    kernel = scale_rows(4, 5)
    refused(lambda: kernel(*args), "main", "in main(A: float32[4, 5]", *texts, located=False)


def test_python_call_errors_stay_python():
    for run, text in (
        (lambda: add(X), "missing 1 required positional argument: 'B'"),
        (lambda: add(X, X, blok=4), "unexpected keyword argument 'blok'"),
        (lambda: scale_rows(4, 5, blok=4), "unexpected keyword argument 'blok'"),
        (lambda: scale_rows(4), "missing a required argument: 'N'"),
    ):
        with pytest.raises(TypeError, match=text):
            run()


def test_what_is_accepted():
    """numpy tensors, keywords, numpy scalars and tensors that need gradients are fine."""
    assert torch.equal(add(X.numpy(), X.clone().requires_grad_()), X + X)
    found = scale_rows(4, 5)(A=X, B=Y, s=np.float32(2), n=np.int32(3))
    assert torch.equal(found, X * 2 + 3)


def test_a_refused_call_leaves_the_process_healthy():
    with pytest.raises(TileLangError):
        add(X, X.double())
    assert torch.equal(add(X, X), X + X)
