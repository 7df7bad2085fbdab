"""Where the kernels of a test run.

A test marked ``devices`` names no target: it runs on ``llvm`` and as emulated CUDA; arguments of
the marker replace ``llvm``. One marked ``everywhere`` runs on ``llvm``, ``c``, the interpreter and
as emulated CUDA. The choice is made by the environment variables a user has for it.

The emulator checks for races, bounds and reads of what was never written. Compiling for it takes
a while, so of a test marked ``devices`` it runs the first and the last case.
``TILELANG_TEST_DEVICE=emulator`` runs all cases there, and nothing of these on a CPU.
``TILELANG_TEST_DEVICE=cuda`` runs them on a GPU: programs are compiled for it and torch makes its
tensors there. Tests without a marker are about a CPU and stay there.
"""

from __future__ import annotations

import pytest
import torch

from tilelang.env import env

__all__ = [
    "ON_CPU",
    "configure",
    "keep_first_and_last_emulated",
    "on_gpu",
    "pytest_generate_tests",
    "tvm_ffi",
    "way",
]

#: Ways of a CPU, where ``T.gemm`` of float32 is exact; GPUs take the operands as tfloat32.
ON_CPU = ("llvm", "c", "interpreter")
_EMULATED = '{"kind": "cuda", "arch": "sm_90a"}'
_VARIABLES = {
    "llvm": {"TILELANG_DEFAULT_TARGET": "llvm"},
    "c": {"TILELANG_DEFAULT_TARGET": "c"},
    "interpreter": {"TILELANG_DEFAULT_TARGET": "llvm", "TILELANG_INTERPRET": "1"},
    "emulator": {
        "TILELANG_DEFAULT_TARGET": _EMULATED,
        "TILELANG_EXECUTION_BACKEND": "emulator",
        "TILELANG_EMULATOR_CHECKS": "race,bounds,uninit",
    },
    "cuda": {"TILELANG_DEFAULT_TARGET": "cuda"},
}


def on_gpu() -> bool:
    """Whether this run is for a GPU."""
    return env.test_device() == "cuda"


def tvm_ffi() -> str:
    """The execution backend ``tvm_ffi``, or the emulator in its place."""
    return "emulator" if env.TILELANG_EXECUTION_BACKEND == "emulator" else "tvm_ffi"


def configure(config: pytest.Config) -> None:
    """Declare the markers and refuse to run for a device that is not there."""
    for line in (
        "devices(*ways): runs on a CPU and as emulated CUDA, or on TILELANG_TEST_DEVICE",
        "everywhere: runs on llvm, on c, in the interpreter and as emulated CUDA",
    ):
        config.addinivalue_line("markers", line)
    if on_gpu() and not torch.cuda.is_available():
        raise pytest.UsageError("TILELANG_TEST_DEVICE=cuda, but torch finds no CUDA device")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("everywhere"):
        cpu: tuple[str, ...] = ON_CPU
    elif (marker := metafunc.definition.get_closest_marker("devices")) is not None:
        cpu = marker.args or ("llvm",)
    else:
        return
    device = env.test_device()
    metafunc.parametrize("way", (device,) if device else (*cpu, "emulator"), indirect=True)


@pytest.fixture(autouse=True)
def way(request, monkeypatch):
    name = getattr(request, "param", "llvm")
    for variable, value in _VARIABLES[name].items():
        monkeypatch.setenv(variable, value)
    if name != "cuda":
        yield name
        return
    torch.set_default_device("cuda")
    yield name
    torch.set_default_device(None)


def keep_first_and_last_emulated(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the emulated cases of each test between its first and its last."""
    if env.test_device():
        return
    cases: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is None or item.get_closest_marker("everywhere"):
            continue
        if callspec.params.get("way") == "emulator":
            cases.setdefault((str(item.path), item.originalname), []).append(item)
    left_out = {item for each in cases.values() for item in each[1:-1]}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
