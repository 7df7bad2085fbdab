"""What ``import tilelang`` does to a process: register its own things, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from source_tree import ROOT

PROBE = """
import json, os, sys
def state():
    return [dict(os.environ), list(sys.path), os.getcwd(), sorted(os.listdir("."))]
import tvm
before = state()
import tilelang
print(json.dumps({"modules": sorted(sys.modules), "same": state() == before,
                  "signal": repr(__import__("signal").getsignal(2))}))
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    run = subprocess.run(
        [sys.executable, "-c", PROBE],
        capture_output=True,
        text=True,
        check=True,
        cwd=home,
        env=_environment(home),
    )
    return json.loads(run.stdout.splitlines()[-1]), home


def _environment(home):
    return {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT)}


def test_process_state_is_left_alone(probe):
    assert probe[0]["same"]
    assert "default_int_handler" in probe[0]["signal"]


def test_nothing_is_written(probe):
    assert list(probe[1].iterdir()) == []


@pytest.mark.parametrize(
    "package", ["z3", "matplotlib", "tqdm", "rich", "psutil", "IPython", "pytest", "Cython"]
)
def test_optional_packages_are_not_imported(probe, package):
    loaded = [name for name in probe[0]["modules"] if name.split(".")[0] == package]
    assert not loaded or package in _imported_by_tvm()


def _imported_by_tvm():
    run = subprocess.run(
        [sys.executable, "-c", "import sys, tvm; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.split(".")[0] for name in run.stdout.split()}


@pytest.mark.parametrize("part", ["tilelang.cpu.pipeline", "tilelang.cpu.codegen"])
def test_backends_register_without_their_compilers(probe, part):
    assert "tilelang.cpu.backend" in probe[0]["modules"]
    assert part not in probe[0]["modules"]
