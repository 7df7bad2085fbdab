"""The one hook on running passes, and the scope that installs observers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tvm.ir import IRModule
from tvm.target import Target

from tilelang.backend.pass_pipeline.step import PassStep

__all__ = ["PassObserver", "active_observers", "observe"]


class PassObserver:
    """Sees every step of every pipeline while installed with :func:`observe`.

    Override what is needed. An observer must not change the module; an exception it raises stops
    the compile.
    """

    def before(self, step: PassStep, mod: IRModule, target: Target) -> None:
        """Called before ``step`` runs on ``mod``."""

    def after(
        self, step: PassStep, before: IRModule, after: IRModule, target: Target, seconds: float
    ) -> None:
        """Called when ``step`` has turned ``before`` into ``after`` in ``seconds``."""

    def finish(self) -> None:
        """Called when the pipeline ended, also by an error."""


_OBSERVERS: ContextVar[tuple[PassObserver, ...]] = ContextVar("tilelang_observers", default=())


def active_observers() -> tuple[PassObserver, ...]:
    """Return the observers of this context, outermost first."""
    return _OBSERVERS.get()


@contextmanager
def observe(*observers: PassObserver) -> Iterator[tuple[PassObserver, ...]]:
    """Install ``observers`` for the passes run inside the ``with`` block.

    Example
    -------
    >>> from tilelang.backend.pass_pipeline import TimingObserver
    >>> with observe(TimingObserver()) as (timing,):
    ...     pass
    >>> timing.rows
    []
    """
    token = _OBSERVERS.set((*_OBSERVERS.get(), *observers))
    try:
        yield observers
    finally:
        _OBSERVERS.reset(token)
