"""Where the kernels of this folder run.

Every test runs on ``llvm``; one marked ``everywhere`` runs on ``c``, in the interpreter and as
emulated CUDA too. The choice is made from outside, by the environment variables a user has for it.
"""

from __future__ import annotations

import pytest

WAYS = ("llvm", "c", "interpreter", "cuda")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "everywhere: runs on llvm, on c, in the interpreter and as emulated CUDA"
    )


def pytest_generate_tests(metafunc):
    if metafunc.definition.get_closest_marker("everywhere"):
        metafunc.parametrize("way", WAYS, indirect=True)


@pytest.fixture(autouse=True)
def way(request, monkeypatch):
    name = getattr(request, "param", "llvm")
    if name == "cuda":
        monkeypatch.setenv("TILELANG_EXECUTION_BACKEND", "emulator")
        monkeypatch.setenv("TILELANG_EMULATOR_CHECKS", "race,bounds,uninit")
        monkeypatch.setenv("TILELANG_DEFAULT_TARGET", "cuda -arch=sm_90a")
        return name
    if name == "interpreter":
        monkeypatch.setenv("TILELANG_INTERPRET", "1")
        name = "llvm"
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", name)
    return name
