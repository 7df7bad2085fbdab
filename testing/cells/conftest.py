"""Cells check the invariants of the IR too; the slow ones run with ``-m slow``."""

from __future__ import annotations

import pytest

from tilelang.instrumentation import LevelObserver, observe


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: part of a full matrix; runs with -m slow")


def pytest_collection_modifyitems(config, items):
    if "slow" in config.getoption("markexpr"):
        return
    skip = pytest.mark.skip(reason="the full matrix takes minutes; -m slow runs it")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def _ir_levels():
    with observe(LevelObserver()):
        yield
