"""The registry of target backends, and the one place where backends are chosen."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

import tvm_ffi
from tvm.target import Target

from tilelang.backend.context import BackendContext
from tilelang.backend.device_compiler import DeviceCompiler
from tilelang.backend.execution_backend import canonical_execution_backend
from tilelang.backend.module import BackendModule
from tilelang.backend.target import (
    TargetLike,
    determine_target,
    implicit_target,
    resolve_target_host,
    target_for_device,
    target_kind,
)
from tilelang.env import env
from tilelang.errors import BackendError

__all__ = [
    "create_backend_context",
    "find_device_compiler",
    "get_backend",
    "list_backends",
    "register_backend",
    "select_backend",
    "unregister_backend",
]

_BACKENDS: dict[str, BackendModule] = {}


def register_backend(module: BackendModule) -> BackendModule:
    """Register a manifest and publish its callbacks.

    Registering an equal manifest again returns the registered one and changes nothing.

    Raises
    ------
    BackendError
        The name is taken by a different declaration; a target kind is shared without predicates;
        a callback belongs to another backend or cannot be published. Nothing stays behind then.
    """
    known = _BACKENDS.get(module.name)
    if known is not None:
        if known == module:
            return known
        raise BackendError(
            f"backend '{module.name}' is already registered with a different declaration"
        )
    _check_shared_kinds(module)
    _publish(module)
    _BACKENDS[module.name] = module
    return module


def unregister_backend(name: str) -> None:
    """Remove a backend and its callbacks; for plug-ins that unload and for tests."""
    module = get_backend(name)
    del _BACKENDS[name]
    for callback in module.callbacks:
        tvm_ffi.registry.remove_global_func(callback)


def get_backend(name: str) -> BackendModule:
    """Return the backend registered under ``name``.

    Raises
    ------
    BackendError
        There is none.
    """
    if name not in _BACKENDS:
        raise BackendError(f"no backend '{name}'; registered: {', '.join(_BACKENDS) or 'none'}")
    return _BACKENDS[name]


def list_backends() -> dict[str, BackendModule]:
    """Return a copy of the registry: name to manifest, in order of registration."""
    return dict(_BACKENDS)


def find_device_compiler(files: Container[str]) -> DeviceCompiler | None:
    """Return the device compiler whose device code is among ``files``, None without one."""
    for module in _BACKENDS.values():
        compilers = [codegen.compiler for codegen in module.device_codegens.values()]
        compilers += [spec.compiler for spec in module.execution_backends]
        for compiler in compilers:
            if compiler is not None and compiler.binary in files:
                return compiler
    return None


def _check_shared_kinds(module: BackendModule) -> None:
    for other in _BACKENDS.values():
        shared = sorted(set(other.target_kinds) & set(module.target_kinds))
        if not shared:
            continue
        for party in (module, other):
            if party.supports_target is None:
                raise BackendError(
                    f"backends '{other.name}' and '{module.name}' share target kind "
                    f"{', '.join(shared)}: '{party.name}' must define supports_target"
                )


def _publish(module: BackendModule) -> None:
    """Register the callbacks as tvm-ffi global functions, all of them or none."""
    for name in module.callbacks:
        for other in _BACKENDS.values():
            if name in other.callbacks:
                raise BackendError(
                    f"backend '{module.name}': callback '{name}' belongs to '{other.name}'"
                )
    replaced: dict[str, Any] = {}
    try:
        for name, function in module.callbacks.items():
            previous = tvm_ffi.get_global_func(name, allow_missing=True)
            tvm_ffi.register_global_func(name, function, override=True)
            replaced[name] = previous
    except Exception as error:
        _restore(replaced)
        raise BackendError(
            f"backend '{module.name}': callbacks could not be published: {error}"
        ) from error


def _restore(replaced: Mapping[str, Callable[..., Any] | None]) -> None:
    for name, previous in replaced.items():
        if previous is None:
            tvm_ffi.registry.remove_global_func(name)
        else:
            tvm_ffi.register_global_func(name, previous, override=True)


def select_backend(target: Target) -> BackendModule:
    """Return the one backend that compiles for ``target``.

    Raises
    ------
    BackendError
        No backend or several do.
    """
    found = [module for module in _BACKENDS.values() if module.matches(target)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(module.name for module in found)
        raise BackendError(f"several backends claim target {target}: {names}")
    kinds = sorted({kind for module in _BACKENDS.values() for kind in module.target_kinds})
    raise BackendError(
        f"no backend compiles for target kind '{target_kind(target)}'; "
        f"kinds with a backend: {', '.join(kinds) or 'none'}"
    )


def create_backend_context(
    target: TargetLike | None = "auto",
    target_host: TargetLike | None = None,
    execution_backend: str | None = "auto",
    *,
    device_type: str | None = None,
    runnable: bool = True,
) -> BackendContext:
    """Choose target, host target, backend and execution backend of a compile, once.

    Parameters
    ----------
    target : str, dict, Target or None
        See :func:`~tilelang.backend.target.determine_target`.
    target_host : str, dict, Target or None
        The host; by default the target's own, else ``llvm``, else ``c``.
    execution_backend : str or None
        A name or ``"auto"``/``None``: ``TILELANG_EXECUTION_BACKEND``, else the first declared one
        that can run here.
    device_type : str, optional
        The ``torch.device`` type of the tensors a kernel is called with; decides the target when
        nothing else names one.
    runnable : bool
        Insist that the execution backend can run here. Lowering to source code does not need it.

    Raises
    ------
    TargetError
        A target is malformed or unknown.
    BackendError
        No backend compiles for the target, or the execution backend cannot be used with it.

    Example
    -------
    >>> context = create_backend_context("llvm")
    >>> context.name, context.execution_backend.name
    ('cpu', 'tvm_ffi')
    """
    requested = canonical_execution_backend(execution_backend)
    if target is None or target == "auto":
        target = _unnamed_target(requested, device_type)
    resolved = determine_target(target, return_object=True)
    host = resolve_target_host(resolved, target_host)
    resolved = resolved.with_host(host)
    module = select_backend(resolved)
    if requested == "auto":
        requested = _default_execution_backend(module, resolved)
    spec = module.resolve_execution_backend(requested, resolved, runnable=runnable)
    return BackendContext(module, resolved, host, spec)


def _unnamed_target(execution_backend: str, device_type: str | None) -> TargetLike:
    """Return the target nobody passed: surroundings, execution backend, device, detection."""
    if (target := implicit_target()) is not None:
        return target
    if execution_backend == "auto":
        execution_backend = canonical_execution_backend(env.get_default_execution_backend())
    if execution_backend != "auto":
        for module in _BACKENDS.values():
            for spec in module.execution_backends:
                if spec.name == execution_backend and spec.default_target is not None:
                    return spec.default_target
    return "auto" if device_type is None else target_for_device(device_type)


def _default_execution_backend(module: BackendModule, target: Target) -> str:
    """Return the environment's choice where the target has it, else ``"auto"``.

    The variable is a default for a whole process, which may compile for several targets; only a
    name that no backend knows is a mistake.
    """
    default = canonical_execution_backend(env.get_default_execution_backend())
    known = {spec.name for other in _BACKENDS.values() for spec in other.execution_backends}
    if default not in {"auto", *known}:
        raise BackendError(
            f"TILELANG_EXECUTION_BACKEND is '{default}', which no backend has; "
            f"known: auto, {', '.join(sorted(known))}"
        )
    return default if default in module.allowed_execution_backends(target) else "auto"
