"""What the host compiler needs to know of CUDA source that macros cannot tell it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tilelang.cuda.source_kernels import kernel_names, without_comments
from tilelang.errors import DeviceCompileError

__all__ = ["PreparedSource", "prepare_source"]

_DYNAMIC_SHARED = re.compile(r"\bextern(\s+)__shared__\b(?=[^;{}]*?\b(\w+)\s*\[\s*\]\s*;)")
# A host compiler wants the alignment in front of the storage class, which the macros stand for.
_ALIGNED = re.compile(r"\b((?:extern\s+)?__(?:dynamic_)?shared__)\s+(alignas\s*\([^()]*\))\s*")


@dataclass(frozen=True)
class PreparedSource:
    """Source for the host compiler.

    Parameters
    ----------
    text : str
        Its lines are those of the CUDA source; entry points follow.
    kernels : tuple of str
        Names of the kernels.
    shared_names : tuple of str
        Names of dynamic shared memory, to become aliases of the arena.
    """

    text: str
    kernels: tuple[str, ...]
    shared_names: tuple[str, ...]


def prepare_source(source: str) -> PreparedSource:
    """Find the kernels and the dynamic shared memory of CUDA source.

    Raises
    ------
    DeviceCompileError
        If it has no kernel.
    """
    bare = without_comments(source)
    kernels = kernel_names(source)
    if not kernels:
        raise DeviceCompileError("the CUDA source has no __global__ function to emulate")
    shared = _unique(match.group(2) for match in _DYNAMIC_SHARED.finditer(bare))
    text = _DYNAMIC_SHARED.sub(r"extern\1__dynamic_shared__", source)
    text = _ALIGNED.sub(r"\2 \1 ", text)
    entries = "".join(f"TL_EMULATED_KERNEL({kernel})\n" for kernel in kernels)
    return PreparedSource(f"{text}\n{entries}", kernels, shared)


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
