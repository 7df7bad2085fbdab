"""Assigning to names, attributes and tuples of them.

The value decides what an assignment means: a run-time expression is evaluated here, once, and the
name stands for the result; a Python value, buffer, region or variable is just named. Assigning to
a name that holds a variable of ``T.alloc_var`` (or a ``T.Ref`` parameter) stores to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tvm_ffi
from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir.builder import current_or_none
from tilelang.ir.dtype import dtype as to_dtype
from tilelang.ir.snapshot import Position, settle, snapshot
from tilelang.ir.span import user_span
from tilelang.language.eager.operators import BINARY_OPERATORS
from tilelang.language.eager.subscript import INPLACE, check_state, store_element
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

__all__ = [
    "Ref",
    "ann_assign",
    "argument",
    "assign",
    "aug_assign",
    "aug_attr",
    "element",
    "evaluate_once",
    "hint",
    "iterate",
    "named",
    "once",
    "reference",
    "set_attr",
    "settle_all",
    "unpack",
]


def hint(name: str) -> str:
    """Announce the name that the value about to be evaluated will get."""
    builder = current_or_none()
    if builder is not None:
        builder.name_hint = name
    return name


def _clear_hint() -> None:
    builder = current_or_none()
    if builder is not None:
        builder.name_hint = None


def named(name: str, value: Any) -> Any:
    """``value`` itself; ``name`` was announced while it was evaluated."""
    del name
    return value


def evaluate_once(name: str, value: Any) -> Any:
    """Bind a run-time expression to a fresh variable; everything else is returned unchanged."""
    value = read(value) if not is_alloc_var(value) else value
    if not isinstance(value, ir.Expr) or isinstance(value, ir.Var) or is_constant(value):
        return value
    if isinstance(value, ir.TensorRegion):
        return snapshot(value, name)
    if not isinstance(value.ty, ir.PrimType | ir.PointerType) or value.ty == "void":
        return value
    builder = current_or_none()
    return value if builder is None else builder.bind(name, value)


def element(value: Any) -> Any:
    """A value that a Python container will hold: what it reads from memory is read now."""
    builder = current_or_none()
    return value if builder is None else snapshot(value, builder.take_name("value"))


class Ref:
    """Annotation of a macro parameter that is passed by reference. ``T.Var`` is its old spelling.

    The argument is a variable of ``T.alloc_var``, an element ``A[i]`` or a slice; assigning to the
    parameter stores to it. The index is evaluated at the call.

    Examples
    --------
    >>> @T.macro  # doctest: +SKIP
    ... def increment(x: T.Ref, by):
    ...     x += by
    """


def reference(name: str, value: Any) -> Any:
    """What a ``T.Ref`` parameter holds for the argument ``value``."""
    if isinstance(value, Reference | ir.TensorRegion):
        return value
    if isinstance(value, ir.TensorLoad):
        if value.source.scope() == "local.var":
            return value.source
        indices = [evaluate_once(f"{name}_index", index) for index in value.indices]
        return Reference(value.source, indices)
    if isinstance(value, ir.Var) and not isinstance(value.ty, ir.PrimType):
        return value
    raise TraceTypeError(
        f"parameter '{name}' is a T.Ref and takes a variable of T.alloc_var, an element or a "
        f"slice; found {describe(value)}",
        user_span(),
    )


def argument(name: str, value: Any, annotation: Any = None) -> Any:
    """A parameter of a nested function: a reference, or the value at the call."""
    return reference(name, value) if annotation is Ref else snapshot(value, name)


def settle_all(*items: Any) -> list[Any]:
    """Operands that alternate with the positions after them, each as it was when evaluated."""
    values, places = list(items[::2]), items[1::2]
    for k in range(len(places) - 1, -1, -1):  # from the last, so that positions stay valid
        values[k] = settle(values[k], places[k])
    return values


def assign(name: str, value: Any, held: Any) -> Any:
    """What the name is bound to after ``name = value``; ``held`` is what it holds before."""
    _clear_hint()
    kind = type(held)
    if kind is Reference or (kind is ir.Var and is_alloc_var(held)):
        if not (isinstance(value, ir.Var) and isinstance(value.ty, T.BufferType)):
            if not (is_scalar(read(value)) or isinstance(value, bool | int | float)):
                raise TraceTypeError(
                    f"'{name}' is a variable of T.alloc_var and cannot hold {describe(value)}",
                    user_span(),
                )
            store_element(held, value)
            return held
    return evaluate_once(name, value)


def once(name: str, value: Any) -> Any:
    """The value of a chained assignment, evaluated once for all targets."""
    _clear_hint()
    return evaluate_once(name, value)


def ann_assign(name: str, value: Any, annotation: Any, held: Any) -> Any:
    """``name: annotation = value``: a dtype converts the value, other annotations say nothing."""
    if isinstance(annotation, to_dtype):
        value = _converted(name, value, annotation)
    return assign(name, value, held)


def _converted(name: str, value: Any, annotation: to_dtype) -> Any:
    if isinstance(value, bool | int | float) or is_scalar(value):
        return annotation(value)
    raise TraceTypeError(f"'{name}: {annotation}' cannot hold {describe(value)}", user_span())


def aug_assign(name: str, op: str, held: Any, since: Position | None, value: Any) -> Any:
    """``name op= value``; ``since`` is the place from before the value was evaluated."""
    if isinstance(held, Missing):
        held.fail()
    if is_alloc_var(held) or isinstance(held, Reference):
        store_element(held, BINARY_OPERATORS[op](settle(read(held), since), value))
        return held
    if isinstance(held, ir.Var) and isinstance(held.ty, T.BufferType):
        raise TraceError(
            f"{describe(held)} cannot be updated as a whole; update its elements "
            f"({name}[i] = ...) in a T.Parallel loop",
            user_span(),
        )
    return evaluate_once(name, _updated(op, settle(held, since), value))


def _updated(op: str, held: Any, value: Any) -> Any:
    if isinstance(held, ir.Expr) or isinstance(value, ir.Expr):
        return BINARY_OPERATORS[op](held, value)
    return INPLACE[op](held, value)


_ABSENT = object()


def set_attr(name: str, value: Any, owner: Any, attribute: str) -> None:
    """``owner.attribute = value`` on a compile-time object."""
    _clear_hint()
    if isinstance(owner, ir.Expr | Missing):
        raise TraceError(f"attributes of {describe(owner)} cannot be assigned", user_span())
    held = getattr(owner, attribute, _ABSENT)
    if held is _ABSENT:
        setattr(owner, attribute, evaluate_once(name, value))
        return
    stores = is_alloc_var(held) or isinstance(held, Reference)
    new = assign(name, value, held)
    if stores and new is held:
        return
    check_state(held, new, f"attribute '{attribute}' of a {type(owner).__name__}")
    setattr(owner, attribute, new)


def aug_attr(op: str, owner: Any, attribute: str, since: Position | None, value: Any) -> None:
    """``owner.attribute op= value``."""
    held = getattr(owner, attribute)
    if is_alloc_var(held) or isinstance(held, Reference):
        store_element(held, BINARY_OPERATORS[op](settle(read(held), since), value))
    else:
        set_attr(attribute, _updated(op, settle(held, since), value), owner, attribute)


def iterate(value: Any) -> Iterable[Any]:
    """A Python iterable over compile-time values.

    Raises
    ------
    TraceTypeError
        If ``value`` is a run-time expression or a buffer.
    """
    value = read(value)
    if isinstance(value, ir.Expr):
        raise TraceTypeError(
            f"cannot iterate over {describe(value)}; loop over its indices with T.serial, "
            "T.Parallel or range",
            user_span(),
        )
    if isinstance(value, tvm_ffi.Array):
        return [python_int(element) for element in value]
    iterable: Iterable[Any] = value
    return iterable


def unpack(value: Any, pattern: tuple[Any, ...]) -> list[Any]:
    """The values for the targets of ``pattern``, flattened.

    All run-time values are evaluated before any target is assigned, so ``a, b = b, a`` swaps.
    """
    _clear_hint()
    leaves: list[Any] = []
    _unpack(value, pattern, leaves)
    return leaves


def _unpack(value: Any, pattern: tuple[Any, ...], leaves: list[Any]) -> None:
    # A launch or loop of one dimension yields a lone variable; `as (bx,)` takes it.
    lone = (
        len(pattern) == 1 and isinstance(value, ir.Var) and not isinstance(value.ty, T.BufferType)
    )
    if not lone and isinstance(read(value), ir.Expr):
        raise TraceTypeError(
            f"{describe(value)} is one value and cannot be unpacked to {len(pattern)} names",
            user_span(),
        )
    values = [value] if lone else list(iterate(value))
    starred = [
        k for k, part in enumerate(pattern) if isinstance(part, tuple) and part[:1] == ("*",)
    ]
    if starred:
        first, after = starred[0], len(pattern) - starred[0] - 1
        if len(values) >= len(pattern) - 1:
            rest = values[first : len(values) - after]
            values = [*values[:first], rest, *values[len(values) - after :]]
    if len(values) != len(pattern):
        few = "not enough" if len(values) < len(pattern) else "too many"
        raise TraceError(
            f"{few} values to unpack (expected {len(pattern)}, got {len(values)})", user_span()
        )
    for part, element in zip(pattern, values, strict=True):
        if isinstance(part, tuple) and part[:1] == ("*",):
            leaves.append([evaluate_once(str(part[1]), e) for e in element])
        elif isinstance(part, tuple):
            _unpack(element, part, leaves)
        else:
            leaves.append(evaluate_once(part or "value", element))
