"""Integer arithmetic, comparison and selection: ``T.ceildiv``, ``T.max``, ``T.if_then_else``, ...

Python integers give Python integers, so these functions also serve in shapes and loop extents. An
operand that is a Python number takes the dtype of the other one if it fits. ``//`` and ``%``
floor, ``T.truncdiv`` and ``T.truncmod`` round toward zero as C does. Every backend has them::

    with T.Kernel(T.ceildiv(N, block), threads=128) as bx: ...
    C[i] = T.if_then_else(i < N, A[i], 0.0)      # A[i] is only read where i < N
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm.ir import prim

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import arith, builder, intrin
from tilelang.ir.expr import const_int, dtype_of, is_buffer
from tilelang.ir.span import user_span
from tilelang.ir.values import cast, is_number, match_pair, plain

__all__ = [
    "Select",
    "align_up",
    "cdiv",
    "ceildiv",
    "dp4a",
    "floordiv",
    "floormod",
    "if_then_else",
    "index_to_coordinates",
    "likely",
    "max",
    "min",
    "q_multiply_shift",
    "q_multiply_shift_per_axis",
    "truncdiv",
    "truncmod",
]


def ceildiv(a: Any, b: Any) -> Any:
    """The mathematical ceiling of ``a / b`` for integers.

    Raises
    ------
    TraceTypeError
        If an operand is no integer.
    """
    return arith.ceildiv(a, b)


def cdiv(a: Any, b: Any) -> Any:
    """The same as :func:`ceildiv`."""
    return arith.ceildiv(a, b)


def align_up(x: Any, y: Any) -> Any:
    """The smallest multiple of ``y`` not below ``x``."""
    return arith.multiply(arith.ceildiv(x, y), y)


def floordiv(a: Any, b: Any) -> Any:
    """``a // b`` of integers, rounded down."""
    return arith.floordiv(a, b)


def floormod(a: Any, b: Any) -> Any:
    """``a % b`` of integers, with the sign of ``b``."""
    return arith.floormod(a, b)


def truncdiv(a: Any, b: Any) -> Any:
    """``a / b`` of integers, rounded toward zero as in C."""
    return arith.truncdiv(a, b)


def truncmod(a: Any, b: Any) -> Any:
    """The remainder of :func:`truncdiv`, with the sign of ``a``."""
    return arith.truncmod(a, b)


def max(a: Any, b: Any, *more: Any) -> Any:
    """The largest operand; where one is NaN, the other one."""
    result = arith.maximum(a, b)
    for value in more:
        result = arith.maximum(result, value)
    return result


def min(a: Any, b: Any, *more: Any) -> Any:
    """The smallest operand; where one is NaN, the other one."""
    result = arith.minimum(a, b)
    for value in more:
        result = arith.minimum(result, value)
    return result


def Select(condition: Any, true_value: Any, false_value: Any) -> ir.Expr:
    """``true_value`` where ``condition`` holds, else ``false_value``; both are evaluated.

    A read that may be out of bounds belongs into :func:`if_then_else`.
    """
    a, b, _ = match_pair(plain(true_value), plain(false_value), "T.Select")
    return prim.Select(arith.truth(condition, "T.Select"), a, b, user_span())


def if_then_else(condition: Any, true_value: Any, false_value: Any) -> ir.Expr:
    """``true_value`` if ``condition`` holds, else ``false_value``; only that one is evaluated.

    A constant condition chooses while tracing.
    """
    a, b, kind = match_pair(plain(true_value), plain(false_value), "T.if_then_else")
    condition = plain(condition)
    if is_number(condition):
        return a if condition else b
    return intrin.get("if_then_else")(arith.truth(condition, "T.if_then_else"), a, b, dtype=kind)


def likely(condition: Any) -> ir.Expr:
    """The condition, with the hint that it mostly holds."""
    return intrin.get("likely")(arith.truth(condition, "T.likely"))


def q_multiply_shift(x: Any, y: Any, q: Any, s: Any) -> ir.Expr:
    """``round(x * y * 2**-s)`` of fixed-point numbers with ``q`` fraction bits (int32)."""
    return intrin.get("q_multiply_shift")(x, y, q, s)


def q_multiply_shift_per_axis(
    x: Any, y: Any, ls: Any, rs: Any, q: Any, is_lshift_required: Any, is_rshift_required: Any
) -> ir.Expr:
    """Fixed-point multiplication with shifts left before and right after it (int32)."""
    return intrin.get("q_multiply_shift_per_axis")(
        x, y, ls, rs, q, is_lshift_required, is_rshift_required
    )


def index_to_coordinates(index: Any, shape: Sequence[Any]) -> list[Any]:
    """Split a row-major flat index into one coordinate a dimension of ``shape``.

    Example: ``T.index_to_coordinates(7, (2, 4))`` is ``[1, 3]``.

    Raises
    ------
    TraceError
        If ``shape`` is empty or has a constant extent that is not positive.
    """
    known = [size for size in map(const_int, shape) if size is not None]
    if not shape or any(size <= 0 for size in known):
        raise TraceError(
            f"T.index_to_coordinates needs positive extents, found {tuple(shape)}", user_span()
        )
    coordinates, rest = [], index
    for extent in reversed(list(shape)[1:]):
        coordinates.append(arith.floormod(rest, extent))
        rest = arith.floordiv(rest, extent)
    return [rest, *reversed(coordinates)]


def dp4a(A: Any, B: Any, C: Any) -> None:
    """``C += A[0]*B[0] + ... + A[3]*B[3]`` of consecutive int8 (or uint8) elements, in int32.

    Parameters
    ----------
    A, B : buffer or element
        The first of four elements along the last dimension.
    C : buffer or element
        The int32 element that accumulates.

    Raises
    ------
    TraceTypeError
        If an operand is no element or has another dtype.
    """
    span = user_span()
    a, b, c = (
        _first_element(value, f"T.dp4a: {name}")
        for name, value in zip("ABC", (A, B, C), strict=True)
    )
    for name, load, allowed in (("A", a, _BYTES), ("B", b, _BYTES), ("C", c, ("int32",))):
        if dtype_of(load) not in allowed:
            raise TraceTypeError(
                f"T.dp4a: {name} must be {' or '.join(allowed)}, found {dtype_of(load)}", span
            )
    total: Any = c
    for lane in range(4):
        product = arith.multiply(cast(_shifted(a, lane), "int32"), cast(_shifted(b, lane), "int32"))
        total = arith.add(total, product)
    builder.current("T.dp4a").emit(T.BufferStore(c.source, total, list(c.indices), span))


_BYTES = ("int8", "uint8")


def _first_element(value: Any, what: str) -> ir.TensorLoad:
    if is_buffer(value):
        return T.BufferLoad(value, [0] * len(value.shape), user_span())
    if isinstance(value, ir.TensorRegion):
        return T.BufferLoad(value.source, [r.min for r in value.region], user_span())
    if isinstance(value, ir.TensorLoad):
        return value
    raise TraceTypeError(
        f"{what} must be a buffer or element, found {type(value).__name__}", user_span()
    )


def _shifted(load: ir.TensorLoad, lane: int) -> ir.TensorLoad:
    *leading, last = load.indices
    return T.BufferLoad(load.source, [*leading, arith.add(last, lane)], user_span())
