"""TileLang: tile programs in Python, compiled for CPUs and GPUs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import tvm
from tvm import DataType

from tilelang import _native as _native  # registers target kinds before any target is made
from tilelang import dtypes, ir, language
from tilelang.backend import create_backend_context as _create_backend_context  # noqa: F401
from tilelang.engine.callback import (
    register_c_postproc,
    register_cuda_postproc,
    register_hip_postproc,
)
from tilelang.engine.lower import lower
from tilelang.env import disable_cache, enable_cache, env, is_cache_enabled
from tilelang.jit import JITKernel, compile, jit, par_compile
from tilelang.layout import Fragment, Layout
from tilelang.math import cdiv, next_power_of_2
from tilelang.transform import PassConfigKey
from tilelang.utils import build_date, deprecated
from tilelang.utils.log import install_handler as _install_log_handler
from tilelang.utils.log import set_log_level
from tilelang.version import __version__

if TYPE_CHECKING:
    from tilelang import (
        analysis,
        cpu,
        cuda,
        engine,
        interpreter,
        metal,
        rocm,
        testing,
        tools,
        transform,
        webgpu,
    )
    from tilelang.interpreter import interpret
    from tilelang.profiler import Profiler, TensorSupplyType, do_bench

__all__ = [
    "DataType",
    "Fragment",
    "JITKernel",
    "Layout",
    "PassConfigKey",
    "Profiler",
    "TensorSupplyType",
    "__version__",
    "analysis",
    "build_date",
    "cdiv",
    "compile",
    "cpu",
    "cuda",
    "deprecated",
    "disable_cache",
    "do_bench",
    "dtypes",
    "enable_cache",
    "engine",
    "env",
    "interpret",
    "interpreter",
    "ir",
    "is_cache_enabled",
    "jit",
    "language",
    "lower",
    "metal",
    "next_power_of_2",
    "par_compile",
    "register_c_postproc",
    "register_cuda_postproc",
    "register_hip_postproc",
    "rocm",
    "set_log_level",
    "testing",
    "tools",
    "transform",
    "tvm",
    "webgpu",
]

# What a kernel author rarely needs at import time: attribute -> (module, name in it or "").
_LAZY = {
    "Profiler": ("tilelang.profiler", "Profiler"),
    "TensorSupplyType": ("tilelang.profiler", "TensorSupplyType"),
    "do_bench": ("tilelang.profiler", "do_bench"),
    "interpret": ("tilelang.interpreter", "interpret"),
    **{
        name: (f"tilelang.{name}", "")
        for name in (
            "analysis",
            "cpu",
            "cuda",
            "engine",
            "interpreter",
            "metal",
            "rocm",
            "testing",
            "tools",
            "transform",
            "webgpu",
        )
    },
}


def __getattr__(name: str) -> Any:
    target = _LAZY.get(name)
    if target is None:
        raise AttributeError(f"module 'tilelang' has no attribute {name!r}")
    module = importlib.import_module(target[0])
    value = getattr(module, target[1]) if target[1] else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


_install_log_handler()
