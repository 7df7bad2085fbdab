"""What a compile says about itself."""

import logging
import os
import signal
import time

import pytest

import tilelang
from tilelang.jit.compiler import run_parallel
from tilelang.jit.diagnostics import Phases, jit_phase


def test_a_quiet_compile_says_nothing(add_factory, capsys):
    tilelang.compile(add_factory(scale=51.0))
    assert capsys.readouterr() == ("", "")


def test_a_verbose_compile_shows_its_phases(add_factory, capsys):
    kernel = tilelang.compile(add_factory(scale=52.0), verbose=True)
    shown = capsys.readouterr().err
    assert kernel.verbose
    for name in kernel.phases:
        assert f"tilelang: add: {name} " in shown
    assert {"key", "passes", "build", "load"} <= set(kernel.phases)


def test_the_environment_can_ask_for_it(add_factory, capsys):
    with tilelang.env.scope(TILELANG_JIT_DIAGNOSTICS="1"):
        tilelang.compile(add_factory(scale=53.0))
    assert "tilelang: add: load" in capsys.readouterr().err
    with tilelang.env.scope(TILELANG_VERBOSE="1"):
        assert tilelang.compile(add_factory(scale=54.0)).verbose


def test_names_of_compiled_kernels_are_logged(add_factory, caplog):
    with caplog.at_level(logging.INFO, "tilelang"):
        tilelang.compile(add_factory(scale=55.0))
        assert "compiling kernel 'add'" in caplog.text
        caplog.clear()
        with tilelang.env.scope(TILELANG_PRINT_ON_COMPILATION="0"):
            tilelang.compile(add_factory(scale=56.0))
        assert "compiling" not in caplog.text


def test_phases_of_one_name_add_up(capsys):
    phases = Phases("x")
    for _ in range(2):
        phases.add("passes", 0.001)
    assert phases.milliseconds == {"passes": pytest.approx(2.0)}
    with jit_phase("work", verbose=True):
        pass
    assert "tilelang: jit: work" in capsys.readouterr().err


def test_a_progress_bar_counts_several_jobs(capsys):
    assert run_parallel([lambda: 1, lambda: 2], title="tiles") == [1, 2]
    assert "tiles: 100%" in capsys.readouterr().err
    assert run_parallel([lambda: 1], title="tiles") == [1]
    assert capsys.readouterr().err == ""


def test_a_failure_stops_the_jobs_that_have_not_started():
    done = []

    def fail():
        raise ValueError("mine")

    def slow():
        time.sleep(0.05)
        done.append(1)

    with pytest.raises(ValueError, match="mine"):
        run_parallel([fail, *[slow] * 20], num_workers=1)
    assert len(done) <= 1


def test_ctrl_c_stops_the_jobs_that_have_not_started():
    done = []

    def press():
        os.kill(os.getpid(), signal.SIGINT)

    def slow():
        time.sleep(0.1)
        done.append(1)

    with pytest.raises(KeyboardInterrupt):
        run_parallel([press, *[slow] * 20], num_workers=1)
    assert len(done) <= 2
