"""The manifest of the CUDA backend."""

from __future__ import annotations

from tilelang.backend.device_codegen import DeviceCodegen
from tilelang.backend.device_compiler import DeviceCompiler
from tilelang.backend.host_codegen import STANDARD_HOST_CODEGENS
from tilelang.backend.lazy import LazyFunction
from tilelang.backend.module import BackendModule
from tilelang.backend.pass_pipeline import PassPipeline
from tilelang.backend.registry import register_backend
from tilelang.backend.target import register_target_detector, register_target_normalizer
from tilelang.cuda.execution_backend import EXECUTION_BACKENDS
from tilelang.cuda.target import detect_cuda_target, is_cuda_target, normalize_cuda_target

__all__ = ["CUDA_BACKEND"]

_COMPILER = DeviceCompiler(
    binary="kernel.cubin",
    compile=LazyFunction("tilelang.cuda.device_code:compile_source"),
    load=LazyFunction("tilelang.cuda.device_code:make_launcher"),
    load_in_python=LazyFunction("tilelang.cuda.python_launcher:make_python_launcher"),
    disassemble=LazyFunction("tilelang.cuda.inspect_code:disassemble"),
    resource_usage=LazyFunction("tilelang.cuda.inspect_code:resource_usage"),
    describe=LazyFunction("tilelang.cuda.inspect_code:describe"),
    fingerprint=LazyFunction("tilelang.cuda.device_code:fingerprint"),
)
# Source only: the execution backend compiles it.
_CODEGEN = LazyFunction("tilelang.cuda.codegen:build_cuda")

register_target_normalizer("cuda", normalize_cuda_target)
register_target_detector("cuda", detect_cuda_target, device_type="cuda", rank=10)

CUDA_BACKEND = register_backend(
    BackendModule(
        name="cuda",
        device_type="cuda",
        target_kinds=("cuda",),
        pipelines={"cuda": PassPipeline("cuda", LazyFunction("tilelang.cuda.pipeline:lower_cuda"))},
        device_codegens={"cuda": DeviceCodegen("cuda", _CODEGEN, _CODEGEN, _COMPILER)},
        execution_backends=EXECUTION_BACKENDS,
        supports_target=is_cuda_target,
        host_codegens=STANDARD_HOST_CODEGENS,
        callbacks={
            "tilelang_callback_cuda_validate": LazyFunction(
                "tilelang.cuda.compile.callbacks:validate"
            ),
            "tilelang_callback_cuda_compile": LazyFunction(
                "tilelang.cuda.compile.callbacks:compile_code"
            ),
        },
    )
)
