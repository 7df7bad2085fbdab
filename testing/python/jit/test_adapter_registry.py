"""Execution adapters are found by name, from folders or registered."""

import subprocess
import sys

import pytest

from tilelang.errors import BackendError
from tilelang.jit import adapter as registry
from tilelang.jit.adapter import KernelAdapter, find_adapter, list_adapters, register_adapter


class DummyAdapter(KernelAdapter):
    name = "dummy"

    @classmethod
    def build(cls, artifact, compile_flags):
        raise NotImplementedError

    def load(self, bundle):
        raise NotImplementedError


@pytest.fixture
def clean_registry(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", {})


def test_every_folder_is_an_adapter_of_its_name():
    names = list_adapters()
    assert {"tvm_ffi", "cython", "interpreter"} <= set(names)
    for name in names:
        adapter = find_adapter(name)
        assert issubclass(adapter, KernelAdapter) and adapter.name == name


def test_listing_imports_no_adapter():
    code = (
        "import sys; from tilelang.jit.adapter import list_adapters; list_adapters(); "
        "print([m for m in sys.modules if m.startswith('tilelang.jit.adapter.')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['tilelang.jit.adapter.base']"


def test_an_adapter_registers_without_a_folder(clean_registry):
    register_adapter("dummy", lambda: DummyAdapter)
    assert find_adapter("dummy") is DummyAdapter
    assert "dummy" in list_adapters()


@pytest.mark.parametrize("name", ["tvm_ffi", "dummy"])
def test_a_taken_name_is_refused(clean_registry, name):
    register_adapter("dummy", lambda: DummyAdapter)
    with pytest.raises(BackendError, match="exists already"):
        register_adapter(name, lambda: DummyAdapter)


def test_a_name_can_be_taken_over_on_purpose(clean_registry):
    register_adapter("tvm_ffi", lambda: DummyAdapter, override=True)
    assert find_adapter("tvm_ffi") is DummyAdapter


def test_an_unknown_name_lists_what_exists():
    with pytest.raises(BackendError, match=r"named 'nope'.*cython, .*tvm_ffi"):
        find_adapter("nope")
