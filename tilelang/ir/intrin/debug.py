"""Output and checks from inside a kernel."""

from __future__ import annotations

from tilelang.ir.intrin.record import UPDATE, Intrinsic, define

__all__: list[str] = []

# tl.print(message[, value, warp group, warp]): the value is an expression, or a region to print a
# tile. Shared tiles and fragments are printed by one thread, lane 0 of that warp.
define(
    Intrinsic(
        "print", "tl.print", ("text", "any", "int32", "int32"), "void", UPDATE,
        optional=3, backends=frozenset({"cpu", "cuda", "rocm"}),
    )
)  # fmt: skip
define(
    Intrinsic(
        "device_assert", "tl.device_assert", ("predicate", "text"), "void", UPDATE,
        backends=frozenset({"cpu", "cuda", "cutedsl", "rocm"}),
    )
)  # fmt: skip
