"""The manifest of the CPU backend."""

from __future__ import annotations

from tilelang.backend.device_codegen import DeviceCodegen
from tilelang.backend.host_codegen import STANDARD_HOST_CODEGENS
from tilelang.backend.lazy import LazyFunction
from tilelang.backend.module import BackendModule
from tilelang.backend.pass_pipeline.pipeline import PassPipeline
from tilelang.backend.registry import register_backend
from tilelang.backend.target import register_fallback_target, register_target_normalizer
from tilelang.cpu.execution_backend import EXECUTION_BACKENDS
from tilelang.cpu.target import KINDS, local_cpu_target, normalize_cpu_target

__all__ = ["CPU_BACKEND"]

_LOWER = LazyFunction("tilelang.cpu.pipeline:lower_cpu")
_BUILD_C = LazyFunction("tilelang.cpu.codegen:build_c")
_BUILD_LLVM = LazyFunction("tilelang.cpu.codegen:build_llvm")
_SHOWS_LINES = LazyFunction("tilelang.transform.thread_use:is_thread_program")
_PRINT = LazyFunction("tilelang.cpu.print_value:print_value")

register_target_normalizer("cpu", normalize_cpu_target)
register_fallback_target(local_cpu_target, device_type="cpu")

CPU_BACKEND = register_backend(
    BackendModule(
        name="cpu",
        target_kinds=KINDS,
        pipelines={kind: PassPipeline(kind, _LOWER) for kind in KINDS},
        # C source is compiled by the execution backend, so both modes of `c` stop at text.
        device_codegens={
            "c": DeviceCodegen("c", build=_BUILD_C, build_without_compile=_BUILD_C),
            "llvm": DeviceCodegen("llvm", build=_BUILD_LLVM, build_without_compile=_BUILD_LLVM),
        },
        execution_backends=EXECUTION_BACKENDS,
        host_codegens=STANDARD_HOST_CODEGENS,
        shows_lines=_SHOWS_LINES,
        callbacks={"tl.cpu.print": _PRINT},  # called by compiled kernels
    )
)
