"""How long each phase of a compile took, kept with the kernel and logged when asked."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator

from tilelang.env import env

__all__ = ["Phases", "jit_phase"]

logger = logging.getLogger("tilelang.jit")


class Phases:
    """Milliseconds by phase name, in the order the phases ran."""

    def __init__(self, verbose: bool = False) -> None:
        self.milliseconds: dict[str, float] = {}
        self._log = verbose or env.is_jit_diagnostics_enabled()

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
        if self._log:
            logger.info("%s: %.2f ms", name, seconds * 1e3)


@contextlib.contextmanager
def jit_phase(name: str, verbose: bool = False) -> Iterator[None]:
    """Log the time the block takes if ``verbose`` or ``TILELANG_JIT_DIAGNOSTICS`` says so."""
    with Phases(verbose)(name):
        yield
