"""The launcher in Python does, call by call, what the native one does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tilelang.testing import requires_package

SCRIPT = Path(__file__).with_name("python_launches.py")
SCENARIOS = (
    "plain", "device 1", "no grid", "flags", "cluster", "shared", "too much shared",
    "too many threads", "workspace", "two kernels", "output", "no tensor", "wrong dtype",
    "wrong device", "unaligned", "lost context", "too large", "other arch",
)  # fmt: skip
REFUSED = {
    "too much shared", "too many threads", "wrong dtype", "wrong device", "unaligned",
    "lost context", "too large", "other arch",
}  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    if torch.cuda.is_available():
        pytest.skip("cuda-python takes the driver of this machine, not the one of the test")
    command = [sys.executable, str(SCRIPT), str(tmp_path_factory.mktemp("driver"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@requires_package("cuda.bindings")
def test_every_scenario_ran(outcomes):
    assert tuple(outcomes) == SCENARIOS


def without_addresses(calls):
    """Outputs and workspaces lie elsewhere in every call."""
    return [" ".join(w if len(w) < 12 else "ADDRESS" for w in line.split()) for line in calls]


@requires_package("cuda.bindings")
@pytest.mark.parametrize("name", SCENARIOS)
def test_both_launchers_do_the_same(outcomes, name):
    native, python = outcomes[name]["native"], outcomes[name]["python"]
    assert native["result"] == python["result"]
    launched = [line for line in native["calls"] if line.startswith("launch")]
    assert bool(launched) == (name not in REFUSED | {"no grid"})
    assert without_addresses(launched) == without_addresses(
        line for line in python["calls"] if line.startswith("launch")
    )
