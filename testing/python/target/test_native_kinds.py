"""Target kind ``hip`` and option ``code`` of kind ``cuda``, and how their registration gives up."""

import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import tvm_ffi
from tvm.target import Target

from tilelang import _native

STATUS = _native.target_kinds_status()
needs_hip = pytest.mark.skipif(not STATUS.has_hip, reason=f"kind hip: {STATUS.hip}")
needs_code = pytest.mark.skipif(not STATUS.has_code, reason=f"option code: {STATUS.code}")


def test_the_pinned_tvm_is_understood_on_linux():
    if sys.platform != "linux":
        pytest.skip("the registry has another layout here")
    assert STATUS == ("registered", "registered")


def test_registration_happens_once():
    register = tvm_ffi.get_global_func("tl.target.register_kinds")
    options = tvm_ffi.get_global_func("target.ListTargetKindOptionsFromName")
    before = dict(options("cuda"))
    assert dict(register()) == STATUS._asdict()
    assert dict(options("cuda")) == before


# -- hip --------------------------------------------------------------------------------------


@needs_hip
def test_hip_has_the_real_limits():
    target = Target({"kind": "hip", "mcpu": "gfx942"})
    assert target.kind.name == "hip"
    assert list(target.keys) == ["hip", "rocm", "gpu"]
    assert target.attrs["max_threads_per_block"] == 1024
    assert target.attrs["max_num_threads"] == 1024
    assert target.attrs["max_shared_memory_per_block"] == 65536


@needs_hip
@pytest.mark.parametrize(
    ("arch", "lanes"),
    [("gfx906", 64), ("gfx90a", 64), ("gfx950", 64), ("gfx1030", 32), ("gfx1151", 32),
     ("gfx1201", 32)],
)  # fmt: skip
def test_hip_wave_size_follows_the_architecture(arch, lanes):
    assert Target({"kind": "hip", "mcpu": arch}).attrs["thread_warp_size"] == lanes


@needs_hip
def test_hip_options_can_be_overridden():
    target = Target({"kind": "hip", "mcpu": "gfx1100", "thread_warp_size": 64})
    assert target.attrs["thread_warp_size"] == 64


@needs_hip
def test_hip_target_round_trips():
    target = Target({"kind": "hip", "mcpu": "gfx942"}, host="llvm")
    for other in (Target(str(target)), Target(target.export())):
        assert tvm_ffi.structural_equal(target, other)
    assert str(target.host.kind.name) == "llvm"


@needs_hip
def test_hip_works_as_current_target():
    with Target("hip") as target:
        assert Target.current().same_as(target)


@needs_hip
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"code": "gfx942"}, ValueError, "Unknown config option 'code'"),
        ({"max_num_threads": "many"}, (TypeError, ValueError), "max_num_threads"),
    ],
)
def test_hip_refuses_unknown_and_wrong_options(options, error, message):
    with pytest.raises(error, match=message):
        Target({"kind": "hip", "mcpu": "gfx942", **options})


@needs_hip
def test_rocm_is_left_as_it_was():
    target = Target({"kind": "rocm", "mcpu": "gfx942"})
    assert target.attrs["max_threads_per_block"] == 256
    assert "hip" not in list(target.keys)


# -- code -------------------------------------------------------------------------------------


@needs_code
@pytest.mark.parametrize("code", ["sm_90a", ["sm_90a"], ["sm_90a", "compute_90"], []])
def test_code_takes_a_string_or_a_list(code):
    target = Target({"kind": "cuda", "arch": "sm_90a", "code": code})
    stored = target.attrs["code"]
    assert (stored if isinstance(code, str) else list(stored)) == code
    assert tvm_ffi.structural_equal(target, Target(target.export()))


@needs_code
@pytest.mark.parametrize("code", [90, 9.0, [90], {"a": 1}])
def test_code_refuses_other_types(code):
    with pytest.raises((TypeError, ValueError), match="'code'.*string or a list of strings"):
        Target({"kind": "cuda", "arch": "sm_90a", "code": code})


@needs_code
def test_cuda_without_code_is_unchanged():
    target = Target({"kind": "cuda", "arch": "sm_90a"})
    assert "code" not in target.attrs
    with pytest.raises(ValueError, match="Unknown config option 'codes'"):
        Target({"kind": "cuda", "arch": "sm_90a", "codes": "sm_90a"})


# -- stepping aside ---------------------------------------------------------------------------


def register_in_subprocess(prelude=""):
    """Load the native library in a process where TVM was not imported, and register."""
    code = f"""
    import ctypes, json, sys
    sys.modules["torch"] = None  # not needed, and slow to import
    import tvm_ffi
    {textwrap.indent(textwrap.dedent(prelude), "    ").strip()}
    ctypes.CDLL({str(_native.library_path())!r})
    print(json.dumps(dict(tvm_ffi.get_global_func("tl.target.register_kinds")())))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_without_tvm_nothing_is_registered():
    status = register_in_subprocess()
    assert status["hip"] == status["code"]
    assert "does not export its target-kind registry" in status["hip"]


# A registry with the right reflection whose contents are wrong in a chosen way.
FAKE_TVM = r"""
#include <cstdlib>
#include <cstring>
#include <new>
#include <tvm/ffi/reflection/registry.h>
#include "target_kind_layout.h"
using namespace tilelang::target;
namespace ffi = tvm::ffi;

struct FakeKind : public KindRecord {
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("target.TargetKind", FakeKind, ffi::Object);
};
TVM_FFI_STATIC_INIT_BLOCK() {
  auto kind = ffi::reflection::ObjectDef<FakeKind>();
  kind.def_ro("name", &FakeKind::name).def_ro("default_keys", &FakeKind::default_keys);
  if (std::getenv("FAKE_MODE") != std::string("other_layout"))
    kind.def_ro("default_device_type", &FakeKind::default_device_type);
  ffi::reflection::GlobalDef()
      .def("target.ListTargetKinds",
           [] { return ffi::Array<ffi::String>{"llvm", "cuda", "rocm"}; })
      .def("target.ListTargetKindOptionsFromName",
           [](ffi::String) { return ffi::Map<ffi::String, ffi::String>{{"kind", "str"}}; });
}

extern "C" __attribute__((visibility("default"))) void*
_ZN3tvm18TargetKindRegEntry13RegisterOrGetERKNS_3ffi6StringE(const ffi::String& name) {
  std::string mode = std::getenv("FAKE_MODE");
  auto* entry = new RegistryEntry();
  auto object = ffi::make_object<FakeKind>();
  FakeKind* kind = object.get();
  kind->name = entry->name = name;
  KindOption option;
  option.key = mode == "other_key" ? "Kind" : "kind";
  option.type_name = mode == "other_type" ? "int" : "str";
  kind->schema.options.push_back(option);
  kind->schema.index_of["kind"] = mode == "other_index" ? 1 : 0;
  entry->kind = object;
  uintptr_t wild[3] = {0x5a5a5a5a5a50, 0x5a5a5a5a5a50 + sizeof(KindOption), 0x7a5a5a5a5a50};
  if (mode == "wild_options") std::memcpy(&kind->schema.options, wild, sizeof(wild));
  if (mode == "odd_options") wild[1] += 8, std::memcpy(&kind->schema.options, wild, sizeof(wild));
  if (mode == "wild_entry") std::memset(static_cast<void*>(entry), 0x5a, sizeof(*entry));
  if (mode == "other_name") entry->name = "something else";
  return entry;
}
"""

SOURCES = Path(__file__).parents[3] / "src" / "backend" / "common"


@pytest.fixture(scope="module")
def fake_tvm(tmp_path_factory):
    """A library that looks like TVM's compiler but is not."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None or sys.platform != "linux" or not SOURCES.is_dir():
        pytest.skip("needs Linux, a C++ compiler and the sources")
    folder = tmp_path_factory.mktemp("fake")
    (folder / "fake.cc").write_text(FAKE_TVM)
    library = folder / "libtvm_compiler.so"
    info = tvm_ffi.libinfo
    include = [info.find_include_path(), info.find_dlpack_include_path(), str(SOURCES)]
    flags = ["-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-w"]
    flags += [f"-I{folder}" for folder in include] + ["-Wl,-soname,libtvm_compiler.so"]
    runtime = info.find_libtvm_ffi()
    command = [compiler, *flags, str(folder / "fake.cc"), runtime, "-o", str(library)]
    subprocess.run(command, check=True)
    return library


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("other_layout", "another layout"),
        ("wild_entry", "registry entry of kind 'llvm' is not understood"),
        ("other_name", "registry entry of kind 'llvm' is not understood"),
        ("wild_options", "option table of kind 'llvm' is not understood"),
        ("odd_options", "option table of kind 'llvm' is not understood"),
        ("other_key", "option table of kind 'llvm' is not understood"),
        ("other_type", "option table of kind 'llvm' is not understood"),
        ("other_index", "option index of kind 'llvm' is not understood"),
    ],
)
def test_a_tvm_that_differs_is_left_alone(fake_tvm, mode, reason):
    prelude = f"import os; os.environ['FAKE_MODE'] = {mode!r}; ctypes.CDLL({str(fake_tvm)!r})"
    status = register_in_subprocess(prelude)
    assert reason in status["hip"]
    assert reason in status["code"]
