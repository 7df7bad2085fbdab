"""tilelang.env: precedence of values, parsing, refusal of nonsense."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tilelang.env as env_module
from tilelang.env import (
    CacheState,
    Environment,
    EnvVar,
    EnvVarError,
    env,
    resolve_pass_profile_threshold_ms,
)


@pytest.fixture(autouse=True)
def _unforced_variables(monkeypatch):
    """Start every test from defaults and restore whatever was forced before it."""
    saved = {name: var._forced_value for name, var in Environment.variables().items()}
    for name, var in Environment.variables().items():
        var._forced_value = None
        for key in (name, *var.aliases):
            monkeypatch.delenv(key, raising=False)
    yield
    for name, var in Environment.variables().items():
        var._forced_value = saved[name]


def test_default_then_environment_then_assignment(monkeypatch):
    assert env.TILELANG_PRINT_ON_COMPILATION == "1"
    monkeypatch.setenv("TILELANG_PRINT_ON_COMPILATION", "0")
    assert env.TILELANG_PRINT_ON_COMPILATION == "0"
    env.TILELANG_PRINT_ON_COMPILATION = "1"
    assert env.TILELANG_PRINT_ON_COMPILATION == "1"
    del env.TILELANG_PRINT_ON_COMPILATION
    assert env.TILELANG_PRINT_ON_COMPILATION == "0"


def test_source_names_where_a_value_comes_from(monkeypatch):
    variable = Environment.TILELANG_VERBOSE
    assert isinstance(variable, EnvVar)
    assert variable.source() == "default"
    monkeypatch.setenv("TILELANG_VERBOSE", "1")
    assert variable.source() == "environment"
    env.TILELANG_VERBOSE = 0
    assert variable.source() == "assigned"


def test_assignment_takes_bools_numbers_and_paths(tmp_path):
    env.TILELANG_VERBOSE = True
    env.TILELANG_NUM_THREADS = 3
    env.TILELANG_CACHE_DIR = tmp_path
    assert env.get_default_verbose() is True
    assert env.get_num_threads() == 3
    assert env.cache_dir() == tmp_path


def test_module_and_object_show_the_same_values():
    env_module.TILELANG_VERBOSE = "1"
    assert env.TILELANG_VERBOSE == "1"
    assert env_module.TILELANG_VERBOSE == "1"
    assert env_module.get_default_verbose() is True
    assert "TILELANG_VERBOSE" not in vars(env_module)


def test_descriptors_are_found_on_the_class():
    descriptor = type(env).__dict__["TILELANG_TMP_DIR"]
    descriptor._forced_value = "/somewhere"
    assert env.TILELANG_TMP_DIR == "/somewhere"


def test_documented_cache_directory(monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    assert Path("/home/someone/.tilelang/cache") == env.cache_dir()


def test_tmp_dir_follows_the_cache_dir(monkeypatch, tmp_path):
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path / "a"))
    assert os.path.join(str(tmp_path / "a"), "tmp") == env.TILELANG_TMP_DIR
    env.TILELANG_CACHE_DIR = str(tmp_path / "b")
    assert os.path.join(str(tmp_path / "b"), "tmp") == env.TILELANG_TMP_DIR
    monkeypatch.setenv("TILELANG_TMP_DIR", str(tmp_path / "own"))
    assert str(tmp_path / "own") == env.TILELANG_TMP_DIR


def test_home_is_expanded_in_paths(monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    env.TILELANG_CACHE_DIR = "~/x"
    assert Path("/home/someone/x") == env.cache_dir()
    assert Path("/home/someone/x/tmp") == env.tmp_dir()


def test_aliases_are_second_choice(monkeypatch):
    monkeypatch.setenv("CUDA_PATH", "/opt/a")
    assert env.CUDA_HOME == "/opt/a"
    monkeypatch.setenv("CUDA_HOME", "/opt/b")
    assert env.CUDA_HOME == "/opt/b"


def test_scope_restores_the_previous_state():
    env.TILELANG_VERBOSE = "1"
    with env.scope(TILELANG_VERBOSE="0", TILELANG_INTERPRET=True):
        assert not env.get_default_verbose()
        assert env.should_interpret()
    assert env.get_default_verbose()
    assert Environment.TILELANG_INTERPRET._forced_value is None


def test_scope_restores_after_an_exception():
    with pytest.raises(KeyError), env.scope(TILELANG_VERBOSE="1"):
        raise KeyError
    assert env.TILELANG_VERBOSE == "0"


def test_cache_is_on_unless_the_variable_or_the_process_says_no():
    assert env.is_cache_enabled()
    CacheState.disable()
    try:
        assert not env_module.is_cache_enabled()
    finally:
        CacheState.enable()
    env.TILELANG_DISABLE_CACHE = "1"
    assert CacheState.is_enabled()
    assert not env.is_cache_enabled()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("auto", "auto"), ("", "auto"), ("llvm", "llvm"), ('{"kind": "c"}', {"kind": "c"})],
)
def test_default_target(text, expected):
    env.TILELANG_DEFAULT_TARGET = text
    assert env.get_default_target() == expected
    assert env_module.get_default_target() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, 0.0), ("", 0.0), ("   ", 0.0), ("0", 0.0), ("1.5", 1.5), (" 2.25 ", 2.25)],
)
def test_pass_profile_threshold(monkeypatch, text, expected):
    if text is not None:
        monkeypatch.setenv("TILELANG_PASS_PROFILE_THRESHOLD_MS", text)
    assert env.get_pass_profile_threshold_ms() == expected


def test_explicit_zero_threshold_overrides_the_environment():
    assert resolve_pass_profile_threshold_ms({"k": 0}, "k", lambda: 10.0) == 0.0
    assert resolve_pass_profile_threshold_ms({}, "k", lambda: 10.0) == 10.0
    env.TILELANG_PASS_PROFILE_THRESHOLD_MS = "7"
    assert resolve_pass_profile_threshold_ms(None) == 7.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", set()), ("1", {"terminal"}), ("html", {"html"}), ("both", {"terminal", "html"})],
)
def test_pass_diff_outputs(text, expected):
    env.TILELANG_PASS_DIFF = text
    assert env.pass_diff_modes() == expected


def test_every_variable_has_a_description_and_a_default():
    for name, variable in Environment.variables().items():
        assert variable.doc, name
        assert isinstance(getattr(env, name), str)


@pytest.mark.parametrize("text", ["-1", "invalid", "nan", "inf", "-inf"])
def test_pass_profile_threshold_refuses(monkeypatch, text):
    monkeypatch.setenv("TILELANG_PASS_PROFILE_THRESHOLD_MS", text)
    with pytest.raises(ValueError, match="must be a finite non-negative number"):
        env.get_pass_profile_threshold_ms()


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("TILELANG_VERBOSE", "maybe", env.get_default_verbose),
        ("TILELANG_NUM_THREADS", "0", env.get_num_threads),
        ("TILELANG_NUM_THREADS", "two", env.get_num_threads),
        ("TILELANG_CACHE_MAX_BYTES", "-1", env.cache_max_bytes),
        ("TILELANG_DEFAULT_TARGET", "{kind: c}", env.get_default_target),
        ("TILELANG_PASS_DIFF", "loud", env.pass_diff_modes),
        ("TILELANG_AUTO_TUNING_CPU_UTILITIES", "2", env.get_autotune_cpu_utilities),
        ("TILELANG_COMPILE_TIMEOUT_SECONDS", "soon", env.get_compile_timeout_seconds),
    ],
)
def test_malformed_values_name_the_variable(name, text, read):
    setattr(env, name, text)
    with pytest.raises(EnvVarError, match=name):
        read()


def test_misspelt_variables_are_refused_with_close_names():
    with pytest.raises(AttributeError, match="did you mean TILELANG_VERBOSE"):
        env.TILELANG_VERBOS = "1"
    with pytest.raises(AttributeError, match="no variable 'TILELANG_X'"), env.scope(TILELANG_X="1"):
        pass
