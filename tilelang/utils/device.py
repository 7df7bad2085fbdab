"""What this machine offers."""

from __future__ import annotations

import os

__all__ = ["get_available_cpu_count", "get_current_device"]


def get_current_device() -> str:
    """torch's name of the device new tensors go to: ``"cuda:0"``, ``"mps"``, ... or ``"cpu"``."""
    import torch  # decides what a device is

    if torch.cuda.is_available():
        return f"cuda:{torch.cuda.current_device()}"
    if torch.backends.mps.is_available():
        return "mps"
    return "cpu"


def get_available_cpu_count() -> int:
    """Number of CPUs this process may use, by its affinity where the system knows one."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
