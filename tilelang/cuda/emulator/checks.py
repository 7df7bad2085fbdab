"""The optional checks of the emulator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tilelang.env import env
from tilelang.errors import EnvVarError

__all__ = [
    "CHECKS",
    "Counters",
    "check_bits",
    "checks_from_environment",
    "needs_instrumentation",
    "wanted_pass_configs",
]

#: Name to bit, as in ``enum Check`` of ``src/cuda/emulator/runtime/report.h``.
CHECKS = {"race": 1, "bounds": 2, "uninit": 4, "banks": 8, "coalesce": 16}


@dataclass(frozen=True)
class Counters:
    """Accesses of one source line, summed over the warps of a launch.

    Parameters
    ----------
    where : str
        ``file:line``.
    space : str
        ``"shared"`` or ``"global"``.
    requests : int
        Warp-wide accesses.
    actual, ideal : int
        Shared: passes over the 32 banks, and what the number of bytes needs at least. Global:
        32-byte sectors, likewise.
    """

    where: str
    space: str
    requests: int
    actual: int
    ideal: int


def check_bits(names: Iterable[str]) -> int:
    """The bits of the named checks.

    Raises
    ------
    EnvVarError
        For an unknown name.
    """
    bits = 0
    for name in names:
        if name not in CHECKS:
            raise EnvVarError(
                f"the emulator has no check '{name}'; there are: {', '.join(CHECKS)}, and all"
            )
        bits |= CHECKS[name]
    return bits


def checks_from_environment() -> tuple[str, ...]:
    """The checks that ``TILELANG_EMULATOR_CHECKS`` names, in the order of :data:`CHECKS`."""
    names = {name.strip() for name in env.TILELANG_EMULATOR_CHECKS.split(",")} - {""}
    if "all" in names:
        return tuple(CHECKS)
    check_bits(names)
    return tuple(name for name in CHECKS if name in names)


def wanted_pass_configs() -> dict[str, Any]:
    """Source whose lines lead to the Python program, where checks are going to name lines."""
    return {"tl.emit_line_directives": True} if checks_from_environment() else {}


def needs_instrumentation(checks: Iterable[str]) -> bool:
    """Whether the kernel has to be compiled so that it reports its memory accesses."""
    return bool(tuple(checks))
