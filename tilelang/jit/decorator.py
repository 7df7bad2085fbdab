"""``@tilelang.jit``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, overload

from tvm import tirx as T

from tilelang.backend.target import TargetLike
from tilelang.errors import TraceError, TraceTypeError
from tilelang.jit.eager import EagerJIT
from tilelang.jit.impl import JITImpl
from tilelang.jit.lazy import LazyJIT, ProgramJIT
from tilelang.jit.options import JITOptions
from tilelang.jit.request import CompileFlags, OutIdx
from tilelang.language.eager import Macro, detect_mode
from tilelang.language.eager.source import function_span

__all__ = ["jit"]


@overload
def jit(func: Callable[..., Any]) -> JITImpl: ...
@overload
def jit(
    func: None = None,
    *,
    out_idx: OutIdx = ...,
    target: TargetLike | None = ...,
    target_host: TargetLike | None = ...,
    execution_backend: str | None = ...,
    verbose: bool | None = ...,
    pass_configs: Mapping[Any, Any] | None = ...,
    debug_root_path: str | Path | None = ...,
    compile_flags: CompileFlags = ...,
) -> Callable[[Callable[..., Any]], JITImpl]: ...
def jit(func: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a function a kernel, or a factory of kernels.

    *Eager*: the function is the kernel. Its annotated tensors are arguments, everything else is a
    compile-time value; a call compiles on first use, runs, and returns the ``T.empty`` tensors the
    function returns::

        @tilelang.jit
        def scale(A, factor: T.float32, block: int = 256):
            N = T.const("N")
            A: T.Tensor((N,), T.float32)
            B = T.empty((N,), T.float32)
            with T.Kernel(T.ceildiv(N, block)) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i] * factor
            return B

        b = scale(a, 2.0)

    *Lazy*: the function returns a ``@T.prim_func``. Its arguments are compile-time values; a call
    returns the kernel, the same one for equal arguments::

        @tilelang.jit(out_idx=-1)
        def matmul(M, N, K, block=128):
            @T.prim_func
            def main(A: T.Tensor((M, K)), B: T.Tensor((K, N)), C: T.Tensor((M, N))):
                ...
            return main

        c = matmul(1024, 1024, 1024)(a, b)

    Which of the two a function is, is decided from what it declares, without running it. A ready
    program (``@T.prim_func``) is accepted too.

    Parameters
    ----------
    func : callable or PrimFunc
        The function; left out when options are given.
    out_idx, execution_backend, target, target_host, verbose, pass_configs, compile_flags
        See :func:`tilelang.compile`. ``out_idx`` is for lazy functions. Without a target an eager
        call takes the backend of its tensors' device.
    debug_root_path : str or Path, optional
        Folder that receives the program and the generated code of every kernel.

    Returns
    -------
    JITImpl
        With ``compile``, ``par_compile``, ``get_tir`` and ``get_kernel_source`` beside the call.

    Raises
    ------
    TraceError
        ``out_idx`` for an eager function.
    TraceTypeError
        ``func`` is no function.
    """
    unknown = sorted(set(options) - set(JITOptions.__dataclass_fields__))
    if unknown:
        raise TypeError(f"jit() got an unexpected keyword argument '{unknown[0]}'")
    record = JITOptions(**options)
    if func is None:
        return lambda decorated: _implement(decorated, record)
    return _implement(func, record)


def _implement(func: Any, options: JITOptions) -> JITImpl:
    if isinstance(func, T.PrimFunc):
        return ProgramJIT(func, options)
    if isinstance(func, JITImpl):
        raise TraceTypeError(f"{func.func.__qualname__} is decorated with @tilelang.jit twice")
    if isinstance(func, Macro):
        raise TraceTypeError(
            f"{func.func.__qualname__} is a @T.macro, which is written out inside kernels; under "
            "@tilelang.jit leave @T.macro away",
            function_span(func.func),
        )
    if not callable(func) or isinstance(func, type):
        raise TraceTypeError(
            f"@tilelang.jit decorates a function or a PrimFunc, found {type(func).__name__}"
        )
    if detect_mode(func) == "lazy":
        return LazyJIT(func, options)
    if options.out_idx is not None:
        raise TraceError(
            f"{func.__qualname__} is an eager kernel, which returns its T.empty tensors; out_idx "
            f"(here {options.out_idx!r}) is for functions that return a @T.prim_func"
        )
    return EagerJIT(func, options)
