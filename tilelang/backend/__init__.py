"""Backend registry and interfaces.

A *target backend* (CUDA, HIP, CPU, ...) owns a vertical slice of the compiler and declares it in
one :class:`BackendModule`. An *execution backend* (tvm_ffi, cython, ...) builds, loads and
launches what comes out. :func:`create_backend_context` chooses one of each, once per compile.

Importing this package registers the backends that ship with TileLang.
"""

from tilelang.backend.context import BackendContext
from tilelang.backend.device_codegen import DeviceCodegen, global_func_device_codegen
from tilelang.backend.device_compiler import DeviceCompiler
from tilelang.backend.discovery import load_builtin_backends
from tilelang.backend.execution_backend import ExecutionBackendSpec
from tilelang.backend.host_codegen import STANDARD_HOST_CODEGENS, HostCodegen, HostCodegenHook
from tilelang.backend.lazy import GlobalFunction, LazyFunction
from tilelang.backend.module import BackendModule
from tilelang.backend.pass_pipeline import PassPipeline, PassStep
from tilelang.backend.registry import (
    create_backend_context,
    find_device_compiler,
    get_backend,
    list_backends,
    register_backend,
    select_backend,
    unregister_backend,
)

__all__ = [
    "STANDARD_HOST_CODEGENS",
    "BackendContext",
    "BackendModule",
    "DeviceCodegen",
    "DeviceCompiler",
    "ExecutionBackendSpec",
    "GlobalFunction",
    "HostCodegen",
    "HostCodegenHook",
    "LazyFunction",
    "PassPipeline",
    "PassStep",
    "create_backend_context",
    "find_device_compiler",
    "get_backend",
    "global_func_device_codegen",
    "list_backends",
    "load_builtin_backends",
    "register_backend",
    "select_backend",
    "unregister_backend",
]

load_builtin_backends()
