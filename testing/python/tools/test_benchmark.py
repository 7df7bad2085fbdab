"""The benchmark runner: rows, interleaving, and suites that crash."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))
from benchmark import measure
from benchmark import run as runner

_FAKES = """
import os, signal
from benchmark.measure import Row

def good(quick):
    yield Row("fake", "fast enough", 1.0, "x", 0.5, "higher", "quick" if quick else "full")
    yield Row("fake", "too slow", 3.0, "ms", 2.0)

def crash(quick):
    yield Row("fake", "before the crash", 1.0, "x")
    os.kill(os.getpid(), signal.SIGSEGV)

def error(quick):
    raise RuntimeError("wrong result")
    yield
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run fake suites; returns exit status, what was printed and the JSON lines."""
    (tmp_path / "fakes.py").write_text(_FAKES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    names = ("good", "crash", "error")
    monkeypatch.setattr(runner, "_SUITES", {name: f"fakes:{name}" for name in names})

    def call(*arguments):
        out = tmp_path / "out.jsonl"
        monkeypatch.setattr(sys, "argv", ["run.py", "--out", str(out), *arguments])
        status = runner.main()
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        return status, capsys.readouterr().out, rows

    return call


def test_rows_know_whether_their_target_is_met():
    assert measure.Row("s", "n", 1.0, "x", 0.9, "higher").met is True
    assert measure.Row("s", "n", 1.0, "ms", 0.9, "lower").met is False
    assert measure.Row("s", "n", 1.0, "x").met is None
    assert measure.missed("s", "n", "why").met is None


def test_ratios_are_medians_of_rounds():
    assert measure.ratio([2.0, 4.0, 100.0], [1.0, 1.0, 1.0]) == 4.0
    assert measure.per_call_us([1e-6, 2e-6, 9e-6]) == pytest.approx(2.0)


def test_calls_take_turns():
    order = []

    def slow(name):
        order.append(name)
        time.sleep(0.011)

    times = measure.interleaved([lambda: slow("a"), lambda: slow("b")], 0.0, min_rounds=3)
    assert order[4:] == ["a", "b"] * 3
    assert [len(t) for t in times] == [3, 3]
    assert min(times[0]) > 0.01


def test_a_missed_target_is_no_failure(run):
    status, printed, rows = run("--only", "good")
    assert status == 0
    assert "met" in printed and "missed" in printed
    assert "load" in rows[0]["machine"]
    assert [row["met"] for row in rows[1:]] == [True, False]
    assert rows[1]["note"] == "full"


def test_quick_reaches_the_suites(run):
    assert run("--only", "good", "--quick")[2][1]["note"] == "quick"


def test_a_crash_keeps_its_rows_and_the_other_suites(run):
    status, printed, rows = run("--only", "crash,good")
    assert status == 1
    assert "killed by SIGSEGV" in printed
    assert {row.get("name") for row in rows} >= {"before the crash", "fast enough"}
    assert {"suite": "crash", "error": "killed by SIGSEGV"} in rows


def test_an_exception_fails_the_suite(run):
    status, printed, rows = run("--only", "error")
    assert status == 1
    assert "failed: exit status 1" in printed
    assert rows[-1] == {"suite": "error", "error": "exit status 1"}


def test_unknown_suites_are_refused(run, capsys):
    with pytest.raises(SystemExit):
        run("--only", "good,speed")
    assert "unknown suite speed" in capsys.readouterr().err
