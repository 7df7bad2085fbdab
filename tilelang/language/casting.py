"""Conversions and vectors: ``T.cast``, ``T.reinterpret``, ``T.extract_lane``, ``T.Shuffle``, ...

A cast follows the numeric contract: integers wrap, float to integer truncates and saturates, NaN
gives 0, a narrower float is the nearest even one and overflows as torch does for that dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError, UnsupportedError
from tilelang.ir import intrin, values
from tilelang.ir.dtype import AnyDType, dtype
from tilelang.ir.expr import const_int
from tilelang.ir.span import user_span
from tilelang.ir.values import as_scalar, element_type

__all__ = [
    "Broadcast",
    "Cast",
    "Ramp",
    "Shuffle",
    "broadcast",
    "cast",
    "extract_lane",
    "ramp",
    "reinterpret",
    "vectorcombine",
    "vectorhigh",
    "vectorlow",
]

_dtype = dtype
_STOCHASTIC = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
_NARROW_MODES = ("", "rn", "rs")


def cast(
    value: Any,
    dtype: AnyDType,
    round: str = "",
    sat: bool = True,
    rbits: Any = None,
    span: ir.Span | None = None,
) -> ir.Expr:
    """Convert ``value`` to another type.

    Parameters
    ----------
    value : expression or number
    dtype : AnyDType
        A vector type needs as many lanes as ``value``, or a scalar ``value`` for all lanes.
    round : {"", "rn", "rs"}
        ``""`` and ``"rn"`` follow the contract. ``"rs"`` rounds stochastically: ``rbits`` is added
        below the kept mantissa, then it is truncated; CUDA only, float32 to float16, bfloat16,
        float8_e4m3fn or float8_e5m2.
    sat : bool
        Whether an 8-bit result of ``"rs"`` saturates; only True is available.
    rbits : uint32 expression, optional
        Random bits, required by ``"rs"`` and refused otherwise.
    span : tvm.ir.Span, optional
        Location; default the caller's line.

    Raises
    ------
    TraceTypeError
        If the types do not convert into each other.
    TraceError
        For another rounding mode or a missing ``rbits``.

    Examples
    --------
    >>> T.cast(acc, T.float16)                      # doctest: +SKIP
    """
    if round not in _NARROW_MODES:
        raise TraceError(
            f"T.cast: unknown rounding mode {round!r}; expected '', 'rn' or 'rs'",
            span or user_span(),
        )
    if not sat:
        raise UnsupportedError("T.cast: only sat=True is available", span or user_span())
    if round != "rs":
        if rbits is not None:
            raise TraceError("T.cast: rbits is only used by round='rs'", span or user_span())
        return values.cast(value, dtype, span)
    source, target = as_scalar(value, "T.cast"), _dtype(dtype)
    if rbits is None:
        raise TraceError("T.cast: round='rs' needs random bits, rbits=", span or user_span())
    if element_type(source) != "float32" or target not in _STOCHASTIC:
        raise TraceTypeError(
            f"T.cast: round='rs' converts float32 to {', '.join(_STOCHASTIC)}, "
            f"found {element_type(source)} to {target}",
            span or user_span(),
        )
    return intrin.get("cast_stochastic")(source, rbits, dtype=target)


def Cast(dtype: AnyDType, value: Any, span: ir.Span | None = None) -> ir.Expr:
    """:func:`cast` with the arguments in TVM's order."""
    return values.cast(value, dtype, span)


def reinterpret(value: Any, dtype: AnyDType) -> ir.Expr:
    """The bits of ``value`` read as another type of the same size.

    ``T.reinterpret(dtype, value)``, TVM's order, is accepted too.

    Raises
    ------
    TraceTypeError
        If the sizes in bits differ.
    """
    if isinstance(value, (str, ir.PrimType)):
        value, dtype = dtype, value
    source, target = as_scalar(value, "T.reinterpret"), _dtype(dtype)
    kind = element_type(source)
    if kind in (target, target.storage):  # the same bits under another name
        return source
    if kind.bits * kind.lanes != target.bits * target.lanes:
        raise TraceTypeError(
            f"T.reinterpret: {kind} has {kind.bits * kind.lanes} bits, {target} has "
            f"{target.bits * target.lanes}",
            user_span(),
        )
    return intrin.get("reinterpret")(source, dtype=target)


def _vector(value: Any, what: str) -> tuple[ir.Expr, dtype]:
    vector = as_scalar(value, what)
    kind = element_type(vector)
    if kind.lanes == 1:
        raise TraceTypeError(f"{what} requires a vector, found {kind}", user_span())
    return vector, kind


def extract_lane(vec: Any, lane: Any) -> ir.Expr:
    """Lane number ``lane`` of a vector; the number is a constant.

    Raises
    ------
    TraceTypeError
        If ``vec`` is no vector or ``lane`` no constant.
    TraceError
        If there is no such lane.
    """
    vector, kind = _vector(vec, "T.extract_lane")
    number = const_int(lane)
    if number is None:
        raise TraceTypeError("T.extract_lane: the lane must be a constant", user_span())
    if not 0 <= number < kind.lanes:
        raise TraceError(f"T.extract_lane: {kind} has no lane {number}", user_span())
    return T.Shuffle([vector], [number], user_span())


def _halves(name: str, args: tuple[Any, ...]) -> ir.Expr:
    # TVM's order has the result type first; it is known anyway.
    vector, kind = _vector(args[-1], f"T.{name}")
    return intrin.get(name)(vector, dtype=kind.with_lanes(kind.lanes // 2))


def vectorlow(*args: Any) -> ir.Expr:
    """The lower half of the lanes: ``T.vectorlow(vec)`` or ``T.vectorlow(dtype, vec)``."""
    return _halves("vectorlow", args)


def vectorhigh(*args: Any) -> ir.Expr:
    """The upper half of the lanes: ``T.vectorhigh(vec)`` or ``T.vectorhigh(dtype, vec)``."""
    return _halves("vectorhigh", args)


def vectorcombine(*args: Any) -> ir.Expr:
    """Two vectors of one type joined: ``T.vectorcombine(low, high)``; a dtype may come first.

    Raises
    ------
    TraceTypeError
        If the types differ or are no vectors.
    """
    (low, kind), (high, other) = (_vector(v, "T.vectorcombine") for v in args[-2:])
    if kind != other:
        raise TraceTypeError(f"T.vectorcombine: {kind} and {other} differ", user_span())
    return intrin.get("vectorcombine")(low, high, dtype=kind.with_lanes(2 * kind.lanes))


def Shuffle(vectors: Sequence[Any], indices: Sequence[int]) -> ir.Expr:
    """A vector of chosen lanes: ``indices`` count through the lanes of all ``vectors`` in turn.

    Raises
    ------
    TraceError
        If an index is no constant lane number.
    """
    parts = [as_scalar(v, "T.Shuffle") for v in vectors]
    total = sum(element_type(part).lanes for part in parts)
    numbers = [const_int(index) for index in indices]
    if any(number is None or not 0 <= number < total for number in numbers):
        raise TraceError(
            f"T.Shuffle: indices must be constants from 0 to {total - 1}, found {list(indices)}",
            user_span(),
        )
    return values.guard("T.Shuffle", lambda: T.Shuffle(parts, numbers, user_span()))


def broadcast(value: Any, lanes: int) -> ir.Expr:
    """A vector with ``value`` in every lane."""
    scalar = as_scalar(value, "T.broadcast")
    return values.guard("T.broadcast", lambda: T.Broadcast(scalar, lanes, user_span()))


def ramp(base: Any, stride: Any, lanes: int) -> ir.Expr:
    """The vector ``base, base + stride, ...`` of ``lanes`` integers, to index a vector access."""
    start, step, _ = values.match_pair(values.plain(base), values.plain(stride), "T.ramp")
    return values.guard("T.ramp", lambda: T.Ramp(start, step, lanes, user_span()))


#: The node names, for programs written in TVM's style.
Broadcast = broadcast
Ramp = ramp
