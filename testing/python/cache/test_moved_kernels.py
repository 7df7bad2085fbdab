"""A program that moved in its file: the same code, its own lines."""

import gc
import importlib.util

import pytest
import torch

import tilelang
from tilelang.cache import cache_info
from tilelang.errors import KernelAssertionError

TILES = """
import tilelang.language as T

def make(cases=2):
    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(16):
                B[i] = A[i] * 2.0
        for k in range(cases - 1):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(16):
                    B[i] = B[i] + 1.0
    return main
"""

THREADS = """
import tilelang.language as T

def make():
    @T.prim_func
    def main(A: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            bound = A[tx]
            shared = T.alloc_shared((32,), "int32")
            for i in T.Parallel(32):
                shared[i] = bound
            T.copy(shared, A)
    return main
"""


@pytest.fixture(autouse=True)
def cache_dir(tmp_path):
    with tilelang.env.scope(TILELANG_CACHE_DIR=tmp_path / "cache"):
        yield
    gc.collect()


@pytest.fixture
def program_at(tmp_path):
    """The program of ``text`` as if ``blank`` lines had been put above it."""

    def load(text, blank, **arguments):
        path = tmp_path / f"kernels_{blank}.py"
        path.write_text("\n" * blank + text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.make(**arguments)

    return load


def lines(kernel):
    return {entry: line for entry, (_, line) in kernel.adapter.bundle.line_table.items()}


def test_a_kernel_from_disk_has_the_lines_of_the_program_that_asks(program_at):
    first = tilelang.compile(program_at(TILES, 0), target="llvm")
    assert lines(first) == {"main_kernel": 7, "main_kernel_1": 11}
    del first
    gc.collect()
    moved = tilelang.compile(program_at(TILES, 10), target="llvm")
    assert moved.from_cache and lines(moved) == {"main_kernel": 17, "main_kernel_1": 21}


def test_a_kernel_in_memory_does_not_lend_its_lines(program_at):
    first = tilelang.compile(program_at(TILES, 0), target="llvm")
    moved = tilelang.compile(program_at(TILES, 10), target="llvm")
    assert moved.from_cache, "nothing was compiled again"
    assert lines(first)["main_kernel"] == 7 and lines(moved)["main_kernel"] == 17
    assert tilelang.compile(program_at(TILES, 0), target="llvm") is first
    assert tilelang.compile(program_at(TILES, 10), target="llvm") is moved
    a, b = torch.arange(16.0), torch.zeros(16)
    moved(a, b)
    assert torch.equal(b, 2 * a + 1)


def test_a_loop_of_launches_keeps_one_line_for_each(program_at):
    tilelang.compile(program_at(TILES, 0, cases=4), target="llvm")
    moved = tilelang.compile(program_at(TILES, 3, cases=4), target="llvm")
    assert moved.from_cache
    assert lines(moved) == {
        "main_kernel": 10,
        **{f"main_kernel_{number}": 14 for number in (1, 2, 3)},
    }


def test_graphs_of_two_places_do_not_share_a_kernel(program_at):
    first = tilelang.compile(program_at(TILES, 0), target="llvm", out_idx=1)
    moved = tilelang.compile(program_at(TILES, 10), target="llvm", out_idx=1)
    assert first.graph_call.key != moved.graph_call.key
    captured = torch.compile(lambda x: first(x), backend="eager", fullgraph=True)
    a = torch.arange(16.0)
    assert torch.equal(captured(a), 2 * a + 1)
    del moved
    gc.collect()
    assert torch.equal(captured(a), 2 * a + 1)


@pytest.mark.parametrize("blank", [0, 10])
def test_a_message_in_the_code_shows_the_line_of_today(program_at, blank):
    """Lines that thread programs show are part of their code, and so of their key."""
    tilelang.compile(program_at(THREADS, 4), target="llvm")
    stored = cache_info().entries
    kernel = tilelang.compile(program_at(THREADS, blank), target="llvm")
    assert cache_info().entries == stored + 1
    kernel(torch.ones(32, dtype=torch.int32))
    with pytest.raises(KernelAssertionError, match=rf"kernels_{blank}\.py:{blank + 11}"):
        kernel(torch.arange(32, dtype=torch.int32))
