"""Kernels on disk: reloaded right, rebuilt when damaged, shared by processes, never in the way."""

import gc
import multiprocessing
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.__main__ import main
from tilelang.cache import cache_info, clear_cache, kernel_store
from tilelang.cache import key as cache_key
from tilelang.cache.store import DirectoryStore
from tilelang.errors import UnsupportedError

ROOT = os.path.dirname(os.path.dirname(tilelang.__file__))
BACKENDS = [("llvm", "tvm_ffi"), ("c", "tvm_ffi"), ("c", "cython")]


def program(scale=2.0, dtype="float32"):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), shift: T.int32):
        B = T.empty((2, n), dtype)
        with T.Kernel(T.ceildiv(n, 16), threads=32) as bx:
            for i in T.Parallel(16):
                B[0, bx * 16 + i] = A[bx * 16 + i] * scale + T.cast(shift, dtype)
                B[1, bx * 16 + i] = A[bx * 16 + i]
        return B

    return main


def check(kernel, scale=2.0, n=40):
    a = torch.arange(n).float()
    assert torch.equal(kernel(a, 3), torch.stack([a * scale + 3, a]))


@pytest.fixture
def cache_dir(tmp_path):
    with tilelang.env.scope(TILELANG_CACHE_DIR=tmp_path / "cache"):
        yield tmp_path / "cache"
    gc.collect()


def compile_anew(scale=2.0, target="llvm", backend="tvm_ffi"):
    """A kernel that is not served from memory: nobody holds one."""
    gc.collect()
    return tilelang.compile(program(scale), target=target, execution_backend=backend)


def only_entry(cache_dir):
    (entry,) = (path.parent for path in cache_dir.rglob("manifest.json"))
    return entry


@pytest.mark.parametrize(("target", "backend"), BACKENDS)
def test_a_kernel_from_the_disk_is_the_kernel_that_was_built(cache_dir, target, backend):
    built = compile_anew(target=target, backend=backend)
    source, plan = built.get_kernel_source(), built.plan
    check(built)
    assert not built.from_cache
    del built
    loaded = compile_anew(target=target, backend=backend)
    assert loaded.from_cache and loaded.artifact is None
    assert loaded.get_kernel_source() == source and loaded.plan == plan
    check(loaded)
    check(loaded, n=1)


def damage_truncate(entry):
    binary = next(path for path in entry.iterdir() if path.name in ("kernel.o", "kernel.so"))
    binary.write_bytes(binary.read_bytes()[:200])


def damage_zero(entry):
    for path in entry.iterdir():
        path.write_bytes(b"")


def damage_plan(entry):
    text = (entry / "plan.json").read_text()
    (entry / "plan.json").write_text(text.replace("32", "64", 1))


def damage_remove(entry):
    (entry / "kernel_source").unlink()


@pytest.mark.parametrize("damage", [damage_truncate, damage_zero, damage_plan, damage_remove])
@pytest.mark.parametrize(("target", "backend"), BACKENDS[::2])
def test_a_damaged_entry_is_rebuilt(cache_dir, damage, target, backend):
    check(compile_anew(target=target, backend=backend))
    damage(only_entry(cache_dir))
    rebuilt = compile_anew(target=target, backend=backend)
    assert not rebuilt.from_cache
    check(rebuilt)
    del rebuilt
    assert compile_anew(target=target, backend=backend).from_cache


def test_an_entry_that_verifies_but_does_not_load_is_rebuilt(cache_dir):
    check(compile_anew())
    entry = only_entry(cache_dir)
    files = {p.name: p.read_bytes() for p in entry.iterdir() if p.name != "manifest.json"}
    store = kernel_store()
    store.remove(entry.name)
    assert store.put(entry.name, {**files, "kernel.o": b"no object file"})
    rebuilt = compile_anew()
    assert not rebuilt.from_cache
    check(rebuilt)


def test_without_the_object_loader_kernels_run_and_are_not_stored(cache_dir, monkeypatch):
    adapter = sys.modules[type(compile_anew().adapter).__module__]
    clear_cache()
    monkeypatch.setattr(adapter, "_has_object_loader", lambda: False)
    kernel = compile_anew()
    check(kernel)
    assert cache_info().entries == 0 and not kernel.adapter.bundle.storable
    with pytest.raises(UnsupportedError, match="export_library"):
        kernel.export_library(cache_dir / "kernel.so")


def test_different_programs_have_different_entries(cache_dir):
    kernels = [compile_anew(scale) for scale in (2.0, 3.0)]
    for scale, kernel in zip((2.0, 3.0), kernels, strict=True):
        check(kernel, scale)
    assert cache_info().entries == 2


def test_closure_values_are_part_of_the_program(cache_dir):
    def factory(value):
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(8):
                    A[i] = T.float32(value)

        return main

    for value in (1.0, 2.0, 1.0):
        a = torch.zeros(8)
        tilelang.compile(factory(value))(a)
        assert torch.equal(a, torch.full((8,), value))


@pytest.mark.parametrize("where", ["/proc/nowhere", "/dev/null/cache"])
def test_a_cache_that_cannot_be_written_does_not_matter(where):
    with tilelang.env.scope(TILELANG_CACHE_DIR=where):
        check(compile_anew(4.0), 4.0)
        check(compile_anew(4.0, "c", "cython"), 4.0)


def test_a_full_disk_does_not_matter(cache_dir, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tilelang.cache.store._write_entry", full)
    check(compile_anew())
    assert cache_info().entries == 0


def test_the_bound_is_kept(cache_dir):
    with tilelang.env.scope(TILELANG_CACHE_MAX_BYTES="60000"):
        for scale in range(8):
            check(compile_anew(float(scale + 2)), scale + 2)
        info = cache_info()
        assert 0 < info.entries < 8 and info.size_bytes <= 60000


def test_clear_leaves_loaded_kernels_usable(cache_dir):
    kernel = compile_anew(target="c", backend="cython")
    del kernel
    kernel = compile_anew(target="c", backend="cython")
    assert kernel.from_cache and clear_cache().entries == 1
    check(kernel)
    assert not list(cache_dir.rglob("kernel.so"))


def work(cache_dir, scales, start, reports):
    """What each of the processes does: compile and check the same kernels as all others."""
    cache_key.source_digest = lambda: "one tree"
    tilelang.env.TILELANG_CACHE_DIR = cache_dir
    torch.set_num_threads(1)
    start.wait()
    for scale in scales:
        kernel = tilelang.compile(program(scale), target="llvm")
        check(kernel, scale)
        reports.send(kernel.from_cache)


def test_eight_processes_share_an_empty_cache_and_one_is_killed(tmp_path, monkeypatch):
    """All compile the same kernels at the same time; one dies in the middle."""
    # The processes read the tree at different times, and somebody may be editing it.
    monkeypatch.setattr(cache_key, "source_digest", lambda: "one tree")
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tilelang", __name__])
    scales = (2.0, 3.0, 4.0)
    start = processes.Barrier(8)
    workers = []
    for _ in range(8):
        receiver, sender = processes.Pipe(duplex=False)
        arguments = (tmp_path / "cache", scales, start, sender)
        workers.append((processes.Process(target=work, args=arguments), receiver))
        workers[-1][0].start()
    (victim, reports), *rest = workers
    assert reports.poll(300) and reports.recv() in (True, False)
    victim.kill()
    for process, _ in workers:
        process.join(300)
    assert victim.exitcode == -signal.SIGKILL
    assert [process.exitcode for process, _ in rest] == [0] * 7
    with tilelang.env.scope(TILELANG_CACHE_DIR=tmp_path / "cache"):
        keys = [path.parent.name for path in (tmp_path / "cache").rglob("manifest.json")]
        assert len(keys) == len(scales) == cache_info().entries
        assert all(kernel_store().get(key) is not None for key in keys)
        assert all(compile_anew(scale).from_cache for scale in scales)


def test_a_writer_killed_in_the_middle_leaves_nothing_that_is_read(tmp_path):
    """The entry is staged under another name, so a torn one is never seen under its key."""
    write = pathlib.Path.write_bytes
    store, key = DirectoryStore(tmp_path, "1.0/linux"), "0" * 64

    def torn(path, data):
        write(path, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        pathlib.Path.write_bytes = torn
        store.put(key, {"a": bytes(99)})
        os._exit(1)  # not reached
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert [path.stat().st_size for path in tmp_path.rglob("a")] == [49]
    assert store.get(key) is None
    assert store.put(key, {"a": bytes(99)}) and store.get(key) is not None


def test_ctrl_c_during_a_compile_leaves_process_and_cache_healthy(cache_dir, monkeypatch):
    from tilelang.engine import lower

    original = lower.split_launches

    def interrupted(*args):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        return original(*args)

    monkeypatch.setattr(lower, "split_launches", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compile_anew()
    monkeypatch.undo()
    assert cache_info().entries == 0
    check(compile_anew())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_inside_a_pass_is_no_other_error(cache_dir, monkeypatch):
    """TVM turns it into a RuntimeError without text; the compile must give it back."""
    from tvm import tirx
    from tvm_ffi import structural_walk

    from tilelang.engine import lower

    original = lower.split_launches

    def walking(func, *args):
        def press(_):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

        structural_walk(func.body, (tirx.For, press))
        return original(func, *args)

    monkeypatch.setattr(lower, "split_launches", walking)
    with pytest.raises(KeyboardInterrupt):
        compile_anew()
    monkeypatch.undo()
    check(compile_anew())


def test_temporary_files_are_gone_after_a_compile(cache_dir, tmp_path):
    with tilelang.env.scope(TILELANG_TMP_DIR=tmp_path / "tmp"):
        check(compile_anew(target="c", backend="cython"))
    assert not any((tmp_path / "tmp").iterdir())


def test_the_command_line_shows_and_clears_the_cache(cache_dir, capsys):
    check(compile_anew())
    assert main(["cache", "info"]) == 0
    assert re.search(r"1 kernels, .* of 2\.0 GiB", capsys.readouterr().out)
    assert main(["cache", "clear"]) == 0
    assert "removed 1 kernels" in capsys.readouterr().out
    assert main(["cache", "info"]) == 0
    assert "0 kernels" in capsys.readouterr().out


def test_the_package_is_a_command(cache_dir):
    found = subprocess.run(
        [sys.executable, "-m", "tilelang", "cache", "info"],
        capture_output=True,
        text=True,
        env={**os.environ, "TILELANG_CACHE_DIR": str(cache_dir), "PYTHONPATH": ROOT},
        timeout=300,
        check=False,
    )
    assert found.returncode == 0 and "0 kernels" in found.stdout, found.stderr


@pytest.mark.parametrize("arguments", [[], ["cache"], ["cache", "burn"], ["nonsense"]])
def test_wrong_commands_show_the_usage(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2 and "usage:" in capsys.readouterr().err
