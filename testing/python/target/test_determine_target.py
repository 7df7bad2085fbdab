"""Targets: what is accepted, what is completed, what ``auto`` means."""

import pytest
import torch
from tvm.target import Target

from tilelang.backend import target as targets
from tilelang.backend.target import (
    auto_detect_target,
    determine_target,
    list_target_detectors,
    register_target_detector,
    register_target_normalizer,
    target_for_device,
    target_kind,
)
from tilelang.backend.target_text import parse_target_text
from tilelang.cpu import target as cpu
from tilelang.cuda import target as cuda
from tilelang.env import env
from tilelang.errors import TargetError
from tilelang.metal import target as metal
from tilelang.rocm import target as rocm


@pytest.fixture
def detectors(monkeypatch):
    """An empty table of detectors, restored after the test."""
    monkeypatch.setattr(targets, "_TARGET_DETECTORS", {})
    monkeypatch.setattr(targets, "_DETECTOR_RANKS", {})


@pytest.fixture
def no_device(monkeypatch):
    """A machine on which no detector finds a device."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(metal, "_is_apple_silicon", lambda: False)


@pytest.fixture
def rocm_device(monkeypatch):
    """A machine with a ROCm build of torch and one gfx1151."""

    class Properties:
        gcnArchName = "gfx1151:sramecc+:xnack-"

    monkeypatch.setattr(torch.version, "hip", "6.4")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda: Properties)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cuda", "cuda"),
        ("hip -mcpu=gfx950", {"kind": "hip", "mcpu": "gfx950"}),
        ("cuda --arch=sm_90a -max_num_threads=512", {"arch": "sm_90a", "max_num_threads": 512}),
        ("llvm -mattr=+avx2,+fma -opt-level=3", {"mattr": ["+avx2", "+fma"], "opt-level": 3}),
        ("cpu -mattr=+avx2", {"kind": "cpu", "mattr": ["+avx2"]}),
        ("llvm -fast-math -fast-math-nnan=0", {"fast-math": True, "fast-math-nnan": False}),
        ('{"kind": "cuda", "code": ["sm_90a"]}', {"kind": "cuda", "code": ["sm_90a"]}),
    ],
)
def test_target_text_is_parsed_by_declared_option_types(text, expected):
    parsed = parse_target_text(text)
    if isinstance(expected, dict):
        assert {key: parsed[key] for key in expected} == expected
    else:
        assert parsed == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty string"),
        ("hip mcpu=gfx950", "is not a flag"),
        ("hip -mcpu=gfx950 -mcpu=gfx942", "gives 'mcpu' twice"),
        ("llvm -opt-level=high", "wants an integer"),
        ("llvm -fast-math=maybe", "wants true or false"),
        ("{kind: 'cuda'}", "Use JSON syntax"),
        ("llvm -mcpu='x", "No closing quotation"),
    ],
)
def test_malformed_target_text_is_refused(text, message):
    with pytest.raises(TargetError, match=message):
        determine_target(text)


def test_bare_cpu_kinds_get_the_local_machine():
    for name in ("cpu", "llvm"):
        target = determine_target(name, return_object=True)
        assert target.kind.name == "llvm"
        assert target.attrs["mcpu"] == cpu.local_cpu_target()["mcpu"]


def test_explicit_llvm_targets_stay_as_given():
    assert determine_target({"kind": "llvm"}) == {"kind": "llvm"}
    target = Target("llvm")
    assert determine_target(target) is target
    assert determine_target("cpu -mcpu=znver4") == {"kind": "llvm", "mcpu": "znver4"}


def test_native_means_this_machine_also_in_a_target_object():
    local = cpu.local_cpu_target()
    assert determine_target("llvm -mcpu=native") == local
    target = determine_target(Target({"kind": "llvm", "mcpu": "native"}), return_object=True)
    assert target.attrs["mcpu"] == local["mcpu"]


@pytest.mark.parametrize(
    ("given", "hint"),
    [("llvm -mcpu=znver44", "did you mean.* znver4"), ({"kind": "cpu", "mcpu": "?"}, "'native'")],
)
def test_processor_llvm_does_not_know_is_refused(given, hint):
    with pytest.raises(TargetError, match=rf"LLVM knows no processor.*{hint}"):
        determine_target(given)


def test_processor_is_checked_for_the_given_triple():
    config = {"kind": "llvm", "mcpu": "apple-m1", "mtriple": "arm64-apple-macos"}
    assert determine_target(config) == config
    with pytest.raises(TargetError, match="for x86_64-linux-gnu"):
        determine_target({**config, "mtriple": "x86_64-linux-gnu"})


def test_features_a_virtual_machine_masks_are_switched_off():
    cpuinfo = "flags\t\t: fpu sse4_2 avx avx2 fma bmi1 bmi2 abm avx512f avx512_bf16\n"
    implied = {"avx", "avx2", "fma", "bmi", "lzcnt", "avx512f", "avx512bf16", "avx512fp16"}
    assert cpu._masked_features(implied, cpuinfo) == ["avx512fp16"]
    assert cpu._masked_features({"neon"}, "Features : neon\n") == []


def test_bare_cuda_gets_the_local_or_the_default_arch(monkeypatch):
    monkeypatch.setattr(cuda, "_detect_torch_cuda_arch", lambda: "sm_80")
    assert determine_target("cuda", return_object=True).attrs["arch"] == "sm_80"
    monkeypatch.setattr(cuda, "_detect_torch_cuda_arch", lambda: None)
    assert determine_target("cuda", return_object=True).attrs["arch"] == cuda.DEFAULT_ARCH


@pytest.mark.parametrize("code", ["sm_100a,sm_103a", ["sm_100a", "sm_103a"]])
def test_cuda_code_is_a_string_or_a_list(code):
    config = {"kind": "cuda", "arch": "sm_100f", "code": code}
    target = determine_target(config, return_object=True)
    assert cuda.target_arch(target) == "sm_100f"
    assert cuda.target_codes(target) == ("sm_100a", "sm_103a")
    restored = Target(target.export())
    assert cuda.target_codes(restored) == ("sm_100a", "sm_103a")


def test_cuda_code_defaults_to_the_arch():
    target = determine_target("cuda -arch=sm_80", return_object=True)
    assert cuda.target_codes(target) == ("sm_80",)


@pytest.mark.parametrize(
    "config",
    [{"kind": "cuda", "arch": "compute_90"}, {"kind": "cuda", "arch": "sm_90a", "code": "90"}],
)
def test_virtual_or_malformed_cuda_arch_is_refused(config):
    with pytest.raises(AssertionError, match="valid target config dict"):
        determine_target(config, return_object=True)


def test_cutedsl_is_cuda_with_a_key():
    for given in ("cutedsl", {"kind": "cutedsl", "arch": "sm_100a"}):
        target = determine_target(given, return_object=True)
        assert cuda.is_cutedsl_target(target) and not cuda.is_cuda_target(target)
    assert cuda.target_arch(target) == "sm_100a"


@pytest.mark.parametrize(
    ("mcpu", "lanes"), [("gfx942", 64), ("gfx90a", 64), ("gfx1030", 32), ("gfx1200", 32)]
)
def test_hip_target_knows_its_wavefront_and_thread_limit(mcpu, lanes):
    target = determine_target({"kind": "hip", "mcpu": mcpu}, return_object=True)
    assert target_kind(target) == "hip" and rocm.is_hip_target(target)
    assert rocm.target_arch(target) == mcpu
    assert int(target.attrs["thread_warp_size"]) == lanes
    assert int(target.attrs["max_threads_per_block"]) == 1024


def test_hip_without_the_native_kind_is_rocm_with_a_key(monkeypatch):
    monkeypatch.setattr(rocm, "has_kind", lambda kind: False)
    target = determine_target("hip -mcpu=gfx950", return_object=True)
    assert target.kind.name == "rocm"
    assert target_kind(target) == "hip" and rocm.is_hip_target(target)


def test_rocm_arch_names_lose_their_feature_suffix():
    assert rocm.normalize_rocm_arch("gfx1151:sramecc+:xnack-") == "gfx1151"
    assert rocm.normalize_rocm_arch("sm_90") is None
    assert rocm.normalize_rocm_arch("") is None


def test_wrong_hip_arch_is_refused():
    with pytest.raises(TargetError, match="is no ROCm architecture"):
        determine_target("hip -mcpu=sm_90")


def test_metal4_needs_system_and_chip(monkeypatch):
    monkeypatch.setattr(metal, "_is_apple_silicon", lambda: True)
    monkeypatch.setattr(metal, "_chip_name", lambda: "Apple M5 Pro")
    monkeypatch.setattr(metal.platform, "mac_ver", lambda: ("26.1", ("", "", ""), "arm64"))
    assert metal.supports_metal4(determine_target("metal", return_object=True))
    monkeypatch.setattr(metal, "_chip_name", lambda: "Apple M4")
    assert not metal.supports_metal4(determine_target("metal", return_object=True))
    monkeypatch.setattr(metal.platform, "mac_ver", lambda: ("15.5", ("", "", ""), "arm64"))
    assert not metal.has_metal4_device()


def test_detectors_are_tried_in_the_documented_order():
    assert list_target_detectors()[:3] == ("cuda", "hip", "metal")


def test_auto_takes_the_first_detector_that_finds_a_device(detectors):
    register_target_detector("nothing", lambda: None)
    register_target_detector("something", lambda: {"kind": "llvm", "mcpu": "znver4"})
    register_target_detector("earlier", lambda: None, rank=1)
    assert list_target_detectors() == ("earlier", "nothing", "something")
    assert auto_detect_target() == {"kind": "llvm", "mcpu": "znver4"}


def test_auto_falls_back_to_the_local_cpu(no_device):
    assert determine_target("auto") == cpu.local_cpu_target()
    assert determine_target(None) == cpu.local_cpu_target()


def test_auto_prefers_the_enclosing_target_then_the_environment(no_device):
    with env.scope(TILELANG_DEFAULT_TARGET="c"):
        assert determine_target("auto", return_object=True).kind.name == "c"
        with Target("webgpu"):
            assert determine_target("auto", return_object=True).kind.name == "webgpu"


def test_default_target_from_the_environment_may_be_json_or_flags():
    for text in ('{"kind": "hip", "mcpu": "gfx950"}', "hip -mcpu=gfx950"):
        with env.scope(TILELANG_DEFAULT_TARGET=text):
            assert rocm.target_arch(determine_target(return_object=True)) == "gfx950"


def test_rocm_build_of_torch_is_hip_and_not_cuda(rocm_device):
    assert cuda.detect_cuda_target() is None
    target = determine_target("auto", return_object=True)
    assert target_kind(target) == "hip"
    assert rocm.target_arch(target) == "gfx1151"
    assert target_for_device("cuda") == {"kind": "hip", "mcpu": "gfx1151"}


def test_cuda_device_gives_the_architecture_with_its_features(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    assert cuda.detect_cuda_target() == {"kind": "cuda", "arch": "sm_90a"}
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 6))
    assert target_for_device("cuda") == {"kind": "cuda", "arch": "sm_86"}


def test_cpu_tensors_mean_the_local_cpu():
    assert target_for_device("cpu") == cpu.local_cpu_target()


def test_device_without_backend_or_driver_is_refused(no_device):
    with pytest.raises(TargetError, match=r"device 'xla'; known devices: cpu, cuda, mps"):
        target_for_device("xla")
    with pytest.raises(TargetError, match="device 'mps' was not found"):
        target_for_device("mps")


@pytest.mark.parametrize("given", [42, ["cuda"], b"cuda"])
def test_a_target_of_the_wrong_type_is_refused(given):
    with pytest.raises(TargetError, match="a string, a dict or a"):
        determine_target(given)


def test_unknown_kind_suggests_the_nearest():
    with pytest.raises(TargetError, match="Did you mean 'llvm'"):
        determine_target("lvm")
    with pytest.raises(TargetError, match="Kinds: c, "):
        determine_target({"kind": "quantum"})


def test_unknown_option_is_refused_with_the_options_name():
    with pytest.raises(AssertionError, match="mcpuu"):
        determine_target({"kind": "llvm", "mcpuu": "znver4"})


def test_a_name_registers_one_rule(detectors):
    register_target_detector("unit", lambda: None)
    with pytest.raises(TargetError, match="detector 'unit' is already registered"):
        register_target_detector("unit", lambda: "llvm")
    with pytest.raises(TargetError, match="needs a name"):
        register_target_normalizer("", lambda target: None)
    with pytest.raises(TargetError, match="normalizer 'cuda' is already registered"):
        register_target_normalizer("cuda", lambda target: None)
    register_target_detector("unit", lambda: "llvm", override=True)
    assert auto_detect_target() == "llvm"


def test_no_detector_and_no_fallback_is_an_error(detectors, monkeypatch):
    monkeypatch.setattr(targets, "_FALLBACKS", [])
    with pytest.raises(TargetError, match="no device found"):
        auto_detect_target()
