"""What the CPU of a target can do, as far as op bodies choose by it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import tvm
from tvm.target import Target

__all__ = ["Features", "features_of"]


@dataclass(frozen=True)
class Features:
    """Vector registers and dot-product instructions of a CPU.

    Parameters
    ----------
    vector_bytes : int
        Width of a vector register in bytes.
    vector_registers : int
        How many of them there are.
    names : frozenset of str
        LLVM's names of the features, such as ``avx512vnni`` or ``amx-int8``.
    """

    vector_bytes: int = 16
    vector_registers: int = 16
    names: frozenset[str] = frozenset()

    def has(self, *names: str) -> bool:
        """Whether all of ``names`` are there."""
        return self.names.issuperset(names)


def features_of(target: Target) -> Features:
    """The features of ``target``; a target of kind ``c`` is compiled for the local machine."""
    if str(target.kind.name) == "llvm":
        attrs = target.attrs
        return _features(
            str(attrs.get("mcpu", "")),
            str(attrs.get("mtriple", "")),
            tuple(str(flag) for flag in attrs.get("mattr", ())),
        )
    cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
    return _features(str(cpu), "", ())


@lru_cache(maxsize=32)
def _features(cpu: str, triple: str, flags: tuple[str, ...]) -> Features:
    config: dict[str, object] = {"kind": "llvm"}
    config |= {"mcpu": cpu} if cpu else {}
    config |= {"mtriple": triple} if triple else {}
    config |= {"mattr": list(flags)} if flags else {}
    found = tvm.get_global_func("target.llvm_get_cpu_features")(Target(config))
    names = {str(name) for name in found} | {f[1:] for f in flags if f.startswith("+")}
    names -= {f[1:] for f in flags if f.startswith("-")}
    if "avx512f" in names:
        return Features(64, 32, frozenset(names))
    if "avx" in names:
        return Features(32, 16, frozenset(names))
    arm = triple.startswith(("aarch64", "arm64")) or "neon" in names
    return Features(16, 32 if arm else 16, frozenset(names))
