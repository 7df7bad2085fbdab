"""Canonical arguments: every way to write the same call finds the same kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["ArgumentBinder", "Binding", "call_form", "token"]

_PLAIN = frozenset({int, bool, str, bytes, type(None)})


def token(value: Any) -> Hashable:
    """A hashable stand-in for a compile-time value; equal iff the values give the same kernel.

    Types count (``1``, ``True`` and ``1.0`` are three programs), and so do the sign of zero and
    the order of a dict. Lists, dicts and sets may nest.

    Raises
    ------
    TypeError
        If the value, or one inside it, is neither hashable nor one of these containers.
    """
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if isinstance(value, float):
        return kind, value.hex()
    if isinstance(value, (list, tuple)):
        return kind, tuple(map(token, value))
    if isinstance(value, Mapping):
        return kind, tuple((token(key), token(item)) for key, item in value.items())
    if isinstance(value, (set, frozenset)):
        return kind, frozenset(map(token, value))
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            "Unsupported unhashable JIT compile-time cache key value of type "
            f"'{kind.__name__}'; hashable values, lists, dicts and sets are supported"
        ) from None
    return kind, value


def call_form(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
    """The arguments exactly as written, to recognise a repeated call without binding it."""
    if not kwargs:
        return tuple(map(token, args))
    return tuple(map(token, args)), tuple((name, token(value)) for name, value in kwargs.items())


@dataclass(frozen=True)
class Binding:
    """Arguments in their places, defaults filled in.

    ``values`` holds the parameters by name in the order of the signature, a ``**kwargs``
    parameter under its own name; ``extras`` keyword arguments the signature does not know;
    ``key`` is canonical over all of them except the parameters left out of it.
    """

    values: Mapping[str, Any]
    extras: Mapping[str, Any]
    key: tuple[tuple[Hashable, ...], tuple[tuple[str, Hashable], ...]]

    def call(self, func: Callable[..., Any]) -> Any:
        """Call ``func``, which has the bound signature."""
        args, kwargs = _call_arguments(func, self.values)
        return func(*args, **kwargs, **self.extras)


class ArgumentBinder:
    """Binds calls of ``func`` as Python would, and derives their key.

    Parameters
    ----------
    func : callable
    not_in_key : collection of str
        Parameters whose values do not shape the kernel (tensors and run-time scalars).
    """

    def __init__(self, func: Callable[..., Any], not_in_key: Collection[str] = ()) -> None:
        self.signature = inspect.signature(func)
        self._not_in_key = frozenset(not_in_key)
        kinds = {param.kind for param in self.signature.parameters.values()}
        self._takes_any_keyword = inspect.Parameter.VAR_KEYWORD in kinds

    def bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, optional: bool = False
    ) -> Binding:
        """Put the arguments in their places.

        Parameters
        ----------
        args, kwargs
            As written in the call.
        optional : bool
            Arguments may be missing; they are then missing in the result.

        Raises
        ------
        TypeError
            As a Python call would: a missing argument, several values for one; or a value that
            cannot be part of a key.
        """
        parameters = self.signature.parameters
        own, extras = dict(kwargs), {}
        if not self._takes_any_keyword:
            extras = {name: own.pop(name) for name in kwargs if name not in parameters}
        bind = self.signature.bind_partial if optional else self.signature.bind
        bound = bind(*args, **own)
        bound.apply_defaults()
        return Binding(bound.arguments, extras, self._key(bound.arguments, extras))

    def flatten(self, binding: Binding) -> dict[str, Any]:
        """All values by name, those of a ``**kwargs`` parameter under their own names."""
        flat: dict[str, Any] = {}
        for name, value in binding.values.items():
            if self.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                flat.update(value)
            else:
                flat[name] = value
        return {**flat, **binding.extras}

    def _key(
        self, values: Mapping[str, Any], extras: Mapping[str, Any]
    ) -> tuple[tuple[Hashable, ...], tuple[tuple[str, Hashable], ...]]:
        placed: list[Hashable] = []
        named = dict(extras)
        for name, value in values.items():
            if self.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                named.update(value)
            elif name not in self._not_in_key:
                placed.append(token(value))
        return tuple(placed), tuple((name, token(named[name])) for name in sorted(named))


def _call_arguments(
    func: Callable[..., Any], values: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for name, param in inspect.signature(func).parameters.items():
        if param.kind is inspect.Parameter.VAR_POSITIONAL:
            args.extend(values[name])
        elif param.kind is inspect.Parameter.VAR_KEYWORD:
            kwargs.update(values[name])
        elif param.kind is inspect.Parameter.KEYWORD_ONLY:
            kwargs[name] = values[name]
        else:
            args.append(values[name])
    return args, kwargs
