"""The steps pass pipelines are made of, and the levels of IR they establish."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tvm.ir import IRModule
from tvm.target import Target

from tilelang.errors import BackendError

__all__ = ["TARGET", "IRLevel", "PassFunction", "PassStep", "neutral", "tvm_pass"]

PassFunction: TypeAlias = Callable[[IRModule, Target], IRModule]


class IRLevel(enum.IntEnum):
    """What a module has become; each level has invariants checked while tests run."""

    TRACED = 0
    """Tile operations, parallel loops and launches, as the user wrote them."""
    LOOPS = 1
    """No tile operation is left: loops, loads and stores."""
    STORAGE = 2
    """Every buffer has its place and size; accesses are flat."""
    CODEGEN = 3
    """Split by calling convention; only what the code generator prints."""


@dataclass(frozen=True)
class PassStep:
    """One pass of a pipeline.

    Parameters
    ----------
    run : callable
        ``(mod, target) -> mod``; must not change its argument.
    reason : str
        Why the pass is needed and why here, in one sentence.
    name : str
        Shown in timings, dumps and messages.
    establishes : IRLevel, optional
        The level that holds from here on.
    """

    run: PassFunction
    reason: str
    name: str = ""
    establishes: IRLevel | None = None

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", _name_of(self.run))
        if not self.reason.strip():
            raise BackendError(f"pass '{self.name}' gives no reason for its place")


class _Target:
    """Stands for the compile target among the arguments of :func:`tvm_pass`."""


TARGET: Final = _Target()


def tvm_pass(
    factory: Callable[..., Any],
    reason: str,
    *arguments: Any,
    establishes: IRLevel | None = None,
) -> PassStep:
    """Return a step that runs the stock pass ``factory(*arguments)``.

    ``TARGET`` among the arguments becomes the compile target. The pass is made anew for each run,
    so that importing a pipeline does not build any.
    """
    name = _name_of(factory)

    def run(mod: IRModule, target: Target) -> IRModule:
        values = [target if argument is TARGET else argument for argument in arguments]
        return factory(*values)(mod)

    return PassStep(run, reason, name, establishes)


def neutral(
    function: Callable[[IRModule], IRModule],
    reason: str,
    *,
    name: str = "",
    establishes: IRLevel | None = None,
) -> PassStep:
    """Return a step for a pass that does not look at the target."""

    def run(mod: IRModule, target: Target) -> IRModule:
        return function(mod)

    return PassStep(run, reason, name or _name_of(function), establishes)


def _name_of(function: Any) -> str:
    for attribute in ("__name__", "path"):
        if isinstance(name := getattr(function, attribute, None), str):
            return name
    return type(function).__name__
