"""Explicit memory accesses of 32 to 256 bits, and reads through the read-only cache.

A wide value is a ``uint32`` (vector); use ``T.reinterpret`` for other types. Addresses must be
aligned to the width.
"""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceTypeError
from tilelang.ir import intrin
from tilelang.ir.expr import is_buffer
from tilelang.ir.span import user_span
from tilelang.ir.values import as_scalar, element_type

__all__ = [
    "__ldg",
    "ldg32",
    "ldg64",
    "ldg128",
    "ldg256",
    "lds32",
    "lds64",
    "lds128",
    "stg32",
    "stg64",
    "stg128",
    "stg256",
    "sts32",
    "sts64",
    "sts128",
]


def __ldg(load_or_buf: Any, index: Any = None) -> ir.Expr:
    """Read an element that no one writes, through the read-only cache; on every backend.

    Parameters
    ----------
    load_or_buf : element or buffer
    index : expression or tuple of them, optional
        Where, for a buffer.

    Raises
    ------
    TraceTypeError
        If the operand is no element, or a buffer comes without an index.
    """
    if is_buffer(load_or_buf) and index is not None:
        indices = list(index) if isinstance(index, (tuple, list)) else [index]
        load_or_buf = T.BufferLoad(load_or_buf, indices, user_span())
    return intrin.get("__ldg")(load_or_buf)


def _load(space: str, bits: int, src: Any, pred: Any = None) -> ir.Expr:
    return intrin.get(f"ld{space}{bits}")(src, *(() if pred is None else (pred,)))


def _store(space: str, bits: int, dst: Any, value: Any, pred: Any = None) -> None:
    stored = as_scalar(value, f"T.st{space}{bits}")
    kind = element_type(stored)
    if kind.bits * kind.lanes != bits:
        raise TraceTypeError(
            f"T.st{space}{bits}: the value must have {bits} bits, found {kind}", user_span()
        )
    intrin.get(f"st{space}{bits}").emit(dst, stored, *(() if pred is None else (pred,)))


def ldg32(src: Any, pred: Any = None) -> ir.Expr:
    """Load 32 bits from global memory as uint32.

    Parameters
    ----------
    src : pointer, buffer or element
    pred : bool expression, optional
        Where it does not hold the result is 0 and nothing is read.
    """
    return _load("g", 32, src, pred)


def ldg64(src: Any, pred: Any = None) -> ir.Expr:
    """Load 64 bits from global memory as uint32x2; see :func:`ldg32`."""
    return _load("g", 64, src, pred)


def ldg128(src: Any, pred: Any = None) -> ir.Expr:
    """Load 128 bits from global memory as uint32x4; see :func:`ldg32`."""
    return _load("g", 128, src, pred)


def ldg256(src: Any, pred: Any = None) -> ir.Expr:
    """Load 256 bits from global memory as uint32x8 (sm_100); see :func:`ldg32`."""
    return _load("g", 256, src, pred)


def stg32(dst: Any, value: Any, pred: Any = None) -> None:
    """Store 32 bits to global memory.

    Parameters
    ----------
    dst : pointer, buffer or element
    value : expression of that many bits
    pred : bool expression, optional
        Where it does not hold nothing is written.

    Raises
    ------
    TraceTypeError
        If ``value`` has another size.
    """
    _store("g", 32, dst, value, pred)


def stg64(dst: Any, value: Any, pred: Any = None) -> None:
    """Store 64 bits to global memory; see :func:`stg32`."""
    _store("g", 64, dst, value, pred)


def stg128(dst: Any, value: Any, pred: Any = None) -> None:
    """Store 128 bits to global memory; see :func:`stg32`."""
    _store("g", 128, dst, value, pred)


def stg256(dst: Any, value: Any, pred: Any = None) -> None:
    """Store 256 bits to global memory (sm_100); see :func:`stg32`."""
    _store("g", 256, dst, value, pred)


def lds32(src: Any) -> ir.Expr:
    """Load 32 bits from shared memory as uint32."""
    return _load("s", 32, src)


def lds64(src: Any) -> ir.Expr:
    """Load 64 bits from shared memory as uint32x2."""
    return _load("s", 64, src)


def lds128(src: Any) -> ir.Expr:
    """Load 128 bits from shared memory as uint32x4."""
    return _load("s", 128, src)


def sts32(dst: Any, value: Any) -> None:
    """Store 32 bits to shared memory."""
    _store("s", 32, dst, value)


def sts64(dst: Any, value: Any) -> None:
    """Store 64 bits to shared memory."""
    _store("s", 64, dst, value)


def sts128(dst: Any, value: Any) -> None:
    """Store 128 bits to shared memory."""
    _store("s", 128, dst, value)
