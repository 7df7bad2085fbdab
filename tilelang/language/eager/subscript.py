"""Reading and writing ``A[...]``.

On a buffer, a full list of indices is one element, anything else a region. Constant negative
indices and slice bounds count from the end, as in Python. On Python containers the subscript
keeps its Python meaning.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

from tvm import ir, sym
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir.builder import current, current_or_none
from tilelang.ir.expr import const_int, convert
from tilelang.ir.op.copy import copy
from tilelang.ir.op.fill import fill
from tilelang.ir.snapshot import Position, settle, snapshot
from tilelang.ir.span import user_span
from tilelang.language.eager.operators import BINARY_OPERATORS
from tilelang.language.eager.values import (
    Missing,
    Reference,
    describe,
    is_alloc_var,
    is_constant,
    is_scalar,
    python_int,
    read,
)

__all__ = ["INPLACE", "aug_store", "delete_item", "item", "load", "store", "store_element"]

INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.iadd,
    "sub": operator.isub,
    "mul": operator.imul,
    "truediv": operator.itruediv,
    "floordiv": operator.ifloordiv,
    "mod": operator.imod,
    "power": operator.ipow,
    "matmul": operator.imatmul,
    "lshift": operator.ilshift,
    "rshift": operator.irshift,
    "bitand": operator.iand,
    "bitor": operator.ior,
    "bitxor": operator.ixor,
}

#: Narrow and unsigned indices become signed ones that hold every position of a tensor.
_INDEX_DTYPES = {
    **dict.fromkeys(("bool", "int4", "uint4", "int8", "uint8", "int16", "uint16"), "int32"),
    **dict.fromkeys(("uint32", "uint64"), "int64"),
}


def _is_buffer(base: Any) -> bool:
    return type(base) is ir.Var and type(base.ty) is T.BufferType


def item(base: Any, index: Any) -> Any:
    """``base[index]`` without reading a variable found in a Python container."""
    if _is_buffer(base):
        return _access(base, index)
    if isinstance(base, Missing):
        base.fail()
    if isinstance(base, ir.Expr | Reference):
        _refuse_base(base)
    return python_int(base[_python_index(base, index)])


def load(base: Any, index: Any) -> Any:
    """``base[index]``: an element or region of a buffer, or an item of a Python container."""
    return _access(base, index) if _is_buffer(base) else read(item(base, index))


def _refuse_base(base: Any) -> NoReturn:
    if isinstance(base, ir.TensorRegion):
        hint = "index the buffer itself"
    elif isinstance(base, ir.Expr) and not is_scalar(base):
        hint = "make a tensor of a pointer with T.make_tensor"
    else:
        hint = "only buffers and Python containers can be indexed"
        base = read(base)
    raise TraceTypeError(f"{describe(base)} cannot be indexed; {hint}", user_span())


def _python_index(base: Any, index: Any) -> Any:
    if isinstance(index, slice):
        parts = (index.start, index.stop, index.step)
        return slice(*(_static_index(base, part) for part in parts))
    if isinstance(index, tuple):
        return tuple(read(part) if not isinstance(part, slice) else part for part in index)
    return _static_index(base, index)


def _static_index(base: Any, index: Any) -> Any:
    index = python_int(read(index))
    sequence = isinstance(base, list | tuple | str | range) or type(base).__name__ == "Array"
    if isinstance(index, ir.Expr) and sequence:
        raise TraceTypeError(
            f"a Python {type(base).__name__} cannot be indexed by {describe(index)}, which is only "
            "known while the kernel runs; put the values in a buffer, or loop over them with a "
            "compile-time loop",
            user_span(),
        )
    return index


def _indices(buffer: ir.Var, index: Any) -> list[Any]:
    """One entry (index or slice) per dimension of ``buffer``."""
    given = list(index) if isinstance(index, tuple | list) else [index]
    rank = len(buffer.ty.shape)
    dots = [k for k, part in enumerate(given) if part is Ellipsis]
    if len(dots) > 1:
        raise TraceError(f"'{buffer.name}' is indexed with more than one '...'", user_span())
    if dots:
        missing = rank - len(given) + 1
        given[dots[0] : dots[0] + 1] = [slice(None)] * max(0, missing)
    if len(given) > rank:
        raise TraceError(
            f"{describe(buffer)} has {rank} dimensions and is indexed with {len(given)}",
            user_span(),
        )
    return given


def _index(buffer: ir.Var, dim: int, value: Any) -> Any:
    """An index expression; a negative constant counts from the end."""
    value = read(value)
    if isinstance(value, ir.Expr) and not is_constant(value):
        return _index_expr(buffer, value)
    number = const_int(value)
    if number is None:
        try:
            number = operator.index(value)
        except TypeError:
            raise TraceTypeError(
                f"'{buffer.name}' cannot be indexed with {describe(value)}; an index is an integer",
                user_span(),
            ) from None
    if number >= 0:
        return number
    extent = buffer.ty.shape[dim]
    size = const_int(extent)
    if size is None:
        return extent + number
    if size + number < 0:
        raise TraceError(
            f"index {number} is out of range for dimension {dim} of {describe(buffer)}", user_span()
        )
    return size + number


def _index_expr(buffer: ir.Var, value: ir.Expr) -> ir.Expr:
    if is_scalar(value):
        dtype = str(value.ty.dtype)
        if dtype in _INDEX_DTYPES:
            return value.astype(_INDEX_DTYPES[dtype], value.span)
        if dtype.startswith(("int", "uint")):
            return value
    raise TraceTypeError(
        f"'{buffer.name}' cannot be indexed with {describe(value)}; an index is an integer",
        user_span(),
    )


def _access(buffer: ir.Var, index: Any) -> ir.Expr:
    parts = _indices(buffer, index)
    shape = buffer.ty.shape
    if len(parts) == len(shape) and not any(isinstance(part, slice) for part in parts):
        indices = [_index(buffer, dim, part) for dim, part in enumerate(parts)]
        return T.BufferLoad(buffer, indices, user_span())
    parts += [slice(None)] * (len(shape) - len(parts))
    return T.BufferRegion(buffer, [_range(buffer, dim, part) for dim, part in enumerate(parts)])


def _range(buffer: ir.Var, dim: int, part: Any) -> ir.Range:
    if not isinstance(part, slice):
        start = convert(_index(buffer, dim, part))
        return ir.Range.from_min_extent(start, T.const(1, str(start.ty.dtype)))
    if part.step is not None and const_int(part.step) != 1:
        raise TraceError(
            f"a slice of '{buffer.name}' cannot have a step; copy the elements in a T.Parallel "
            "loop",
            user_span(),
        )
    size = buffer.ty.shape[dim]
    start = 0 if part.start is None else _index(buffer, dim, part.start)
    stop = size if part.stop is None else _index(buffer, dim, part.stop)
    first, last = const_int(start), const_int(stop)
    if first is not None and last is not None:
        if last <= first:
            raise TraceError(
                f"slice {first}:{last} of dimension {dim} of {describe(buffer)} is empty",
                user_span(),
            )
        return ir.Range.from_min_extent(convert(start), convert(last - first))
    extent = stop if first == 0 else sym.Analyzer().simplify(convert(stop) - convert(start))
    return ir.Range.from_min_extent(convert(start), convert(extent))


def delete_item(base: Any, index: Any) -> None:
    """``del base[index]``."""
    if isinstance(base, ir.Expr):
        raise TraceError(f"elements of {describe(base)} cannot be deleted", user_span())
    del base[_python_index(base, index)]


def store(value: Any, index: Any, base: Any) -> None:
    """``base[index] = value``."""
    if _is_buffer(base):
        _write(base, _access(base, index), value)
        return
    if isinstance(base, Missing):
        base.fail()
    if isinstance(base, ir.Expr | Reference):
        _refuse_base(base)
    where = _python_index(base, index)
    held = _held(base, where)
    if (is_alloc_var(held) or isinstance(held, Reference)) and not _is_buffer(value):
        store_element(held, value)
        return
    check_state(held, value, f"an item of a Python {type(base).__name__}")
    base[where] = snapshot(value)


_ABSENT = object()


def _held(base: Any, where: Any) -> Any:
    """The item now at ``where``, or a marker if there is none."""
    if isinstance(where, slice) or not isinstance(base, list | dict):
        return _ABSENT
    try:
        return base[where]
    except (LookupError, TypeError):
        return _ABSENT


def check_state(held: Any, value: Any, what: str) -> None:
    """Refuse to change compile-time state where it depends on a run-time condition or loop.

    Raises
    ------
    TraceError
        If a value already there would change inside a run-time loop or branch.
    """
    if held is _ABSENT or held is value:
        return
    builder = current_or_none()
    if builder is not None and builder.in_control_flow:
        raise TraceError(
            f"{what} is changed inside a run-time loop or branch, but it only exists while the "
            "kernel is traced; keep such state in T.alloc_var",
            user_span(),
        )


def store_element(target: Any, value: Any) -> None:
    """Store to the variable or reference ``target``."""
    buffer, indices = (
        (target.buffer, target.indices) if isinstance(target, Reference) else (target, [0])
    )
    span = user_span()
    current("an assignment").emit(T.BufferStore(buffer, _stored(buffer, value), indices, span))


def _stored(buffer: ir.Var, value: Any) -> ir.Expr:
    """``value`` as an element of ``buffer``."""
    value = read(value)
    if isinstance(value, ir.Expr) and not is_scalar(value):
        raise TraceTypeError(
            f"{describe(value)} cannot be stored in one element of '{buffer.name}'", user_span()
        )
    try:
        return _cast(value, buffer.ty.dtype.dtype)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        reason = str(error).splitlines()[0].removeprefix("Check failed: ")
        raise TraceTypeError(
            f"{describe(value)} cannot be stored in '{buffer.name}' of {buffer.ty.dtype}: {reason}",
            user_span(),
        ) from None


def _cast(value: Any, dtype: str) -> ir.Expr:
    if isinstance(value, ir.Expr):
        return value if value.ty == dtype else value.astype(dtype, user_span())
    return convert(value, dtype)


def _write(buffer: ir.Var, target: ir.Expr, value: Any) -> None:
    if isinstance(target, ir.TensorLoad):
        stmt = T.BufferStore(buffer, _stored(buffer, value), list(target.indices), user_span())
        current("a store").emit(stmt)
    elif isinstance(value, ir.TensorRegion) or (_is_buffer(value) and not is_alloc_var(value)):
        copy(value, target)
    else:
        fill(target, read(value))


def aug_store(op: str, base: Any, index: Any, since: Position | None, value: Any) -> None:
    """``base[index] op= value``; base and index are evaluated once, before the value."""
    if not _is_buffer(base):
        held = item(base, index)
        if is_alloc_var(held) or isinstance(held, Reference):
            store_element(held, BINARY_OPERATORS[op](settle(read(held), since), value))
        elif isinstance(held, ir.Expr) or isinstance(value, ir.Expr):
            store(BINARY_OPERATORS[op](settle(held, since), value), index, base)
        else:
            store(INPLACE[op](held, value), index, base)
        return
    target = _access(base, index)
    if isinstance(target, ir.TensorRegion):
        raise TraceError(
            f"{describe(target)} cannot be updated in place; update the elements in a T.Parallel "
            "loop",
            user_span(),
        )
    left = settle(target, since)
    places = [settle(place, since) for place in target.indices]
    target = T.BufferLoad(base, places, user_span())
    _write(base, target, BINARY_OPERATORS[op](left, value))


def slice_(start: Any, stop: Any, step: Any) -> slice:
    """A slice; its bounds are read where it is used."""
    return slice(start, stop, step)
