"""Faults planted in generated source: the checks of the emulator find each of them."""

from __future__ import annotations

import re

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.cuda.emulator import compile_source, make_launcher
from tilelang.env import env
from tilelang.errors import EmulatorError

M = N = 64
K = 96


@tilelang.jit(out_idx=-1, execution_backend="emulator")
def pipelined():
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((M, 32), "float16")
            b = T.alloc_shared((32, N), "float16")
            c = T.alloc_fragment((M, N), "float32")
            T.clear(c)
            for k in T.Pipelined(K // 32, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return main


@tilelang.jit(out_idx=-1, execution_backend="emulator")
def reversed_rows(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            tile = T.alloc_shared((64,), "float32")
            T.copy(A[bx * 64], tile)
            for i in T.Parallel(64):
                B[bx * 64 + i] = tile[63 - i]

    return main


def run(kernel, source, checks, *args):
    """Run the changed source under the plan of the kernel."""
    with env.scope(TILELANG_EMULATOR_CHECKS=checks):
        binaries = compile_source(source, None, (), {})
    return make_launcher(kernel.plan, binaries, {})(*args)


def occurrences(source, pattern):
    found = list(re.finditer(pattern, source))
    assert found, f"the generated source has no {pattern}:\n{source}"
    return found


def replaced(source, match, text):
    return source[: match.start()] + text + source[match.end() :]


@pytest.fixture(scope="module")
def product():
    a, b = torch.randn(M, K).half(), torch.randn(K, N).half()
    kernel = pipelined()
    source = kernel.get_kernel_source()
    run(kernel, source, "race,bounds,uninit", a, b)  # as generated it is clean
    return kernel, source, (a, b)


def test_every_barrier_is_needed(product):
    kernel, source, args = product
    for barrier in occurrences(source, r"tl::sync_threads\(\);"):
        with pytest.raises(EmulatorError, match="race"):
            run(kernel, replaced(source, barrier, ";"), "race", *args)


def test_every_wait_is_needed(product):
    kernel, source, args = product
    for wait in occurrences(source, r"tl::cp_async_wait<0>\(\)"):
        with pytest.raises(EmulatorError, match=r"has a cp.async to it under way"):
            run(kernel, replaced(source, wait, "tl::cp_async_wait<1>()"), "race", *args)


def test_a_wait_that_is_too_short_gives_a_wrong_result_without_any_check(product):
    kernel, source, args = product
    wait = occurrences(source, r"tl::cp_async_wait<0>\(\)")[0]
    result = run(kernel, replaced(source, wait, "tl::cp_async_wait<1>()"), "", *args)
    assert result.isnan().any()


def test_a_swizzle_that_differs_between_writer_and_reader_is_a_wrong_result(product):
    kernel, source, args = product
    load = occurrences(source, r"ldmatrix_x4<\w+>\([^;]*\^[^;]*;")[0]
    result = run(kernel, replaced(source, load, load.group().replace("^", "+", 1)), "", *args)
    assert not torch.allclose(result, args[0].float() @ args[1].float(), atol=1e-2)


def test_a_guard_that_is_off_by_one_is_out_of_bounds():
    n = 100
    kernel = reversed_rows(n)
    source = kernel.get_kernel_source()
    run(kernel, source, "race,bounds,uninit", torch.randn(n))
    for guard in occurrences(source, rf"< {n}\b|< {n - 64}\b"):
        bound = int(guard.group().split()[1])
        with pytest.raises(EmulatorError, match="out of bounds|uninitialised"):
            run(kernel, replaced(source, guard, f"< {bound + 1}"), "bounds", torch.randn(n))
