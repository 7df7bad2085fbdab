"""What a kernel tells about how it came about and what it takes of the device."""

import gc

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.cuda.occupancy import occupancy
from tilelang.env import env

TARGET = {"kind": "cuda", "arch": "sm_90a"}
NOTE = "note: T.gemm(a, b, c) runs on scalar units: "


def small_product():
    """Too few rows for a matrix instruction."""

    @T.prim_func
    def product(
        A: T.Tensor((4, 16), "float16"),
        B: T.Tensor((16, 8), "float16"),
        C: T.Tensor((4, 8), "float32"),
    ):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((4, 16), "float16")
            b = T.alloc_shared((16, 8), "float16")
            c = T.alloc_fragment((4, 8), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)
            T.copy(c, C)

    return product


def compiled(backend, **options):
    return tilelang.compile(
        small_product(), out_idx=-1, target=TARGET, execution_backend=backend, **options
    )


@pytest.mark.parametrize("backend", ["emulator", "tvm_ffi"])
def test_notes_survive_the_cache(backend, tmp_path):
    with env.scope(TILELANG_CACHE_DIR=str(tmp_path)):
        first = compiled(backend)
        text = first.report()
        assert NOTE in text and not first.from_cache
        del first
        gc.collect()
        second = compiled(backend)
    assert second.from_cache and NOTE in second.report()
    kept = [line for line in text.splitlines() if line.startswith("    ")]
    assert [line for line in second.report().splitlines() if line.startswith("    ")] == kept


def test_a_verbose_compile_shows_the_notes(tmp_path, capsys):
    with env.scope(TILELANG_CACHE_DIR=str(tmp_path)):
        compiled("emulator")
        assert NOTE not in capsys.readouterr().err
    with env.scope(TILELANG_CACHE_DIR=str(tmp_path / "other")):
        gc.collect()
        compiled("emulator", verbose=True)
    assert f"tilelang: product_kernel: {NOTE}" in capsys.readouterr().err


def test_figures_of_the_device_compiler(tmp_path):
    with env.scope(TILELANG_CACHE_DIR=str(tmp_path)):
        kernel = compiled("tvm_ffi")
    text = kernel.report()
    assert f"{kernel.n_regs} registers a thread, 0 of them spilled" in text
    assert "block (64, 1, 1)" in text
    assert f"{kernel.plan.kernels[0].dyn_smem} bytes of dynamic" in text
    assert "blocks on a multiprocessor" in text and "phases: " in text


def test_a_hint_without_effect_is_noted(tmp_path):
    @T.prim_func
    def add(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.annotate_l2_hit_ratio({A: 0.5})
            T.copy(A, B)

    with env.scope(TILELANG_CACHE_DIR=str(tmp_path)):
        kernel = tilelang.compile(add, out_idx=-1, target=TARGET, execution_backend="emulator")
    assert "note: T.annotate_l2_hit_ratio has no effect on A" in kernel.report()
    a = torch.randn(64)
    assert torch.equal(kernel(a), a)


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "limit"),
    [
        (90, 128, 32, 0, 16, "threads"),
        (90, 32, 32, 0, 32, "blocks"),
        (90, 128, 168, 0, 3, "registers"),
        (90, 256, 255, 0, 1, "registers"),
        (90, 128, 32, 49152, 4, "shared memory"),
        (80, 128, 32, 49152, 3, "shared memory"),
        (75, 1024, 32, 0, 1, "threads"),
        (89, 100, 40, 1024, 12, "threads"),
    ],
)
def test_occupancy(arch, threads, registers, shared, blocks, limit):
    found = occupancy(arch, threads, registers, shared)
    assert (found.blocks, found.limit) == (blocks, limit)
    assert found.warps == blocks * -(-threads // 32) <= found.max_warps
