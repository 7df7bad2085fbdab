"""How long each phase of a compile took, kept with the kernel and shown when asked."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence

from tilelang.env import env
from tilelang.utils.log import show

__all__ = ["Phases", "jit_phase"]


class Phases:
    """Milliseconds by phase name, in the order the phases ran.

    Parameters
    ----------
    title : str
        What is compiled, for the lines shown.
    verbose : bool
        Show each phase when it ends; ``TILELANG_JIT_DIAGNOSTICS`` does so for every compile.
    """

    def __init__(self, title: str, verbose: bool = False) -> None:
        self.milliseconds: dict[str, float] = {}
        self._title = title
        self._shown = verbose or env.is_jit_diagnostics_enabled()

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time the block as phase ``name``; repeated phases add up."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - start)

    def add(self, name: str, seconds: float) -> None:
        """Record that phase ``name`` took ``seconds``."""
        self.milliseconds[name] = self.milliseconds.get(name, 0.0) + seconds * 1e3
        if self._shown:
            show(f"tilelang: {self._title}: {name} {seconds * 1e3:.2f} ms")

    def remark(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Show what the lowering remarked about each kernel."""
        if self._shown:
            for entry, texts in notes.items():
                for text in texts:
                    show(f"tilelang: {entry}: note: {text}")


@contextlib.contextmanager
def jit_phase(name: str, title: str = "jit", verbose: bool = False) -> Iterator[None]:
    """Show the time the block takes if ``verbose`` or ``TILELANG_JIT_DIAGNOSTICS`` says so."""
    with Phases(title, verbose)(name):
        yield
