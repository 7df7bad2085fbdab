"""CUDA targets: architectures, the ``code`` option, and the local device."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from tvm.target import Target

from tilelang.backend.target import TargetLike, UnknownTargetError
from tilelang.backend.target_config import kind_has_option, target_option

__all__ = [
    "CUTEDSL_KEY",
    "DEFAULT_ARCH",
    "detect_cuda_target",
    "is_cuda_target",
    "is_cutedsl_target",
    "local_arch",
    "normalize_cuda_target",
    "normalize_cutedsl_target",
    "target_arch",
    "target_codes",
]

# The newest architecture that is supported completely; meant when no device says otherwise.
DEFAULT_ARCH = "sm_90a"
CUTEDSL_KEY = "cutedsl"
_CUTEDSL_KEYS = ["cuda", "gpu", CUTEDSL_KEY]
# Where TVM has no option `code` (the native library stepped aside), it accepts this prefix.
_FALLBACK_CODE = "feature.code"
_ARCH = re.compile(r"sm_\d{2,3}[af]?")


def is_cuda_target(target: Target) -> bool:
    """Whether ``target`` is compiled by the CUDA backend (and not by CuTe DSL)."""
    return str(target.kind.name) == "cuda" and not _has_cutedsl_key(target)


def is_cutedsl_target(target: Target) -> bool:
    """Whether ``target`` is compiled by the CuTe DSL backend."""
    return str(target.kind.name) == "cuda" and _has_cutedsl_key(target)


def _has_cutedsl_key(target: Target) -> bool:
    return CUTEDSL_KEY in {str(key) for key in target.keys}


def target_arch(target: Target) -> str:
    """Return the architecture of a CUDA target, such as ``"sm_90a"``."""
    return str(target_option(target, "arch", DEFAULT_ARCH))


def target_codes(target: Target) -> tuple[str, ...]:
    """Return the real architectures to generate code for: option ``code``, else ``arch`` alone."""
    codes = target_option(target, "code")
    if codes is None:
        text = target_option(target, _FALLBACK_CODE)
        codes = str(text).split(",") if text is not None else [target_arch(target)]
    return tuple(str(code) for code in ([codes] if isinstance(codes, str) else codes))


def _has_device() -> bool:
    """Whether torch sees a CUDA device through its driver; a toolkit is not needed."""
    return torch.version.hip is None and torch.cuda.is_available()


def _detect_torch_cuda_arch() -> str | None:
    """Return the architecture of torch's current CUDA device, ``None`` without one."""
    if not _has_device():
        return None
    major, minor = torch.cuda.get_device_capability()
    # From Hopper on, the instructions that matter exist only in the `a` architectures.
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def local_arch() -> str:
    """Return the architecture of the local device, or :data:`DEFAULT_ARCH` without one."""
    return _detect_torch_cuda_arch() or DEFAULT_ARCH


def detect_cuda_target() -> TargetLike | None:
    """Return a target for torch's current CUDA device, ``None`` without one."""
    arch = _detect_torch_cuda_arch()
    return None if arch is None else {"kind": "cuda", "arch": arch}


def normalize_cuda_target(target: TargetLike) -> TargetLike | None:
    """Complete a CUDA target: the architecture if missing, ``code`` as a list.

    Raises
    ------
    UnknownTargetError
        An architecture is not of the form ``sm_90a``.
    """
    if target == "cuda":
        return {"kind": "cuda", "arch": local_arch()}
    if not isinstance(target, dict) or target.get("kind") != "cuda":
        return None
    config = {**target, "arch": target.get("arch") or local_arch()}
    codes = _codes(config.pop("code", None))
    for arch in (config["arch"], *codes):
        if not (isinstance(arch, str) and _ARCH.fullmatch(arch)):
            raise UnknownTargetError(
                f"{target!r} is not a valid target config dict: {arch!r} is no CUDA architecture; "
                "write for example 'sm_90a'"
            )
    if codes and kind_has_option("cuda", "code"):
        config["code"] = codes
    elif codes:
        config[_FALLBACK_CODE] = ",".join(codes)
    return config


def _codes(value: str | Sequence[str] | None) -> list[str]:
    if value is None:
        return []
    return value.split(",") if isinstance(value, str) else list(value)


def normalize_cutedsl_target(target: TargetLike) -> TargetLike | None:
    """Turn the alias ``"cutedsl"``, alone or as a kind, into kind ``cuda`` with that key."""
    if target == CUTEDSL_KEY:
        target = {"kind": CUTEDSL_KEY}
    if not isinstance(target, dict) or target.get("kind") != CUTEDSL_KEY:
        return None
    keys = list(dict.fromkeys([*target.get("keys", ()), *_CUTEDSL_KEYS]))
    return normalize_cuda_target({**target, "kind": "cuda", "keys": keys})
