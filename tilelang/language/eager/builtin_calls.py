"""Python builtins that have a meaning for run-time values (``min``, ``abs``, ``len``, ...)."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm.ir.prim import _ffi_api as _prim

from tilelang.errors import TraceTypeError
from tilelang.ir.expr import const_int, const_number
from tilelang.ir.span import user_span
from tilelang.language.eager.binding import iterate
from tilelang.language.eager.logic import logic
from tilelang.language.eager.operators import BINARY_OPERATORS
from tilelang.language.eager.values import (
    describe,
    guarded,
    operand,
    python_int,
    read,
    refuse,
    truth,
)

__all__ = ["BUILTINS", "builtin"]


def _extreme(name: str, node: Callable[..., Any], python: Callable[..., Any]) -> Callable[..., Any]:
    def apply(*args: Any, **options: Any) -> Any:
        values = [read(value) for value in (iterate(args[0]) if len(args) == 1 else args)]
        if options or not any(isinstance(value, ir.Expr) for value in values):
            return python(*args, **options)
        result = values[0]
        for value in values[1:]:
            a, b = operand(result), operand(value)
            if a is None or b is None:
                raise refuse(name, result, value)
            result = guarded(name, node, a, b, user_span())
        return result

    return apply


def _no_conversion(python: Callable[..., Any], dtype: str) -> Callable[..., Any]:
    def apply(value: Any = 0, *rest: Any) -> Any:
        value = read(value)
        if isinstance(value, ir.Expr):
            number = const_number(value)
            if number is None:
                raise TraceTypeError(
                    f"{python.__name__}() of {describe(value)}: the value is only known while "
                    f"the kernel runs; use T.cast(x, '{dtype}')",
                    user_span(),
                )
            value = number
        return python(value, *rest)

    return apply


def _absolute(value: Any) -> Any:
    value = read(value)
    return guarded("abs", T.abs, value, user_span()) if isinstance(value, ir.Expr) else abs(value)


def _length(value: Any) -> Any:
    if isinstance(value, ir.Var) and isinstance(value.ty, T.BufferType):
        extent = value.ty.shape[0]
        return extent if const_int(extent) is None else const_int(extent)
    return len(value)


def _round(value: Any, *digits: Any) -> Any:
    value = read(value)
    return T.round(value, user_span()) if isinstance(value, ir.Expr) else round(value, *digits)


def _divmod(a: Any, b: Any) -> Any:
    return BINARY_OPERATORS["floordiv"](a, b), BINARY_OPERATORS["mod"](a, b)


def _power_builtin(a: Any, b: Any, *modulus: Any) -> Any:
    return pow(a, b, *modulus) if modulus else BINARY_OPERATORS["power"](a, b)


def _range(*args: Any) -> range:
    numbers = [python_int(read(arg)) for arg in args]
    for number in numbers:
        if isinstance(number, ir.Expr):
            raise TraceTypeError(
                f"range() with {describe(number)} is a loop of the kernel and only possible in a "
                "for statement",
                user_span(),
            )
    return range(*numbers)


def _iterating(python: Callable[..., Any], which: slice) -> Callable[..., Any]:
    """A builtin that iterates over some arguments, which must not be buffers or expressions."""

    def apply(*args: Any, **options: Any) -> Any:
        values = list(args)
        values[which] = [iterate(arg) for arg in values[which]]
        return python(*values, **options)

    return apply


#: Traced forms of builtins.
BUILTINS: dict[Any, Callable[..., Any]] = {
    builtins.abs: _absolute,
    builtins.all: lambda values: logic("and", iterate(values)),
    builtins.any: lambda values: logic("or", iterate(values)),
    builtins.bool: lambda value=False: truth(value),
    builtins.divmod: _divmod,
    builtins.float: _no_conversion(float, "float32"),
    builtins.int: _no_conversion(int, "int32"),
    builtins.len: _length,
    builtins.max: _extreme("max", _prim._OpMax, max),
    builtins.min: _extreme("min", _prim._OpMin, min),
    builtins.pow: _power_builtin,
    builtins.range: _range,
    builtins.round: _round,
    **{
        function: _iterating(function, slice(0, None))
        for function in (dict, frozenset, iter, list, reversed, set, tuple, zip)
    },
    **{function: _iterating(function, slice(0, 1)) for function in (enumerate, sorted, sum)},
    **{function: _iterating(function, slice(1, None)) for function in (filter, map)},
}


def builtin(function: Any) -> Any:
    """The traced form of a Python builtin, or ``function`` itself if it was replaced."""
    try:
        return BUILTINS.get(function, function)
    except TypeError:  # unhashable
        return function
