"""Pass pipelines as data: ordered steps, each with the reason it stands where it stands.

    LLVM_STEPS = (
        tvm_pass(tirx.transform.BindTarget, "passes read the target from the function", TARGET),
        neutral(lower_tile_ops, "everything below works on loops", establishes=IRLevel.LOOPS),
        ...
    )
    PIPELINE = PassPipeline("llvm", steps=LLVM_STEPS)

:func:`run_steps` runs such a list, tells the observers, and turns whatever a pass raises into an
error that names the pass, the kernel and the user's line.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tvm.ir import IRModule
from tvm.target import Target

from tilelang.backend.pass_pipeline.observer import active_observers
from tilelang.backend.pass_pipeline.session import session
from tilelang.backend.pass_pipeline.step import PassFunction, PassStep
from tilelang.errors import BackendError, LoweringError, TileLangError

__all__ = ["PassPipeline", "run_steps"]


def run_steps(steps: Iterable[PassStep], mod: IRModule, target: Target) -> IRModule:
    """Run ``steps`` in order under the observers installed with ``observe``.

    Raises
    ------
    TileLangError
        As raised by a pass, located at the kernel when the pass gave no line.
    LoweringError
        A pass failed in any other way.
    """
    observers = active_observers()
    for step in steps:
        for observer in observers:
            observer.before(step, mod, target)
        started = time.perf_counter()
        with _located(step.name, mod):
            result = step.run(mod, target)
        seconds = time.perf_counter() - started
        assert isinstance(result, IRModule), f"pass '{step.name}' returned {type(result).__name__}"
        for observer in observers:
            observer.after(step, mod, result, target, seconds)
        mod = result
    return mod


@contextmanager
def _located(name: str, mod: IRModule) -> Iterator[None]:
    """Give errors of pass ``name`` the user's line; wrap those that are not ours."""
    try:
        yield
    except TileLangError as error:
        located = error.at(_span_of(mod))
        if located is error:
            raise
        raise located from error.__cause__
    except Exception as error:
        kernels = ", ".join(sorted(gv.name_hint for gv in mod.get_global_vars())) or "no function"
        reason = str(error).strip() or type(error).__name__
        raise LoweringError(
            f"pass '{name}' failed on {kernels}: {reason}", _span_of(mod)
        ) from error


def _span_of(mod: IRModule) -> Any:
    """Return the location of the module's only kernel, the best known when a pass names none."""
    spans = [span for f in mod.functions.values() if (span := getattr(f, "span", None)) is not None]
    return spans[0] if len(spans) == 1 else None


@dataclass(frozen=True, init=False)
class PassPipeline:
    """The passes of one target kind, from the traced program to host and device IR.

    Parameters
    ----------
    name : str
        The target kind.
    lower : callable, optional
        ``(mod, target) -> mod`` running the whole list; it calls :func:`run_steps` itself.
    steps : iterable of PassStep, optional
        The list. Exactly one of ``lower`` and ``steps`` is given.
    """

    name: str
    body: PassFunction | tuple[PassStep, ...]

    def __init__(
        self,
        name: str,
        lower: PassFunction | None = None,
        *,
        steps: Iterable[PassStep] | None = None,
        body: PassFunction | tuple[PassStep, ...] | None = None,
    ) -> None:
        given = [part for part in (lower, steps, body) if part is not None]
        if not name:
            raise BackendError("a pass pipeline needs a name")
        if len(given) != 1:
            raise BackendError(f"pass pipeline '{name}' takes either lower or steps")
        value = given[0] if callable(given[0]) else tuple(given[0])
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "body", value)

    def lower(self, mod: IRModule, target: Target) -> IRModule:
        """Run the pipeline on ``mod``; see :func:`run_steps` for errors.

        The observers installed by the caller see every step, and so do those that the pass
        configuration or the environment asks for (timing, dump, diff).
        """
        with session(mod):
            if isinstance(self.body, tuple):
                return run_steps(self.body, mod, target)
            with _located(self.name, mod):
                return self.body(mod, target)
