"""The execution backend: who gets it, what it runs, and that checks name the Python line."""

from __future__ import annotations

import inspect

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.backend import create_backend_context
from tilelang.cuda.emulator import compile_source, make_launcher
from tilelang.env import env
from tilelang.errors import ArgumentValueError, DeviceCompileError, EmulatorError, EnvVarError
from tilelang.jit.adapter.emulator import EmulatorAdapter


@tilelang.jit(out_idx=-1, execution_backend="emulator")
def scale(n, factor=2.0):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=32) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i] * factor

    return main


@tilelang.jit(out_idx=-1, execution_backend="emulator")
def gemm(m, n, k, stages):
    @T.prim_func
    def main(
        A: T.Tensor((m, k), "float16"),
        B: T.Tensor((k, n), "float16"),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 64), threads=128) as (bx, by):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(k, 32), num_stages=stages):
                T.copy(A[by * 64, ko * 32], a)
                T.copy(B[ko * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])

    return main


@tilelang.jit(execution_backend="emulator")
def collide():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            A[t // 2] = t

    return main


def test_a_kernel_takes_tensors_of_the_cpu():
    given = torch.randn(200)
    assert torch.equal(scale(200)(given), given * 2)


def test_a_pipelined_product_passes_all_checks():
    a, b = torch.randn(64, 96).half(), torch.randn(96, 64).half()
    with env.scope(TILELANG_EMULATOR_CHECKS="race,bounds,uninit"):
        result = gemm(64, 64, 96, stages=2)(a, b)
    torch.testing.assert_close(result, a.float() @ b.float(), rtol=1e-4, atol=1e-4)


def test_the_emulator_means_cuda_where_no_target_is_named():
    context = create_backend_context(None, execution_backend="emulator")
    assert (context.name, context.device_type) == ("cuda", "cpu")
    assert create_backend_context({"kind": "cuda", "arch": "sm_80"}).device_type == "cuda"
    with env.scope(TILELANG_EXECUTION_BACKEND="emulator"):
        context = create_backend_context()
    assert (context.name, context.execution_backend.name) == ("cuda", "emulator")


def test_the_variable_chooses_it():
    program = scale.get_tir(70)
    with env.scope(TILELANG_EXECUTION_BACKEND="emulator"):
        kernel = tilelang.compile(program, out_idx=-1)
    assert isinstance(kernel.adapter, EmulatorAdapter)
    given = torch.randn(70)
    assert torch.equal(kernel(given), given * 2)


def test_arguments_are_checked_as_everywhere():
    with pytest.raises(ArgumentValueError, match="A"):
        scale(200)(torch.randn(199))


def test_a_stored_kernel_is_loaded_again(tmp_path):
    kernel = scale(96, 3.0)
    bundle = kernel.adapter.bundle
    again = EmulatorAdapter(type(bundle).from_files(bundle.to_files()))
    given = torch.randn(96)
    assert torch.equal(again.func(given), given * 3)
    assert again.export_library(tmp_path / "kernel.so")
    assert (tmp_path / "kernel.so").read_bytes()[:4] == b"\x7fELF"


def test_checks_name_the_line_of_the_program():
    lines, first = inspect.getsourcelines(collide.func)
    line = first + next(i for i, text in enumerate(lines) if "A[t // 2]" in text)
    with env.scope(TILELANG_EMULATOR_CHECKS="race"), pytest.raises(EmulatorError) as error:
        collide()(torch.zeros(64, dtype=torch.int32))
    assert "race: block (0, 0, 0), 'A', byte 0: thread 1 writes it" in str(error.value)
    assert f"--> {__file__}:{line}\n   | A[t // 2] = t" in str(error.value)


def test_traffic_is_counted_by_the_line_of_the_program():
    with env.scope(TILELANG_EMULATOR_CHECKS="coalesce,banks"):
        kernel = scale(128)
        kernel(torch.randn(128))
    rows = kernel.adapter.counters()
    assert {row.space for row in rows} == {"global"}
    assert all(row.where.startswith(f"{__file__}:") for row in rows)
    # Two blocks read and write 256 bytes each.
    assert sum(row.ideal for row in rows) == 2 * 2 * 256 // 32


def test_checks_are_part_of_the_key():
    context = create_backend_context(None, execution_backend="emulator")
    plain = EmulatorAdapter.fingerprint(context)
    with env.scope(TILELANG_EMULATOR_CHECKS="uninit, race"):
        checked = EmulatorAdapter.fingerprint(context)
    assert (plain["checks"], checked["checks"]) == ("", "race,uninit")


def test_an_unknown_check_is_refused():
    message = "no check 'races'; there are: race, bounds"
    with env.scope(TILELANG_EMULATOR_CHECKS="races"), pytest.raises(EnvVarError, match=message):
        scale(32)


def test_a_missing_compiler_is_named(tmp_path):
    message = r"the C\+\+ compiler cannot be run"
    with env.scope(CXX=str(tmp_path / "none")), pytest.raises(DeviceCompileError, match=message):
        scale(33)


def through_a_workspace(dtype):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        kept = T.alloc_global((n,), dtype)
        with T.Kernel(1, threads=1):
            T.copy(A, kept)
            T.copy(kept, B)

    return tilelang.compile(main, out_idx=-1, execution_backend="emulator")


OVERRUN = """
extern "C" __global__ void main_kernel(const {0}* A, {0}* B, {0}* kept, const int n) {{
  kept[n] = A[0];
}}
"""


@pytest.mark.parametrize(("dtype", "name"), [("float16", "unsigned short"), ("bool", "bool")])
def test_a_workspace_is_as_large_as_its_dtype_and_size_say(dtype, name):
    kernel = through_a_workspace(dtype)
    given = torch.randint(0, 2, (70,)).to(T.dtype(dtype).as_torch())
    assert torch.equal(kernel(given), given)
    plan = kernel.adapter.bundle.plan
    sources = [arg.source for arg in plan.kernels[0].args]
    assert sources == ["param", "param", "workspace", "symbol"]
    with env.scope(TILELANG_EMULATOR_CHECKS="bounds"):
        binaries = compile_source(OVERRUN.format(name), kernel.target, [], {})
    overrun = make_launcher(plan, binaries, {})
    with pytest.raises(EmulatorError, match="0 bytes behind the end of 'workspace 0'"):
        overrun(given)
