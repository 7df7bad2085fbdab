"""HIP targets: architectures, wavefront sizes, and the local device."""

from __future__ import annotations

import re
from typing import Any

import torch
from tvm.target import Target

from tilelang.backend.target import TargetLike
from tilelang.backend.target_config import has_kind, target_option
from tilelang.errors import TargetError

__all__ = [
    "DEFAULT_ARCH",
    "detect_hip_target",
    "is_hip_target",
    "local_arch",
    "normalize_hip_target",
    "normalize_rocm_arch",
    "rocm_warp_size_for_arch",
    "target_arch",
]

# Meant when no device says otherwise: the most common data-centre part.
DEFAULT_ARCH = "gfx942"
_TRIPLE = "amdgcn-amd-amdhsa-hcc"
_MAX_THREADS = 1024
_ARCH = re.compile(r"gfx[0-9a-f]{3,5}")


def normalize_rocm_arch(arch: str) -> str | None:
    """Return the plain name of an architecture, ``None`` if it is none.

    Example
    -------
    >>> normalize_rocm_arch("gfx1151:sramecc+:xnack-")
    'gfx1151'
    """
    plain = arch.split(":")[0]
    return plain if _ARCH.fullmatch(plain) else None


def rocm_warp_size_for_arch(arch: str) -> int:
    """Return the lanes of a wavefront: 64 up to ``gfx9``, 32 from ``gfx10`` on."""
    plain = normalize_rocm_arch(arch) or ""
    return 32 if plain.startswith(("gfx10", "gfx11", "gfx12")) and len(plain) > 6 else 64


def is_hip_target(target: Target) -> bool:
    """Whether ``target`` is a HIP target, natively or as kind ``rocm`` with key ``hip``."""
    kind = str(target.kind.name)
    return kind == "hip" or (kind == "rocm" and "hip" in {str(key) for key in target.keys})


def target_arch(target: Target) -> str | None:
    """Return the architecture of a HIP target without feature suffixes."""
    return normalize_rocm_arch(str(target_option(target, "mcpu", "")))


def local_arch() -> str | None:
    """Return the architecture of torch's current ROCm device, ``None`` without one."""
    if torch.version.hip is None or not torch.cuda.is_available():
        return None
    return normalize_rocm_arch(torch.cuda.get_device_properties().gcnArchName)


def detect_hip_target() -> TargetLike | None:
    """Return a target for torch's current ROCm device, ``None`` without one."""
    arch = local_arch()
    return None if arch is None else {"kind": "hip", "mcpu": arch}


def normalize_hip_target(target: TargetLike) -> TargetLike | None:
    """Complete a HIP target and give it the form the installed TVM can hold.

    TVM has no kind ``hip`` of its own. Where the native library could not add it, the target is
    kind ``rocm`` with the key ``hip``; :func:`~tilelang.backend.target.target_kind` reports
    ``hip`` for both.

    Raises
    ------
    TargetError
        ``mcpu`` is not of the form ``gfx942``.
    """
    if target == "hip":
        target = {"kind": "hip"}
    if not isinstance(target, dict) or target.get("kind") != "hip":
        return None
    given = str(target.get("mcpu") or local_arch() or DEFAULT_ARCH)
    if normalize_rocm_arch(given) is None:
        raise TargetError(f"{given!r} is no ROCm architecture; write for example mcpu='gfx942'")
    config: dict[str, Any] = {
        "mtriple": _TRIPLE,
        "thread_warp_size": rocm_warp_size_for_arch(given),
        "max_threads_per_block": _MAX_THREADS,
        "max_num_threads": _MAX_THREADS,
        **target,
        "mcpu": given,
    }
    if not has_kind("hip"):
        config["kind"] = "rocm"
        config["keys"] = list(dict.fromkeys(["hip", "rocm", "gpu", *target.get("keys", ())]))
    return config
