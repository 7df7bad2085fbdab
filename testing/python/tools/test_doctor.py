"""The doctor: reports what is there, runs kernels, and fails exactly when something is broken."""

from __future__ import annotations

import importlib
import json

import pytest

from tilelang.__main__ import main
from tilelang.env import env
from tilelang.jit import compiler
from tilelang.tools import doctor


def findings(section, run_kernels=False):
    return {f.name: f for f in doctor.diagnose(run_kernels) if f.section == section}


def test_every_section_is_reported():
    sections = {f.section for f in doctor.diagnose(run_kernels=False)}
    assert sections == {"machine", "packages", "cuda", "backends", "settings"}


def test_packages_have_versions():
    found = findings("packages")
    assert found["torch"].status == "ok"
    assert found["torch"].detail[0].isdigit()
    assert found["native library"].status == "ok"


def test_the_cpu_works_and_planned_backends_say_why_not():
    found = findings("backends")
    assert found["cpu"].status == "ok"
    assert found["cpu / tvm_ffi"].status == "ok"
    assert {"cuda", "rocm", "metal", "webgpu"} <= set(found)
    for finding in found.values():
        assert finding.detail


def test_kernels_run_on_both_cpu_targets():
    found = findings("kernels", run_kernels=True)
    assert {"llvm / tvm_ffi", "c / cython", "c / tvm_ffi"} <= set(found)
    assert all(f.status == "ok" for f in found.values()), found


def test_the_command_prints_tables_and_succeeds(capsys):
    assert main(["doctor", "--no-kernel"]) == 0
    printed = capsys.readouterr().out
    assert "nothing is broken" in printed
    assert "packages" in printed


def test_json_lines(capsys):
    assert main(["doctor", "--no-kernel", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"section", "name", "status", "detail"} == set(rows[0])


def test_environment_variables_that_are_set_are_listed(monkeypatch):
    monkeypatch.setenv("TILELANG_VERBOSE", "1")
    assert findings("settings")["TILELANG_VERBOSE"].detail.startswith("1 ")


def test_a_cache_that_is_off_is_no_error():
    with env.scope(TILELANG_DISABLE_CACHE="1"):
        assert findings("settings")["kernel cache"].status == "unavailable"


def test_a_cache_that_cannot_be_written_is_broken(tmp_path, capsys):
    blocker = tmp_path / "file"
    blocker.write_text("")
    with env.scope(TILELANG_CACHE_DIR=blocker / "cache"):
        assert main(["doctor", "--no-kernel"]) == 1
    assert "broken: kernel cache" in capsys.readouterr().out


def test_a_compile_that_fails_is_broken(monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("no\nluck")

    monkeypatch.setattr(compiler, "compile", fail)
    found = findings("kernels", run_kernels=True)
    assert {f.status for f in found.values()} == {"broken"}
    assert found["llvm / tvm_ffi"].detail == "RuntimeError: no luck"


def test_a_wrong_result_is_broken(monkeypatch):
    class Wrong:
        def __call__(self, a, b):
            return a + b

        def get_profiler(self):
            return type("P", (), {"device": "cpu"})()

    monkeypatch.setattr(compiler, "compile", lambda *a, **k: Wrong())
    found = findings("kernels", run_kernels=True)
    assert "results are wrong" in found["llvm / tvm_ffi"].detail


def test_a_missing_native_library_is_broken(monkeypatch):
    real = importlib.import_module

    def refuse(name, *args):
        if name == "tilelang._native":
            raise ImportError("libtilelang_native is not built")
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", refuse)
    assert findings("packages")["native library"].status == "broken"


def test_unknown_options_are_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["doctor", "--cure"])
    assert stopped.value.code == 2
    assert "--cure" in capsys.readouterr().err
