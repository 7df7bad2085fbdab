"""The table of scalar intrinsics, read by the language, the interpreter and every backend.

:class:`Intrinsic` (``record.py``) describes an entry; the other files are the rows by subject.
"""

from tilelang.ir.intrin import debug, gpu, ieee, math, structure, thread
from tilelang.ir.intrin.ieee import ROUNDING_MODES
from tilelang.ir.intrin.record import (
    ALL,
    NVIDIA,
    WARP,
    Intrinsic,
    check_backend,
    find,
    get,
    intrinsics,
)
from tilelang.ir.intrin.thread import FULL_MASK

__all__ = [
    "ALL",
    "FULL_MASK",
    "NVIDIA",
    "ROUNDING_MODES",
    "WARP",
    "Intrinsic",
    "check_backend",
    "debug",
    "find",
    "get",
    "gpu",
    "ieee",
    "intrinsics",
    "math",
    "structure",
    "thread",
]
