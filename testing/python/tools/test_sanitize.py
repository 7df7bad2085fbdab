"""The list of tests for compute-sanitizer, and the script that runs it."""

from __future__ import annotations

import importlib.util
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def sanitize():
    spec = importlib.util.spec_from_file_location("sanitize", ROOT / "testing" / "sanitize.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_listed_test_is_collected(sanitize):
    tests = [test.replace("[cuda", "[emulator") for test in sanitize.listed()]
    assert tests and len(tests) == len(set(tests))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        env={**os.environ, "TILELANG_TEST_DEVICE": "emulator"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def fake_sanitizer(folder, status, summary):
    path = folder / "compute-sanitizer"
    path.write_text(f"#!/bin/sh\necho $TILELANG_TEST_DEVICE $2\necho '{summary}'\nexit {status}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(
    ("status", "summary", "said"),
    [
        (0, "========= ERROR SUMMARY: 0 errors", "memcheck: clean"),
        (86, "========= ERROR SUMMARY: 3 errors", "memcheck: reports"),
        (1, "==== 1 failed, 5 passed in 3.20s ====", "memcheck: status 1"),
    ],
)
def test_its_status_and_summary(sanitize, monkeypatch, tmp_path, capsys, status, summary, said):
    fake_sanitizer(tmp_path, status, summary)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(sys, "argv", ["sanitize.py", "memcheck"])
    assert sanitize.main() == (status != 0)
    assert capsys.readouterr().out.splitlines() == [
        "cuda memcheck", summary, said, f"  {summary}"
    ]  # fmt: skip


def test_a_tool_it_does_not_know(sanitize, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sanitize.py", "magic"])
    with pytest.raises(SystemExit):
        sanitize.main()
    assert "no tool 'magic'" in capsys.readouterr().err
