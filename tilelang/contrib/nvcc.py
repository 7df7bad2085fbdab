"""The CUDA compilers, by the public name of :mod:`tilelang.cuda.toolkit`."""
# ruff: noqa: F822 (the names are found when they are asked for)

from __future__ import annotations

from typing import Any

__all__ = [
    "compile_cuda",
    "find_cuda_path",
    "get_cuda_version",
    "get_ptx_from_source",
    "get_sass_from_source",
    "get_target_arch_and_code",
    "get_target_compute_version",
    "have_bf16",
    "have_cudagraph",
    "have_fp8",
    "have_fp16",
    "have_int8",
    "have_mbarrier",
    "have_pdl",
    "have_tensorcore",
    "have_tma",
    "is_hopper",
    "parse_compute_version",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tilelang.cuda import toolkit  # backends lie above this package

    return getattr(toolkit, name)
