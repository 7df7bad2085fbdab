"""From a program to a kernel: memory, then the disk cache, then the compiler."""

from __future__ import annotations

import hashlib
import logging
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import Any, TypeVar

from tvm import tirx as T

from tilelang.backend import create_backend_context
from tilelang.backend.target import TargetLike
from tilelang.cache import kernel_store
from tilelang.engine.lines import Line, current_line_table, launch_lines
from tilelang.env import env
from tilelang.errors import BackendError, CacheError
from tilelang.jit.adapter import KernelAdapter, KernelBundle, find_adapter
from tilelang.jit.diagnostics import Phases
from tilelang.jit.interrupt import interruptible
from tilelang.jit.kernel import JITKernel
from tilelang.jit.request import CompileFlags, CompileRequest, OutIdx
from tilelang.transform import PassContext

__all__ = ["compile", "compile_request", "par_compile", "run_parallel"]

logger = logging.getLogger("tilelang.jit")

_R = TypeVar("_R")

# Weak: a kernel lives as long as somebody uses it, and while it lives it is never built twice.
# Programs that differ in their place alone share the code and have each its own line table.
_KERNELS: weakref.WeakValueDictionary[tuple[str, tuple[Line, ...]], JITKernel] = (
    weakref.WeakValueDictionary()
)


def compile(
    func: T.PrimFunc,
    out_idx: OutIdx = None,
    execution_backend: str | None = None,
    target: TargetLike | None = None,
    target_host: TargetLike | None = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, Any] | None = None,
    compile_flags: CompileFlags = None,
) -> JITKernel:
    """Compile a program and return the kernel; a program compiled before comes from the cache.

    Parameters
    ----------
    func : tvm.tirx.PrimFunc
        The program, from ``@T.prim_func``. It is not changed.
    out_idx : int or sequence of int, optional
        Parameters the kernel allocates and returns instead of taking; negative ones count from
        the end. One index: the call returns a tensor, several: a list of tensors. Not allowed for
        a program that returns its ``T.empty`` tensors.
    execution_backend : str, optional
        How the kernel is built and launched (``"tvm_ffi"``, ``"cython"``, ...). By default
        ``TILELANG_EXECUTION_BACKEND``, else the first one of the target that works here.
    target, target_host : str, dict or tvm.target.Target, optional
        What to compile for. By default the enclosing ``with Target(...)``, then
        ``TILELANG_DEFAULT_TARGET``, then the device found on this machine.
    verbose : bool, optional
        Log the phases of the compile; by default ``TILELANG_VERBOSE``.
    pass_configs : mapping, optional
        See :class:`tilelang.PassConfigKey`; overrides what the program says itself.
    compile_flags : str or list of str, optional
        Appended to the flags the program carries itself.

    Raises
    ------
    TileLangError
        One of its subclasses, for every mistake in the program or the arguments.

    Examples
    --------
    >>> kernel = tilelang.compile(matmul(1024, 1024, 1024), out_idx=-1, target="llvm")
    >>> c = kernel(a, b)
    """
    context = create_backend_context(target, target_host, execution_backend)
    request = CompileRequest.make(
        func,
        context,
        out_idx=out_idx,
        pass_configs=pass_configs,
        compile_flags=compile_flags,
        verbose=verbose,
    )
    return compile_request(request)


def par_compile(
    funcs: Iterable[T.PrimFunc],
    out_idx: OutIdx = None,
    execution_backend: str | None = None,
    target: TargetLike | None = None,
    target_host: TargetLike | None = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, Any] | None = None,
    compile_flags: CompileFlags = None,
    num_workers: int | None = None,
    ignore_error: bool = False,
) -> list[JITKernel | None]:
    """Compile several programs in a thread pool; kernels come back in the order of ``funcs``.

    Parameters
    ----------
    funcs : iterable of tvm.tirx.PrimFunc
    num_workers : int, optional
        Threads; by default one for each program, at most one for each usable core.
    ignore_error : bool
        Log a program that fails and return None in its place, instead of raising.

    The other parameters are those of :func:`compile` and hold for every program.
    """
    context = create_backend_context(target, target_host, execution_backend)
    requests = [
        CompileRequest.make(
            func,
            context,
            out_idx=out_idx,
            pass_configs=pass_configs,
            compile_flags=compile_flags,
            verbose=verbose,
        )
        for func in funcs
    ]
    jobs = [lambda request=request: compile_request(request) for request in requests]
    return run_parallel(jobs, num_workers=num_workers, ignore_error=ignore_error)


def compile_request(request: CompileRequest) -> JITKernel:
    """Find or build the kernel of ``request``."""
    phases = Phases(request.name, request.verbose)
    if env.should_interpret():
        from tilelang.jit.adapter.interpreter import InterpreterAdapter  # only when asked for

        return JITKernel(request, InterpreterAdapter.of(request.func), phases=phases)
    key = None
    if env.is_cache_enabled() and not request.context.edits_source:
        with phases("key"):
            key = _cache_key(request)
    if key is None:
        return _build(request, None, phases)
    place = key, launch_lines(request.func)
    kernel: JITKernel | None = None
    if not request.observed:
        if (kernel := _KERNELS.get(place)) is not None:
            return kernel
        kernel = _from_disk(request, key, phases)
    return _KERNELS.setdefault(place, kernel or _build(request, key, phases))


def _cache_key(request: CompileRequest) -> str | None:
    try:
        return request.key()
    except (CacheError, BackendError) as error:
        # Not serialisable, or without an adapter, which lowering reports better: no cache.
        logger.debug("kernel '%s' has no cache key: %s", request.name, error)
        return None


def _from_disk(request: CompileRequest, key: str, phases: Phases) -> JITKernel | None:
    store = kernel_store()
    with phases("read cache"):
        entry = store.get(key)
    if entry is None:
        return None
    try:
        bundle = KernelBundle.from_files(entry.files, entry.directory)
        lines = current_line_table(bundle.line_table, request.func, request.context.device_type)
        bundle = replace(bundle, line_table=lines)
        return _load(request, bundle, key, phases, from_cache=True)
    except Exception as error:  # noqa: BLE001
        # The files are what was written, yet they do not load: another loader, a vanished folder.
        logger.warning("cached kernel '%s' does not load (%s), rebuilding", request.name, error)
        store.remove(key)
        return None


def _build(request: CompileRequest, key: str | None, phases: Phases) -> JITKernel:
    # The compiler proper; a kernel from the cache needs none of it.
    from tilelang.engine.lower import lower_with_context

    if env.is_print_on_compilation_enabled():
        logger.info("compiling kernel '%s' for %s", request.name, request.context.target)
    with interruptible():
        with PassContext(request.pass_configs):
            artifact = lower_with_context(request.func, request.context, phases.add)
            # Looked up after lowering: a backend to come has no adapter yet and says so there.
            adapter = find_adapter(request.context.execution_backend.name)
            with phases("build"):  # device compilers read pass configurations too
                bundle = adapter.build(artifact, request.compile_flags)
        bundle = replace(bundle, notes=artifact.notes)
        phases.remark(artifact.notes)
        kernel = _load(request, bundle, key, phases, artifact=artifact)
        if key is not None and bundle.storable:
            with phases("write cache"):
                kernel_store().put(key, bundle.to_files(), {"name": request.name})
    return kernel


def _load(
    request: CompileRequest,
    bundle: KernelBundle,
    key: str | None,
    phases: Phases,
    *,
    artifact: Any = None,
    from_cache: bool = False,
) -> JITKernel:
    with phases("load"):
        adapter: KernelAdapter = find_adapter(request.context.execution_backend.name)(bundle)
    # Graphs find a kernel by this name: equal ones at two places are two kernels.
    place = None if key is None else (key, launch_lines(request.func))
    name = None if place is None else hashlib.sha256(repr(place).encode()).hexdigest()
    return JITKernel(
        request, adapter, key=name, phases=phases, artifact=artifact, from_cache=from_cache
    )


def run_parallel(
    jobs: Sequence[Callable[[], _R]],
    *,
    num_workers: int | None = None,
    ignore_error: bool = False,
    title: str = "compiling",
) -> list[_R | None]:
    """Run ``jobs`` in threads with a progress bar; results in the order of ``jobs``.

    The first failure stops the jobs that have not started and is raised, unless ``ignore_error``.
    """
    from tqdm.auto import tqdm  # only this function shows progress

    if num_workers is not None and num_workers < 1:
        raise ValueError(f"num_workers must be at least 1, found {num_workers}")
    if not jobs:
        return []
    workers = num_workers or min(len(jobs), _usable_cores())
    results: list[_R | None] = [None] * len(jobs)
    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="tilelang-compile")
    try:
        futures = {pool.submit(job): index for index, job in enumerate(jobs)}
        with tqdm(total=len(jobs), desc=title, disable=len(jobs) < 2) as bar:
            for future in as_completed(futures):
                try:
                    results[futures[future]] = future.result()
                except Exception as error:
                    if not ignore_error:
                        raise
                    logger.warning("job %d failed: %s", futures[future], error)
                bar.update()
    finally:
        # On an error or Ctrl-C: what runs finishes in the background, nothing more starts.
        pool.shutdown(wait=False, cancel_futures=True)
    return results


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
