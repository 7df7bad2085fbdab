"""``T.view`` and ``T.reshape``: another shape or dtype over the same storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError
from tilelang.ir import builder
from tilelang.ir.dtype import declared_dtype
from tilelang.ir.dtype import dtype as as_dtype
from tilelang.ir.expr import const_int, is_buffer

__all__ = ["reshape", "view"]


class ViewError(TraceError, AssertionError):
    """A view does not cover the storage of its source exactly."""


def view(src: Any, shape: Sequence[Any] | None = None, dtype: Any = None) -> ir.Var:
    """Reinterpret the storage of a buffer with another shape, dtype or both; nothing is copied.

    Parameters
    ----------
    src : buffer
        Contiguous, of any scope.
    shape : sequence of int or expression, optional
        Default: the shape of ``src``, the last extent scaled by the ratio of the element sizes.
    dtype : dtype, optional
        Default: the dtype of ``src``.

    Raises
    ------
    ViewError
        If the sizes in bits provably differ or the source is not contiguous.
    """
    span = builder.user_span()
    if not is_buffer(src):
        raise TraceError(f"T.view needs a whole buffer, found {type(src).__name__}", span)
    if len(src.ty.strides):
        raise ViewError(f"T.view needs a contiguous buffer; {src.name} has explicit strides", span)
    old_dtype = declared_dtype(src)
    new_dtype = old_dtype if dtype is None else as_dtype(dtype)
    old_bits, new_bits = (kind.bits * kind.lanes for kind in (old_dtype.storage, new_dtype.storage))
    extents = list(shape) if shape is not None else _scaled(src, old_bits, new_bits, span)
    old_size, new_size = _total(src.shape), _total(extents)
    if old_size is not None and new_size is not None and old_size * old_bits != new_size * new_bits:
        raise ViewError(
            f"T.view: {src.name} holds {old_size} x {old_dtype} = {old_size * old_bits} bits, but "
            f"{tuple(extents)} of {new_dtype} needs {new_size * new_bits} bits",
            span,
        )
    alias = T.decl_buffer(
        extents,
        new_dtype.prim_type,
        f"{src.name}_view",
        scope=src.scope(),
        layout=None,
        # No more than the source promises: its first element may lie anywhere.
        data_alignment=min(new_dtype.storage.itemsize, src.ty.data_alignment),
        span=span,
    )
    builder.emit(T.DeclBuffer(alias, data=src.data, span=span))
    return alias


def reshape(src: Any, shape: Sequence[Any]) -> ir.Var:
    """The same storage with another shape. See :func:`view`."""
    return view(src, shape)


def _scaled(src: ir.Var, old_bits: int, new_bits: int, span: ir.Span | None) -> list[Any]:
    *leading, last = list(src.shape)
    size = const_int(last)
    if size is None:
        scaled: Any = last * old_bits // new_bits
    elif size * old_bits % new_bits:
        raise ViewError(
            f"T.view: {size} elements of {old_bits} bits are no whole number of "
            f"{new_bits}-bit elements",
            span,
        )
    else:
        scaled = size * old_bits // new_bits
    return [*leading, scaled]


def _total(shape: Sequence[Any]) -> int | None:
    sizes = [const_int(extent) for extent in shape]
    return (
        None
        if any(size is None for size in sizes)
        else math.prod(s for s in sizes if s is not None)
    )
