"""``TILELANG_TEST_DEVICE``: where a test run executes kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tilelang.env import env
from tilelang.errors import EnvVarError

ROOT = Path(__file__).resolve().parents[3]
CASES = "testing/python/behaviours/test_behaviour_parallel.py"


def collected(device, *args):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *args],
        cwd=ROOT,
        env={**os.environ, "TILELANG_TEST_DEVICE": device},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_an_ordinary_run_emulates_the_first_and_the_last_case():
    status, text = collected("", CASES)
    name = "test_a_run_time_extent_covers_only_the_prefix"
    cases = [line.split("::")[1] for line in text.splitlines() if f"::{name}[" in line]
    assert status == 0
    assert sorted(case for case in cases if "emulator" in case) == [
        f"{name}[emulator-0]",
        f"{name}[emulator-600]",
    ]
    assert sum("llvm" in case for case in cases) == 4


def test_all_cases_on_the_emulator():
    status, text = collected("emulator", CASES)
    assert status == 0
    assert text.count("covers_only_the_prefix[emulator-") == 4 and "[llvm" not in text


@pytest.mark.skipif(torch.cuda.is_available(), reason="the device is there")
def test_a_run_for_a_device_that_is_not_there_is_refused():
    status, text = collected("cuda", CASES)
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "TILELANG_TEST_DEVICE=cuda, but torch finds no CUDA device" in text


def test_another_device_is_refused():
    with env.scope(TILELANG_TEST_DEVICE="tpu"), pytest.raises(EnvVarError, match="found 'tpu'"):
        env.test_device()
