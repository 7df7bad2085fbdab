"""What a CUDA device allows, by architecture, and the check of a launch against it.

Figures from the table "Technical Specifications per Compute Capability" of the CUDA C++ programming
guide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tvm import tirx as T
from tvm.target import Target

from tilelang.cuda.target import target_arch
from tilelang.errors import LoweringError
from tilelang.transform.simt.launch import launch_of

__all__ = ["Limits", "check_limits", "limits_of"]

_SHARED_KIB = {70: 96, 75: 64, 80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227,
               110: 227, 120: 99, 121: 99}  # fmt: skip
_OLDEST = 70
_MAX_BLOCK = (1024, 1024, 64)


@dataclass(frozen=True)
class Limits:
    """Limits of a block.

    Parameters
    ----------
    arch : int
        Compute capability, 90 for 9.0.
    threads : int
    shared_bytes : int
        Shared memory a block may ask for, with the opt-in above 48 KiB.
    """

    arch: int
    shared_bytes: int
    threads: int = 1024


def limits_of(target: Target) -> Limits:
    """The limits of a CUDA target."""
    found = re.fullmatch(r"sm_(\d+)[af]?", target_arch(target))
    assert found is not None, "the target was normalised"
    arch = int(found[1])
    known = max((a for a in _SHARED_KIB if a <= arch), default=min(_SHARED_KIB))
    return Limits(arch, _SHARED_KIB[known] * 1024)


def check_limits(func: T.PrimFunc, limits: Limits) -> T.PrimFunc:
    """Refuse an architecture or a number of threads that is not possible; else return ``func``.

    Raises
    ------
    LoweringError
        Names the limit and what the launch asks for.
    """
    if limits.arch < _OLDEST:
        raise LoweringError(
            f"sm_{limits.arch} is not supported; the oldest architecture that is, is sm_{_OLDEST}",
            func.span,
        )
    launch = launch_of(func)
    span = launch.loops[0].span if launch.loops else func.span
    if launch.threads > limits.threads:
        raise LoweringError(
            f"a block of {launch.threads} threads; sm_{limits.arch} allows at most "
            f"{limits.threads}. Pass fewer to T.Kernel(..., threads=...)",
            span,
        )
    for axis, extent, most in zip("xyz", launch.block, _MAX_BLOCK, strict=True):
        if extent > most:
            raise LoweringError(f"{extent} threads along {axis}; at most {most} are possible", span)
    return func
