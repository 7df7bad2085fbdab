"""Decorators that skip a test where the machine lacks something.

Each is made of pytest marks, so that they stack with one another, with parametrisation and with
classes. The machine is asked once, when a decorator is first applied; no driver is needed for the
answer "no".
"""

from __future__ import annotations

import functools
import importlib.util
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import pytest

__all__ = [
    "Requirement",
    "cuda_compute_version",
    "requires_cdna",
    "requires_cuda",
    "requires_cuda_compute_version",
    "requires_cuda_compute_version_eq",
    "requires_cuda_compute_version_ge",
    "requires_cuda_compute_version_gt",
    "requires_cuda_compute_version_le",
    "requires_cuda_compute_version_lt",
    "requires_cuda_or_cdna",
    "requires_gfx950",
    "requires_llvm",
    "requires_metal",
    "requires_package",
    "requires_rocm",
]

_T = TypeVar("_T")
_COMPARE = {
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
    "eq": operator.eq,
}
_SIGN = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "eq": "=="}


@dataclass(frozen=True)
class Requirement:
    """A condition on the machine, usable as a decorator of tests and test classes.

    Only pytest's own ``skipif`` is used: a marker of ours would have to be registered in every
    project that tests kernels.

    Parameters
    ----------
    reason : str
        Shown for skipped tests.
    is_met : callable
        Asks the machine.
    implied : tuple of Requirement
        Conditions that must hold as well.

    Examples
    --------
    >>> @requires_cuda
    ... def test_on_gpu(): ...
    >>> pytest.param("cuda", marks=requires_cuda.marks())  # doctest: +ELLIPSIS
    ParameterSet(...)
    """

    reason: str
    is_met: Callable[[], bool]
    implied: tuple[Requirement, ...] = ()

    def marks(self) -> list[pytest.MarkDecorator]:
        """The marks, for ``pytest.param(..., marks=requirement.marks())``."""
        skip = pytest.mark.skipif(not self.is_met(), reason=self.reason)
        inherited = [mark for requirement in self.implied for mark in requirement.marks()]
        return [*inherited, skip]

    def __call__(self, test: _T) -> _T:
        decorated: Any = test
        for mark in self.marks():
            decorated = mark(decorated)
        return cast(_T, decorated)


@functools.cache
def _has_cuda() -> bool:
    import torch  # knows the driver

    return torch.version.cuda is not None and torch.cuda.is_available()


@functools.cache
def _hip_arch() -> str:
    """Architecture of the first HIP device, such as ``"gfx942"``; empty without one."""
    import torch  # knows the driver

    if torch.version.hip is None or not torch.cuda.is_available():
        return ""
    return str(torch.cuda.get_device_properties(0).gcnArchName).split(":")[0]


@functools.cache
def cuda_compute_version() -> tuple[int, int]:
    """Compute capability of the current CUDA device; ``(0, 0)`` without one."""
    import torch  # knows the driver

    return torch.cuda.get_device_capability() if _has_cuda() else (0, 0)


def _has_metal() -> bool:
    import torch  # knows the driver

    return bool(torch.backends.mps.is_available())


def _has_llvm() -> bool:
    import tvm  # built with or without LLVM

    return tvm.get_global_func("target.build.llvm", allow_missing=True) is not None


def _is_cdna() -> bool:
    return _hip_arch().startswith("gfx9")


requires_cuda = Requirement("needs a CUDA device", _has_cuda)
requires_rocm = Requirement("needs a HIP device", lambda: bool(_hip_arch()))
requires_metal = Requirement("needs a Metal device", _has_metal)
requires_llvm = Requirement("needs a TVM built with LLVM", _has_llvm)
requires_cdna = Requirement("needs an AMD CDNA device", _is_cdna, (requires_rocm,))
requires_gfx950 = Requirement(
    "needs an AMD gfx950 device", lambda: _hip_arch() == "gfx950", (requires_rocm,)
)
requires_cuda_or_cdna = Requirement(
    "needs a CUDA or an AMD CDNA device", lambda: _has_cuda() or _is_cdna()
)


def requires_package(*names: str) -> Requirement:
    """Require importable packages; nothing is imported to find out."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    reason = f"needs the package {', '.join(missing or names)}"
    return Requirement(reason, lambda: not missing)


def requires_cuda_compute_version(
    major_version: int, minor_version: int = 0, mode: str = "ge"
) -> Requirement:
    """Require a CUDA device whose compute capability compares with the given one.

    Parameters
    ----------
    major_version, minor_version : int
        Such as 9 and 0 for Hopper.
    mode : {"ge", "gt", "le", "lt", "eq"}
        How the device must compare.

    Raises
    ------
    ValueError
        For another mode.
    """
    if mode not in _COMPARE:
        raise ValueError(f"mode must be one of {', '.join(_COMPARE)}; found {mode!r}")
    wanted = (major_version, minor_version)
    reason = f"needs CUDA compute capability {_SIGN[mode]} {major_version}.{minor_version}"
    return Requirement(
        reason,
        lambda: bool(_COMPARE[mode](cuda_compute_version(), wanted)),
        (requires_cuda,),
    )


def _shorthand(mode: str) -> Callable[..., Requirement]:
    def requires(major_version: int, minor_version: int = 0) -> Requirement:
        return requires_cuda_compute_version(major_version, minor_version, mode)

    requires.__name__ = f"requires_cuda_compute_version_{mode}"
    requires.__doc__ = f"Require a CUDA device of compute capability {_SIGN[mode]} the given one."
    return requires


requires_cuda_compute_version_ge = _shorthand("ge")
requires_cuda_compute_version_gt = _shorthand("gt")
requires_cuda_compute_version_le = _shorthand("le")
requires_cuda_compute_version_lt = _shorthand("lt")
requires_cuda_compute_version_eq = _shorthand("eq")
