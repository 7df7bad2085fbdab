"""Observers that ship: timing, IR dump, before/after diff, invariants."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import tvm_ffi
from tvm.ir import IRModule
from tvm.target import Target

from tilelang.backend.pass_pipeline.observer import PassObserver
from tilelang.backend.pass_pipeline.pipeline import IRLevel, PassStep

__all__ = ["DiffObserver", "DumpObserver", "InvariantObserver", "TimingObserver", "TimingRow"]


@dataclass(frozen=True)
class TimingRow:
    """One pass that ran: its name, its time in milliseconds, whether it changed the module."""

    name: str
    milliseconds: float
    changed: bool


class TimingObserver(PassObserver):
    """Collects the time of every pass.

    Parameters
    ----------
    threshold_ms : float
        Passes faster than this are left out of :meth:`render`, not of ``rows``.
    """

    def __init__(self, threshold_ms: float = 0.0) -> None:
        self.rows: list[TimingRow] = []
        self.threshold_ms = threshold_ms

    def after(
        self, step: PassStep, before: IRModule, after: IRModule, target: Target, seconds: float
    ) -> None:
        self.rows.append(TimingRow(step.name, seconds * 1e3, not before.same_as(after)))

    def render(self) -> str:
        """Return a table of the passes in the order they ran, with the total."""
        total = sum(row.milliseconds for row in self.rows)
        lines = [
            f"{row.milliseconds:9.3f} ms  {row.name}"
            for row in self.rows
            if row.milliseconds >= self.threshold_ms
        ]
        return "\n".join([*lines, f"{total:9.3f} ms  total of {len(self.rows)} passes"])


class DumpObserver(PassObserver):
    """Writes the module after every pass to ``<folder>/<number>_<pass>.py``."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.written: list[Path] = []

    def after(
        self, step: PassStep, before: IRModule, after: IRModule, target: Target, seconds: float
    ) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in step.name)
        path = self.folder / f"{len(self.written):02d}_{safe}.py"
        path.write_text(after.script(), encoding="utf-8")
        self.written.append(path)


class DiffObserver(PassObserver):
    """Prints what each pass changed as a unified diff of the printed module."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream

    def after(
        self, step: PassStep, before: IRModule, after: IRModule, target: Target, seconds: float
    ) -> None:
        if before.same_as(after):
            return
        lines = difflib.unified_diff(
            before.script().splitlines(),
            after.script().splitlines(),
            f"before {step.name}",
            f"after {step.name}",
            lineterm="",
            n=2,
        )
        text = "\n".join(lines)
        if text:
            print(text, file=self.stream or sys.stderr)


class InvariantObserver(PassObserver):
    """Checks after every pass what its level promises, and that no pass edits its argument.

    Parameters
    ----------
    checks : mapping of IRLevel to callable
        ``check(mod)`` raises when ``mod`` breaks the invariants of the level. The checks of the
        latest level established so far run after each pass.
    """

    def __init__(self, checks: Mapping[IRLevel, Callable[[IRModule], None]]) -> None:
        self.checks = checks
        self.level = IRLevel.TRACED
        self._hash = 0

    def before(self, step: PassStep, mod: IRModule, target: Target) -> None:
        self._hash = tvm_ffi.structural_hash(mod)

    def after(
        self, step: PassStep, before: IRModule, after: IRModule, target: Target, seconds: float
    ) -> None:
        assert tvm_ffi.structural_hash(before) == self._hash, (
            f"pass '{step.name}' changed its argument"
        )
        if step.establishes is not None:
            self.level = step.establishes
        if (check := self.checks.get(self.level)) is not None:
            check(after)
