"""Helpers for tests of kernels. Needs pytest (``pip install tilelang[test]``)."""

from __future__ import annotations

import inspect
import sys

import pytest

from tilelang.testing.perf import process_func, regression
from tilelang.testing.requirements import (
    Requirement,
    requires_cdna,
    requires_cuda,
    requires_cuda_compute_version,
    requires_cuda_compute_version_eq,
    requires_cuda_compute_version_ge,
    requires_cuda_compute_version_gt,
    requires_cuda_compute_version_le,
    requires_cuda_compute_version_lt,
    requires_cuda_or_cdna,
    requires_gfx950,
    requires_llvm,
    requires_metal,
    requires_package,
    requires_rocm,
)
from tilelang.testing.seeds import set_random_seed
from tilelang.utils.tensor import torch_assert_close

__all__ = [
    "Requirement",
    "main",
    "process_func",
    "regression",
    "requires_cdna",
    "requires_cuda",
    "requires_cuda_compute_version",
    "requires_cuda_compute_version_eq",
    "requires_cuda_compute_version_ge",
    "requires_cuda_compute_version_gt",
    "requires_cuda_compute_version_le",
    "requires_cuda_compute_version_lt",
    "requires_cuda_or_cdna",
    "requires_gfx950",
    "requires_llvm",
    "requires_metal",
    "requires_package",
    "requires_rocm",
    "set_random_seed",
    "torch_assert_close",
]


def main() -> None:
    """Run pytest on the calling file, with the arguments of the command line, and exit."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    file = inspect.getsourcefile(frame.f_back)
    assert file is not None, "main() is called from a file"
    sys.exit(pytest.main([file, *sys.argv[1:]]))
