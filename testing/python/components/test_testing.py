"""tilelang.testing: requirement marks, seeds, the perf helpers, the root conftest."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch

from tilelang import testing
from tilelang.env import env
from tilelang.testing import requirements
from tilelang.testing.requirements import Requirement

NEVER = Requirement("never met", lambda: False)
ALWAYS = Requirement("always met", lambda: True)


def skipped(test):
    return any(m.args[0] for m in test.pytestmark if m.name == "skipif")


def test_requirements_stack_with_each_other_and_with_parametrisation():
    @NEVER
    @ALWAYS
    @pytest.mark.parametrize("x", [1])
    def test(x): ...

    assert [m.name for m in test.pytestmark] == ["parametrize", "skipif", "skipif"]
    assert skipped(test)


def test_requirements_decorate_classes():
    @ALWAYS
    class TestSomething: ...

    assert not skipped(TestSomething)


def test_implied_requirements_are_marked_too():
    both = Requirement("needs both", lambda: True, (NEVER,))
    assert [m.kwargs["reason"] for m in both.marks()] == ["never met", "needs both"]
    assert len(pytest.param(1, marks=both.marks()).marks) == 2


def test_llvm_is_there():
    assert testing.requirements.requires_llvm.is_met()


@pytest.mark.parametrize(
    ("device", "mode", "met"),
    [
        ((9, 0), "ge", True), ((9, 0), "eq", True), ((9, 0), "gt", False),
        ((8, 9), "lt", True), ((8, 9), "ge", False), ((9, 0), "le", True),
        ((10, 0), "gt", True), ((0, 0), "ge", False),
    ],
)  # fmt: skip
def test_compute_versions(monkeypatch, device, mode, met):
    monkeypatch.setattr(requirements, "cuda_compute_version", lambda: device)
    assert testing.requires_cuda_compute_version(9, 0, mode).is_met() is met
    shorthand = getattr(testing, f"requires_cuda_compute_version_{mode}")
    assert shorthand(9).is_met() is met


def test_compute_version_implies_cuda():
    assert testing.requires_cuda_compute_version_ge(7, 5).implied == (testing.requires_cuda,)


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without a GPU")
def test_without_a_driver_everything_answers_no():
    assert requirements.cuda_compute_version() == (0, 0)
    for requirement in (
        testing.requires_cuda, testing.requires_rocm, testing.requires_cdna,
        testing.requires_gfx950, testing.requires_cuda_or_cdna,
        testing.requires_cuda_compute_version_lt(9),
    ):  # fmt: skip
        assert any(mark.args[0] for mark in requirement.marks())


def test_packages():
    assert testing.requires_package("numpy", "torch").is_met()
    missing = testing.requires_package("numpy", "no_such_package")
    assert not missing.is_met()
    assert missing.reason == "needs the package no_such_package"


def test_seeds_reach_every_generator():
    def draw():
        testing.set_random_seed(7)
        return random.random(), float(np.random.rand()), float(torch.rand(()))

    assert draw() == draw()


def regression_ok():
    testing.process_func(lambda n: n * 0.5, "ok", n=3)


def regression_other():
    testing.process_func(lambda: 2.0, "other")


def test_regressions_are_collected_from_the_caller(capsys):
    assert testing.regression() == {"ok": 1.5, "other": 2.0}
    assert "ok         1.5000 ms" in capsys.readouterr().out


def test_regressions_are_selected_and_printed_as_json(capsys):
    with env.scope(TL_PERF_REGRESSION_ONLY="regression_other", TL_PERF_REGRESSION_FORMAT="json"):
        assert testing.regression() == {"other": 2.0}
    assert json.loads(capsys.readouterr().out) == {"name": "other", "latency_ms": 2.0}


def test_a_failing_regression_is_a_warning():
    def broken():
        raise OSError("no")

    with pytest.warns(RuntimeWarning, match="'broken' failed: OSError"):
        assert testing.process_func(broken, "broken") is None


def test_a_regression_returns_a_number():
    with pytest.raises(TypeError, match="must return milliseconds, found str"):
        testing.process_func(lambda: "fast")


def test_unknown_output_format():
    with (
        env.scope(TL_PERF_REGRESSION_FORMAT="xml"),
        pytest.raises(ValueError, match="must be text or json, found 'xml'"),
    ):
        testing.regression()


def test_unknown_comparison():
    with pytest.raises(ValueError, match="mode must be one of ge, gt, le, lt, eq; found 'ne'"):
        testing.requires_cuda_compute_version(9, mode="ne")


def test_main_runs_the_calling_file(tmp_path):
    script = tmp_path / "test_it.py"
    script.write_text(
        textwrap.dedent("""
            import tilelang.testing
            def test_one(): assert True
            def test_two(): assert False
            if __name__ == "__main__":
                tilelang.testing.main()
        """)
    )
    command = [sys.executable, str(script), "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(Path(testing.__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout


@pytest.mark.perf
def test_perf_tests_are_opt_in(request):
    assert request.config.getoption("--run-perf") or env.run_perf_tests()


def test_tests_do_not_touch_the_users_cache():
    assert not str(env.cache_dir()).startswith(str(env.cache_dir().home() / ".tilelang"))
