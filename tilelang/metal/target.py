"""Metal targets: the local Apple GPU and whether it has Metal 4's matrix instructions."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from typing import Any

from tvm.target import Target

from tilelang.backend.target import TargetLike

__all__ = [
    "METAL4_KEY",
    "detect_metal_target",
    "has_metal4_device",
    "is_metal_target",
    "normalize_metal_target",
    "supports_metal4",
]

METAL4_KEY = "metal4"
_FIRST_MACOS = 26
_FIRST_CHIP = 5


def is_metal_target(target: Target) -> bool:
    """Whether ``target`` is compiled by the Metal backend."""
    return str(target.kind.name) == "metal"


def supports_metal4(target: Target) -> bool:
    """Whether ``target`` may use Metal 4's matrix instructions."""
    return is_metal_target(target) and METAL4_KEY in {str(key) for key in target.keys}


def _is_apple_silicon() -> bool:
    return sys.platform == "darwin" and platform.machine() == "arm64"


def _chip_name() -> str:
    """Return the name of an Apple chip such as ``"Apple M4 Pro"``, empty if it cannot be read."""
    command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()


def has_metal4_device() -> bool:
    """Whether this machine runs macOS 26 or newer on an M5 or newer chip."""
    if not _is_apple_silicon():
        return False
    release = platform.mac_ver()[0].split(".")[0]
    chip = re.match(r"Apple M(\d+)", _chip_name())
    return (
        release.isdigit()
        and int(release) >= _FIRST_MACOS
        and chip is not None
        and int(chip.group(1)) >= _FIRST_CHIP
    )


def _local_target() -> dict[str, Any]:
    config: dict[str, Any] = {"kind": "metal"}
    if has_metal4_device():
        config["keys"] = ["metal", "gpu", METAL4_KEY]
    return config


def detect_metal_target() -> TargetLike | None:
    """Return a target for the local Apple GPU, ``None`` elsewhere."""
    return _local_target() if _is_apple_silicon() else None


def normalize_metal_target(target: TargetLike) -> TargetLike | None:
    """Complete a bare ``"metal"`` with what the local device has."""
    return _local_target() if target == "metal" else None
