"""What holds for every test: seeds, markers, a cache folder of its own, performance opt-in."""

from __future__ import annotations

import os
import shutil
import tempfile

import devices
import pytest

from tilelang.env import env
from tilelang.instrumentation import LevelObserver, observe
from tilelang.testing.seeds import set_random_seed

_scratch: list[str] = []


def pytest_addoption(parser):
    parser.addoption("--run-perf", action="store_true", help="run tests marked perf")


def pytest_configure(config):
    line = "perf: measures speed; runs with --run-perf or TILELANG_RUN_PERF_TESTS=1"
    config.addinivalue_line("markers", line)
    devices.configure(config)
    if "TILELANG_CACHE_DIR" not in os.environ:
        # Inherited by subprocesses that tests start. The user's own cache stays out of tests.
        _scratch.append(tempfile.mkdtemp(prefix="tilelang-test-cache-"))
        os.environ["TILELANG_CACHE_DIR"] = _scratch[0]


def pytest_unconfigure(config):
    while _scratch:
        shutil.rmtree(_scratch.pop(), ignore_errors=True)
        del os.environ["TILELANG_CACHE_DIR"]


def pytest_collection_modifyitems(config, items):
    devices.keep_first_and_last_emulated(config, items)
    if config.getoption("--run-perf") or env.run_perf_tests():
        return
    skip = pytest.mark.skip(reason="measures speed; --run-perf runs it")
    for item in items:
        if item.get_closest_marker("perf"):
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def _seeded():
    """Every test starts from the same random state, whatever ran before it."""
    set_random_seed(0)


@pytest.fixture(autouse=True)
def _ir_levels(request):
    """Check the invariants of the IR between the passes of every compile in this thread.

    Tests of pipelines and observers themselves run toy passes that establish no level.
    """
    if request.path.parent.name == "backend":
        yield
        return
    with observe(LevelObserver()):
        yield
