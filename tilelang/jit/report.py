"""The text of ``kernel.report()``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilelang.jit.kernel import JITKernel

__all__ = ["kernel_report"]


def kernel_report(kernel: JITKernel) -> str:
    """Targets, origin, milliseconds of each phase; of each launch resources and notes."""
    origin = "read from the cache" if kernel.from_cache else "compiled"
    lines = [
        f"{kernel.plan.name}: {origin}; backend {kernel.backend}, "
        f"execution backend {kernel.execution_backend}",
        f"  target: {kernel.target}",
        "  phases: " + ", ".join(f"{n} {ms:.2f} ms" for n, ms in kernel.phases.items()),
    ]
    bundle = kernel.adapter.bundle
    figures = _figures(kernel)
    for launch in kernel.plan.kernels:
        lines.append(f"  launch: {launch.entry}")
        lines += [f"    {line}" for line in figures.get(launch.entry, ())]
        lines += [f"    note: {note}" for note in bundle.notes.get(launch.entry, ())]
    return "\n".join(lines)


def _figures(kernel: JITKernel) -> Mapping[str, Sequence[str]]:
    compiler = kernel.request.context.device_compiler
    if compiler is None or compiler.describe is None:
        return {}
    return compiler.describe(kernel.plan, kernel.adapter.bundle.binaries, kernel.target)
