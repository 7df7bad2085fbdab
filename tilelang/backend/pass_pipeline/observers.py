"""The observers that ship: timing, IR dump, before/after diff."""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tvm.ir import IRModule
from tvm.target import Target

from tilelang.backend.pass_pipeline.observer import PassObserver
from tilelang.backend.pass_pipeline.step import PassStep

__all__ = [
    "DiffObserver",
    "DumpObserver",
    "HtmlDiffObserver",
    "TimingObserver",
    "TimingReport",
    "TimingRow",
]


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


class TimingReport(TimingObserver):
    """Prints the table of a :class:`TimingObserver` when the pipeline ends."""

    def __init__(self, title: str, threshold_ms: float = 0.0, stream: TextIO | None = None) -> None:
        super().__init__(threshold_ms)
        self.title = title
        self.stream = stream

    def finish(self) -> None:
        print(f"passes of {self.title}:\n{self.render()}", file=self.stream or sys.stderr)


def _file_name(number: int, step: PassStep, suffix: str) -> str:
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in step.name)
    return f"{number:02d}_{safe}{suffix}"


class DumpObserver(PassObserver):
    """Writes the module after every pass to ``<folder>/<number>_<pass>.py``."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.written: list[Path] = []

    def after(
        self, step: PassStep, before: IRModule, after: IRModule, target: Target, seconds: float
    ) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / _file_name(len(self.written), step, ".py")
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


class HtmlDiffObserver(PassObserver):
    """Writes what each pass changed side by side to ``<folder>/<number>_<pass>.html``."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._count = 0

    def after(
        self, step: PassStep, before: IRModule, after: IRModule, target: Target, seconds: float
    ) -> None:
        number, self._count = self._count, self._count + 1
        if before.same_as(after):
            return
        page = difflib.HtmlDiff(wrapcolumn=100).make_file(
            before.script().splitlines(),
            after.script().splitlines(),
            f"before {step.name}",
            f"after {step.name}",
            context=True,
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / _file_name(number, step, ".html")).write_text(page, encoding="utf-8")
