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
            spent = (time.perf_counter() - start) * 1e3
            self.milliseconds[name] = self.milliseconds.get(name, 0.0) + spent
            if self._log:
                logger.info("%s: %.2f ms", name, spent)


@contextlib.contextmanager
def jit_phase(name: str, verbose: bool = False) -> Iterator[None]:
    """Log the time the block takes if ``verbose`` or ``TILELANG_JIT_DIAGNOSTICS`` says so."""
    with Phases(verbose)(name):
        yield
