"""The thread pool of CPU kernels."""

import ctypes
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest
import torch
from launch_helpers import N, launch, plan_of, tensor

from tilelang import _native
from tilelang.env import env


@pytest.fixture(autouse=True)
def _thread_count():
    before = torch.get_num_threads()
    yield
    _native.set_num_threads(None)
    torch.set_num_threads(before)


class Threads:
    """A slow worker that records the threads it ran on."""

    def __init__(self, seconds=0.003):
        self.seconds = seconds
        self.idents = set()
        self.blocks = 0
        self.lock = threading.Lock()

    def __call__(self, slots, begin, end, scratch):
        with self.lock:
            self.idents.add(threading.get_ident())
            self.blocks += end - begin
        time.sleep(self.seconds * (end - begin))


def run_blocks(worker, blocks, run=None):
    run = run or launch(tensor("A", N), worker=worker, grid=(blocks, 1, 1))
    run(torch.ones(1))
    return run


@pytest.mark.parametrize("count", [1, 2, 5])
def test_thread_count_follows_torch(count):
    torch.set_num_threads(count)
    assert _native.get_num_threads() == count
    worker = Threads()
    run_blocks(worker, 40)
    assert worker.blocks == 40
    assert len(worker.idents) == count


def test_explicit_thread_count_wins():
    torch.set_num_threads(4)
    _native.set_num_threads(2)
    assert _native.get_num_threads() == 2
    worker = Threads()
    run_blocks(worker, 40)
    assert len(worker.idents) == 2
    _native.set_num_threads(None)
    assert _native.get_num_threads() == 4


@pytest.mark.parametrize("count", [0, -1])
def test_thread_count_must_be_positive(count):
    with pytest.raises(ValueError, match=f"must be positive, got {count}"):
        _native.set_num_threads(count)


def test_environment_variable_sets_the_thread_count():
    with env.scope(TILELANG_NUM_THREADS="3"):
        launch(tensor("A", N))
    assert _native.get_num_threads() == 3


def test_no_more_threads_than_blocks():
    torch.set_num_threads(4)
    worker = Threads(0.02)
    run_blocks(worker, 2)
    assert len(worker.idents) <= 2
    assert worker.blocks == 2


def test_one_thread_runs_in_the_caller():
    torch.set_num_threads(1)
    worker = Threads(0)
    run_blocks(worker, 100)
    assert worker.idents == {threading.get_ident()}


def test_tiny_grids_stay_in_the_caller_once_their_cost_is_known(workers):
    _native.set_num_threads(2)
    plan = plan_of(tensor("A", 8, dtype="int64"), grid=(8, 1, 1))
    run = _native.make_cpu_launcher(plan, [workers["thread_ids"]])
    ran_on = torch.zeros(8, dtype=torch.int64)
    for _ in range(50):
        run(ran_on)
    counts = []
    for _ in range(50):
        run(ran_on)
        counts.append(len(ran_on.unique()))
    assert counts.count(1) > 40


def test_serial_kernels_stay_in_the_caller():
    torch.set_num_threads(4)
    worker = Threads()
    run = launch(tensor("A", N), worker=worker, grid=(20, 1, 1), kernel={"flags": ("serial",)})
    run(torch.ones(1))
    assert worker.idents == {threading.get_ident()}


def test_uneven_blocks_are_shared_out():
    torch.set_num_threads(2)
    done = {}
    lock = threading.Lock()

    def worker(slots, begin, end, scratch):
        time.sleep(0.2 if begin == 0 else 0.002)
        with lock:
            me = threading.get_ident()
            done[me] = done.get(me, 0) + end - begin

    run_blocks(worker, 32)
    assert sum(done.values()) == 32
    assert max(done.values()) > 24


def test_nested_calls_run_serially():
    torch.set_num_threads(2)
    inner_threads = []
    inner = launch(
        tensor("A", N),
        worker=lambda *_: inner_threads.append(threading.get_ident()),
        grid=(16, 1, 1),
    )
    outer_threads = set()

    def worker(slots, begin, end, scratch):
        before = len(inner_threads)
        me = threading.get_ident()
        outer_threads.add(me)
        inner(torch.ones(1))
        assert me in inner_threads[before:]
        time.sleep(0.005)

    run_blocks(worker, 8)
    assert set(inner_threads) <= outer_threads


def test_scratch_survives_a_nested_call():
    inner = launch(
        tensor("A", N),
        worker=lambda s, b, e, p: ctypes.memset(p.value, 0xEE, 64),
        kernel={"scratch_bytes": 64},
    )

    def worker(slots, begin, end, scratch):
        ctypes.memset(scratch.value, 0x11, 64)
        inner(torch.ones(1))
        assert ctypes.string_at(scratch.value, 64) == b"\x11" * 64

    launch(tensor("A", N), worker=worker, kernel={"scratch_bytes": 64})(torch.ones(1))


def test_many_threads_may_call_at_once():
    torch.set_num_threads(2)
    total = Threads(0)
    run = launch(tensor("A", N), worker=total, grid=(64, 1, 1))

    def call():
        for _ in range(50):
            run(torch.ones(1))

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert total.blocks == 4 * 50 * 64


def test_a_thousand_calls():
    torch.set_num_threads(2)
    worker = Threads(0)
    run = launch(tensor("A", N), worker=worker, grid=(9, 1, 1))
    for _ in range(1000):
        run(torch.ones(1))
    assert worker.blocks == 9000


@pytest.mark.parametrize("failing", [0, 7, 63])
def test_first_exception_wins_and_the_pool_survives(failing):
    torch.set_num_threads(2)
    ran = []

    def worker(slots, begin, end, scratch):
        ran.append(begin)
        if begin <= failing < end:
            raise IndexError(f"block {failing}")
        time.sleep(0.001)

    run = launch(tensor("A", N), worker=worker, grid=(64, 1, 1))
    for _ in range(3):
        with pytest.raises(IndexError, match=f"block {failing}"):
            run(torch.ones(1))
    after = Threads(0.002)
    run_blocks(after, 20)
    assert len(after.idents) == 2


def run_python(code):
    """Run code in a fresh process; returns its standard output."""
    here = os.path.dirname(__file__)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([here, *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        cwd=here,  # not the root of the checkout, which may shadow an installed package
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_pool_works_in_a_forked_child():
    out = run_python(
        """
        import os, threading, time, torch
        from launch_helpers import N, launch, tensor
        from tilelang import _native
        _native.set_num_threads(2)

        def count():
            idents, lock = set(), threading.Lock()
            def worker(slots, begin, end, scratch):
                with lock:
                    idents.add(threading.get_ident())
                time.sleep(0.003 * (end - begin))
            launch(tensor("A", N), worker=worker, grid=(30, 1, 1))(torch.ones(1))
            return len(idents)

        before = count()
        child = os.fork()
        if child == 0:
            print("child", count(), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print("parent", before, count())
        """
    )
    assert out.split() == ["child", "2", "parent", "2", "2"]


@pytest.mark.skipif(sys.platform != "linux", reason="asks glibc for the stack size")
def test_helpers_have_large_stacks():
    run_python(
        """
        import threading, time, torch, ctypes
        from launch_helpers import N, launch, tensor
        from tilelang import _native
        _native.set_num_threads(2)
        attr = ctypes.create_string_buffer(64)
        libc = ctypes.CDLL(None)
        main, sizes = threading.get_ident(), []
        def worker(slots, begin, end, scratch):
            if threading.get_ident() != main:
                libc.pthread_self.restype = ctypes.c_void_p
                libc.pthread_getattr_np(ctypes.c_void_p(libc.pthread_self()), attr)
                size = ctypes.c_size_t()
                libc.pthread_attr_getstacksize(attr, ctypes.byref(size))
                sizes.append(size.value)
            time.sleep(0.003)
        launch(tensor("A", N), worker=worker, grid=(20, 1, 1))(torch.ones(1))
        assert sizes and min(sizes) >= 16 << 20, sizes
        """
    )


def test_flush_denormal_of_the_caller_holds_on_every_thread():
    torch.set_num_threads(2)
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU cannot flush subnormal numbers")
    results = {}
    subnormal = float("1e-310")  # not a literal, which Python would fold

    def worker(slots, begin, end, scratch):
        results[threading.get_ident()] = subnormal * 1.0
        time.sleep(0.003)

    try:
        run_blocks(worker, 20)
        assert set(results.values()) == {0.0}
        assert len(results) == 2
    finally:
        torch.set_flush_denormal(False)


def test_the_process_ends_while_helpers_are_idle():
    run_python(
        """
        import torch
        from launch_helpers import N, launch, tensor
        from tilelang import _native
        _native.set_num_threads(4)
        launch(tensor("A", N), grid=(64, 1, 1))(torch.ones(1))
        """
    )
