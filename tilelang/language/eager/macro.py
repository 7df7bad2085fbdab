"""Functions traced into their caller: ``T.macro``, ``T.inline``, ``T.meta_class``, ``T.Ref``."""

from __future__ import annotations

import ast
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, TypeVar

from tvm import ir

from tilelang.errors import TraceError
from tilelang.ir import builder
from tilelang.ir.span import user_span
from tilelang.language.eager import runtime
from tilelang.language.eager.binding import Ref, evaluate_once, reference
from tilelang.language.eager.source import code_of, parse_function, rewrite_function
from tilelang.language.eager.values import is_constant

__all__ = ["Macro", "Ref", "inline", "macro", "meta_class"]

C = TypeVar("C", bound=type)


def _names(annotation: Any, kind: type, text: str) -> bool:
    return annotation is kind or (
        isinstance(annotation, str) and annotation.rpartition(".")[2] == text
    )


class Macro:
    """A function that is traced into each of its callers. Methods work too."""

    def __init__(self, func: Callable[..., Any], outside: bool = False) -> None:
        self.__name__ = code_of(func).co_name
        functools.update_wrapper(self, func)
        self.func = func
        self.outside = outside  # whether it is a plain function outside a kernel
        self.signature = inspect.signature(func)
        kinds = func.__annotations__.items()
        self._refs = {name for name, kind in kinds if _names(kind, Ref, "Ref")}
        self._old_refs = {name for name, kind in kinds if _names(kind, ir.Var, "Var")}

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Trace the body here and return what it returns."""
        active = builder.current_or_none()
        if active is None and self.outside:
            return self.func(*args, **kwargs)
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            bound.arguments[name] = self._taken(name, value)
        twin = rewrite_function(self.func, runtime)
        if active is None:
            return twin(*bound.args, **bound.kwargs)
        hint, active.name_hint = active.name_hint, None
        depth = len(active.frames)
        result = twin(*bound.args, **bound.kwargs)
        if len(active.frames) != depth:
            raise TraceError(f"macro '{self.__name__}' leaves a block open", user_span())
        active.name_hint = hint
        return result

    def _taken(self, name: str, value: Any) -> Any:
        """What the parameter ``name`` holds for the argument(s) ``value``."""
        kind = self.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            return tuple(self._argument(name, each) for each in value)
        if kind is inspect.Parameter.VAR_KEYWORD:
            return {key: self._argument(key, each) for key, each in value.items()}
        return self._argument(name, value)

    def _argument(self, name: str, value: Any) -> Any:
        if name in self._refs or (name in self._old_refs and isinstance(value, ir.TensorLoad)):
            return reference(name, value)
        if isinstance(value, ir.Expr) and not isinstance(value, ir.Var) and not is_constant(value):
            return evaluate_once(name, value)
        return value


def macro(func: Callable[..., Any] | None = None) -> Any:
    """Trace a function into its caller instead of calling it.

    Expressions passed as arguments are evaluated once, at the call; parameters annotated with
    :class:`Ref` are passed by reference. The function may return values, but not from inside
    run-time control flow.

    Raises
    ------
    TraceError
        If it emits statements and is called outside a kernel.

    Examples
    --------
    >>> @T.macro  # doctest: +SKIP
    ... def scale(tile, factor):
    ...     for i in T.Parallel(tile.shape[0]):
    ...         tile[i] *= factor
    """
    return Macro if func is None else Macro(func)


def inline(func: Callable[..., Any]) -> Any:
    """A method or function that is traced into its caller, and is a plain function elsewhere."""
    return Macro(func, outside=True)


class _NamingMacro(Macro):
    """The constructor of a meta class: buffers it assigns to attributes are named after it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        active = builder.current_or_none()
        if active is None:
            return super().__call__(*args, **kwargs)
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        outer, name = active.name_prefix, bound.arguments.get("name")
        active.name_prefix = f"{outer}{name}_" if isinstance(name, str) else outer
        result = super().__call__(*args, **kwargs)
        active.name_prefix = outer
        return result


def _stores_to_subscript(func: Callable[..., Any]) -> bool:
    return any(
        isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        for node in ast.walk(parse_function(func))
    )


def meta_class(cls: C) -> C:
    """A compile-time helper whose methods emit code.

    Methods that store to a subscript are traced into their callers, as is the constructor; buffers
    that the constructor assigns to attributes are named ``<name>_<attribute>`` when it has a
    ``name`` argument. Other methods stay plain Python; mark them with :func:`inline` if needed.

    Examples
    --------
    >>> @T.meta_class  # doctest: +SKIP
    ... class Counter:
    ...     def __init__(self, name=None):
    ...         self.value = T.alloc_local((1,), "int32")
    ...         self.value[0] = 0
    """
    for attribute, value in list(vars(cls).items()):
        if not isinstance(value, types.FunctionType):
            continue
        if attribute == "__init__":
            setattr(cls, attribute, _NamingMacro(value, outside=True))
        elif _stores_to_subscript(value):
            setattr(cls, attribute, inline(value))
    return cls
