"""The compile driver: from a traced program to a compiled artifact."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tvm
from tvm import tirx as T

from tilelang.analysis import check_program
from tilelang.backend import create_backend_context
from tilelang.backend.context import BackendContext
from tilelang.engine.artifact import CompiledArtifact
from tilelang.engine.host_plan import split_launches
from tilelang.engine.launch_plan import KernelLaunch, LaunchPlan
from tilelang.engine.lines import line_table
from tilelang.engine.param import KernelParam
from tilelang.errors import SemanticError

__all__ = ["LaunchFacts", "lower", "lower_with_context"]


@dataclass(frozen=True)
class LaunchFacts:
    """What passes learn about a launch, as attributes of the device function."""

    scratch_bytes: str = "tl.scratch_bytes"
    dyn_smem: str = "tl.dyn_smem"  # bytes
    cluster: str = "tl.cluster"  # blocks along x, y and z
    flags: str = "tl.launch_flags"
    notes: str = "tl.notes"  # texts for the user
    param_align: str = "tl.param_align"  # parameter name -> bytes that its address must divide


_FACTS = LaunchFacts()


def lower(
    func_or_mod: Any,
    target: Any = "auto",
    target_host: Any = None,
    runtime_only: bool = False,
    enable_host_codegen: bool = False,
    enable_device_compile: bool = False,
    execution_backend: str | None = "auto",
) -> CompiledArtifact:
    """Lower a traced function for ``target``.

    Parameters
    ----------
    func_or_mod : PrimFunc or IRModule with one function
    target, target_host : target, str or dict
        ``"auto"`` takes the enclosing target, else the best device of this machine.
    runtime_only : bool
        Leave the IR modules out of the result.
    enable_host_codegen, enable_device_compile : bool
        Accepted for compatibility; the execution backend decides.

    Raises
    ------
    TileLangError
        With the user's line, if the program is invalid or cannot be lowered.
    """
    del enable_host_codegen, enable_device_compile
    context = create_backend_context(target, target_host, execution_backend, runnable=False)
    artifact = lower_with_context(func_or_mod, context)
    if runtime_only:
        artifact.host_mod = artifact.device_mod = None
    return artifact


def lower_with_context(
    func_or_mod: Any,
    context: BackendContext,
    on_phase: Callable[[str, float], None] | None = None,
) -> CompiledArtifact:
    """Lower under an already resolved context.

    Parameters
    ----------
    on_phase : callable, optional
        Told the name and the seconds of every phase.
    """
    func = _single_function(func_or_mod)
    clock = _Clock(on_phase)
    check_program(func)
    clock("check")
    plan, devices = split_launches(func, context.device_type)
    clock("split")
    mod = tvm.IRModule({d.name: d.func for d in devices})
    lowered = context.lower(mod)
    clock("passes")
    code = context.codegen_device(lowered)
    clock("codegen")
    return CompiledArtifact(
        host_mod=tvm.IRModule({}),
        device_mod=lowered,
        params=tuple(KernelParam.of(p) for p in func.params),
        kernel_source=code.inspect_source(),
        rt_mod=code,
        target=context.target,
        target_host=context.target_host,
        plan=_with_facts(plan, lowered),
        line_table=line_table(devices),
        notes=_notes(lowered),
        device_compiler=context.device_compiler,
    )


class _Clock:
    def __init__(self, report: Callable[[str, float], None] | None) -> None:
        self._report = report
        self._last = time.perf_counter()

    def __call__(self, phase: str) -> None:
        now = time.perf_counter()
        if self._report is not None:
            self._report(phase, now - self._last)
        self._last = now


def _single_function(func_or_mod: Any) -> T.PrimFunc:
    if isinstance(func_or_mod, T.PrimFunc):
        return func_or_mod
    functions = list(func_or_mod.functions.values())
    if len(functions) != 1:
        raise SemanticError(f"expected a module with one function, found {len(functions)}")
    return functions[0]


def _attributes(lowered: tvm.IRModule) -> dict[str, Any]:
    """Attributes of the device functions by entry name."""
    facts: dict[str, Any] = {}
    for func in lowered.functions.values():
        attrs = func.attrs or {}
        entry = attrs.get("tl.entry", attrs.get("global_symbol"))
        if entry is not None:
            facts[str(entry)] = attrs
    return facts


def _notes(lowered: tvm.IRModule) -> dict[str, tuple[str, ...]]:
    found = {
        entry: tuple(str(note) for note in attrs.get(_FACTS.notes, ()))
        for entry, attrs in _attributes(lowered).items()
    }
    return {entry: notes for entry, notes in found.items() if notes}


def _with_facts(plan: LaunchPlan, lowered: tvm.IRModule) -> LaunchPlan:
    facts = _attributes(lowered)

    def updated(kernel: KernelLaunch) -> KernelLaunch:
        attrs = facts.get(kernel.entry, {})
        return replace(
            kernel,
            scratch_bytes=int(attrs.get(_FACTS.scratch_bytes, 0)),
            dyn_smem=int(attrs.get(_FACTS.dyn_smem, 0)),
            cluster=_three(attrs.get(_FACTS.cluster, (1, 1, 1))),
            flags=tuple(str(flag) for flag in attrs.get(_FACTS.flags, ())),
        )

    aligned: dict[str, int] = {}
    for attrs in facts.values():
        for name, align in attrs.get(_FACTS.param_align, {}).items():
            aligned[str(name)] = max(int(align), aligned.get(str(name), 1))
    return replace(
        plan,
        params=tuple(replace(p, align=aligned.get(p.name, p.align)) for p in plan.params),
        kernels=tuple(updated(kernel) for kernel in plan.kernels),
    )


def _three(extents: Sequence[Any]) -> tuple[int, int, int]:
    x, y, z = (int(extent) for extent in extents)
    return x, y, z
