"""The native library: argument binding, the CPU launcher and target-kind registration.

Importing this module loads ``libtilelang_native`` once per process. A launcher is made from a
:class:`~tilelang.engine.launch_plan.LaunchPlan` and one worker function per kernel::

    launcher = make_cpu_launcher(plan, [module["kernel_0"]])
    launcher(a, b)          # checks the arguments, allocates outputs, runs the grid
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tvm_ffi

# The exception classes the library raises are registered by their module.
from . import errors as _errors  # noqa: F401
from .engine.launch_plan import LaunchPlan
from .env import env

__all__ = [
    "BoundCall",
    "BoundKernel",
    "TargetKindsStatus",
    "get_num_threads",
    "library_path",
    "make_binder",
    "make_cpu_launcher",
    "set_num_threads",
    "target_kinds_status",
]

_SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
_NAME = f"libtilelang_native{_SUFFIX}"


def library_path() -> Path:
    """Where the native library is; raises ``ImportError`` saying how to build it when missing."""
    # An editable install has two roots: the source tree and the folder of built files.
    roots = [Path(p) for p in sys.modules[__package__].__path__]
    for root in roots:
        if (path := root / "lib" / _NAME).is_file():
            return path
    raise ImportError(
        f"tilelang: {_NAME} is not built (looked in {', '.join(str(r / 'lib') for r in roots)}); "
        "run `pip install .`, or in a source checkout "
        "`cmake -S . -B build -G Ninja && cmake --build build`"
    )


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(library_path()))
    _set_torch_exchange_api()
    return library


def _set_torch_exchange_api() -> None:
    """Tell the library how torch makes tensors, for calls that have no tensor argument."""
    torch = sys.modules.get("torch")  # imported by tvm_ffi when it is installed
    capsule = getattr(getattr(torch, "Tensor", None), "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = get_pointer(capsule, b"dlpack_exchange_api")
    tvm_ffi.get_global_func("tl.runtime.set_torch_exchange_api")(ctypes.c_void_p(address))


_LIBRARY = _load()
_make_cpu_launcher = tvm_ffi.get_global_func("tl.runtime.make_cpu_launcher")
_make_binder = tvm_ffi.get_global_func("tl.runtime.make_binder")
_set_num_threads = tvm_ffi.get_global_func("tl.runtime.set_num_threads")
_get_num_threads = tvm_ffi.get_global_func("tl.runtime.get_num_threads")


class TargetKindsStatus(NamedTuple):
    """What was registered with TVM: ``"registered"``, or the reason why it was not.

    ``hip`` is the target kind of that name; where it is missing, kind ``rocm`` with key ``hip``
    stands in. ``code`` is the option of kind ``cuda``.
    """

    hip: str
    code: str

    @property
    def has_hip(self) -> bool:
        """Whether ``Target("hip")`` can be made."""
        return self.hip == "registered"

    @property
    def has_code(self) -> bool:
        """Whether kind ``cuda`` takes option ``code``."""
        return self.code == "registered"


@functools.cache
def target_kinds_status() -> TargetKindsStatus:
    """Register kind ``hip`` and option ``code`` of kind ``cuda`` with TVM, once per process.

    It never raises: a TVM whose internals are not exactly as expected is left as it is, and the
    result says why.
    """
    import tvm  # noqa: F401  (the kinds live in its compiler library)

    status = tvm_ffi.get_global_func("tl.target.register_kinds")()
    return TargetKindsStatus(str(status["hip"]), str(status["code"]))


def set_num_threads(count: int | None) -> None:
    """Use ``count`` threads for CPU kernels; ``None`` follows torch's thread count."""
    if count is not None and count < 1:
        raise ValueError(f"the number of threads must be positive, got {count}")
    _set_num_threads(count or 0)


def get_num_threads() -> int:
    """Threads the next CPU kernel called from this thread will use."""
    return int(_get_num_threads())


def _plan_text(plan: LaunchPlan | str) -> str:
    return plan.to_json() if isinstance(plan, LaunchPlan) else plan


def make_cpu_launcher(plan: LaunchPlan | str, workers: Sequence[Any]) -> tvm_ffi.Function:
    """Build the callable of a compiled CPU function.

    Parameters
    ----------
    plan : LaunchPlan or str
        The plan, or its JSON text.
    workers : sequence of tvm_ffi.Function or callable
        One per kernel of the plan, called as ``worker(slots, begin, end, scratch)`` for linear
        block ids ``begin <= id < end``, possibly from several threads at once.

    Returns
    -------
    tvm_ffi.Function
        Takes the input arguments in order. Returns ``None``, one tensor or a list of tensors;
        they are torch tensors when torch is installed. Raises ``ArgumentTypeError`` (a
        ``TypeError``) or ``ArgumentValueError`` (a ``ValueError``) for wrong arguments, before
        anything is written.

    Notes
    -----
    ``TILELANG_NUM_THREADS`` takes effect here.
    """
    if (count := env.get_num_threads()) is not None:
        set_num_threads(count)
    return _make_cpu_launcher(_plan_text(plan), list(workers))


class BoundKernel(NamedTuple):
    """One kernel of a bound call: extents, dynamic shared bytes and argument slots.

    A slot is the 64-bit pattern of the argument: an address, an extended integer, or the bits of
    a float in the low bytes; it is given as an unsigned integer.
    """

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dyn_smem: int
    slots: tuple[int, ...]


class BoundCall(NamedTuple):
    """Arguments of one call after all checks: symbol values, kernels to launch and the result.

    ``workspaces`` own device memory that must outlive the launches.
    """

    symbols: tuple[int, ...]
    device: tuple[int, int]
    kernels: tuple[BoundKernel, ...]
    workspaces: tuple[Any, ...]
    result: Any


def make_binder(plan: LaunchPlan | str) -> Callable[..., BoundCall]:
    """Build a function that checks and binds arguments exactly as the native launchers do.

    It is for adapters that launch from Python: the returned callable takes the input arguments,
    allocates outputs and workspaces, and tells what to launch.

    Parameters
    ----------
    plan : LaunchPlan or str
        The plan, or its JSON text.
    """
    bind = _make_binder(_plan_text(plan))

    def bound(*args: Any) -> BoundCall:
        symbols, device, kernels, workspaces, result = bind(*args)
        return BoundCall(
            tuple(symbols),
            (device[0], device[1]),
            tuple(_bound_kernel(*k) for k in kernels),
            tuple(workspaces),
            result,
        )

    return bound


def _bound_kernel(
    entry: str, grid: Sequence[int], block: Sequence[int], dyn_smem: int, slots: Sequence[int]
) -> BoundKernel:
    gx, gy, gz = grid
    bx, by, bz = block
    words = tuple(s & 0xFFFF_FFFF_FFFF_FFFF for s in slots)
    return BoundKernel(entry, (gx, gy, gz), (bx, by, bz), dyn_smem, words)


target_kinds_status()
