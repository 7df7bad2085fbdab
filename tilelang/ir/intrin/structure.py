"""Calls that are part of the IR rather than of mathematics: selection, lanes, addresses, facts."""

from __future__ import annotations

import numpy as np

from tilelang.ir.intrin.record import PURE, READ, UPDATE, Array, Intrinsic, Reference, define

__all__: list[str] = []

Dtypes = tuple[str, ...]


def _select(dtypes: Dtypes, condition: Array, a: Array, b: Array) -> Array:
    return np.where(np.asarray(condition).astype(bool), a, b)


def _identity(dtypes: Dtypes, value: Array) -> Array:
    return np.asarray(value)


def _half(start: int) -> Reference:
    def reference(dtypes: Dtypes, vector: Array) -> Array:
        half = np.asarray(vector).shape[-1] // 2
        return np.asarray(vector)[..., start * half : (start + 1) * half]

    return reference


def _concatenate(dtypes: Dtypes, a: Array, b: Array) -> Array:
    return np.concatenate([a, b], axis=-1)


# Only the chosen branch is evaluated: a guard for reads out of bounds.
IF_THEN_ELSE = define(
    Intrinsic(
        "if_then_else",
        "prim.if_then_else",
        ("any", "any", "any"),
        result="given",
        reference=_select,
    )
)
define(Intrinsic("likely", "prim.likely", ("predicate",), effect=0, reference=_identity))
define(Intrinsic("vectorlow", "tirx.vectorlow", ("any",), result="given", reference=_half(0)))
define(Intrinsic("vectorhigh", "tirx.vectorhigh", ("any",), result="given", reference=_half(1)))
define(
    Intrinsic(
        "vectorcombine",
        "tirx.vectorcombine",
        ("any", "any"),
        result="given",
        reference=_concatenate,
    )
)
define(Intrinsic("isnullptr", "tirx.isnullptr", ("pointer",), result="bool"))
define(
    Intrinsic("assume", "tirx.assume", ("predicate",), result="bool", effect=5, reference=_identity)
)
define(Intrinsic("address_of", "tirx.address_of", ("pointer",), result="handle"))
define(
    Intrinsic(
        "access_ptr",
        "tl.access_ptr",
        ("element", "int32", "int32", "int32"),
        result="handle",
        effect=READ,
    )
)

# Foreign code: the backend prints the call, nothing else is known about it.
define(
    Intrinsic(
        "call_extern", "tirx.call_extern", ("text", "any"), "given", UPDATE,
        optional=1, variadic=True,
    )
)  # fmt: skip
define(
    Intrinsic(
        "call_pure_extern", "tirx.call_pure_extern", ("text", "any"), "given", PURE,
        optional=1, variadic=True,
    )
)  # fmt: skip
