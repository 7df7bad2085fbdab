"""Eager kernels for the JIT: two-phase tracing of a function whose sizes come from its arguments.

Phase 1, :meth:`EagerFunction.signature`, runs the function until its tensors are declared and says
which sizes (``T.const``) they determine. Phase 2, :meth:`EagerFunction.trace`, runs it again with
the values of these sizes and returns the program::

    kernel = EagerFunction(func)
    kernel.runtime_names                  # ("A", "B", "scale"): tensors, pointers, scalars
    kernel.static_names                   # ("block_M", "dtype"): compile-time parameters
    sig = kernel.signature({"block_M": 64})
    sig.arguments["A"].shape              # (M, 128): ints, T.const and T.dynamic variables
    sig.consts["M"]                       # ConstSource("A", "shape", 0)
    program = kernel.trace({"block_M": 64}, {"M": 1024})

Defaults of compile-time parameters are filled in. Sizes that no argument determines must be in
``const_values`` of :meth:`~EagerFunction.trace` too; it raises a TraceError naming them otherwise.
"""

from __future__ import annotations
import __future__

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError
from tilelang.ir.span import user_frame
from tilelang.language.eager.failures import short_traceback
from tilelang.language.eager.resolve import Resolver, declared_in_body
from tilelang.language.eager.session import ArgumentSpec, Session
from tilelang.language.eager.source import code_of, function_span
from tilelang.language.eager.tracer import (
    check_parameters,
    evaluate_annotation,
    trace_function,
    trace_signature,
)
from tilelang.language.tensor import TensorSpec

__all__ = ["ConstSource", "EagerFunction", "EagerSignature"]


@dataclass(frozen=True)
class ConstSource:
    """Where the value of a ``T.const`` size is found: a dimension of an argument."""

    argument: str
    field: Literal["shape", "strides"]
    dim: int


@dataclass(frozen=True)
class EagerSignature:
    """The declarations of an eager kernel for given compile-time values.

    Attributes
    ----------
    arguments : dict
        Run-time parameters in order, each a ``TensorSpec``, ``PointerSpec`` or ``ScalarSpec``.
    consts : dict
        The ``T.const`` sizes that stand by themselves in a shape or stride.
    """

    arguments: Mapping[str, ArgumentSpec]
    consts: Mapping[str, ConstSource]


class EagerFunction:
    """A function whose body is a kernel.

    Parameters
    ----------
    func : function
        Parameters annotated with a tensor, pointer or dtype, in the signature or in the body, are
        run-time arguments; all others are compile-time values.

    Raises
    ------
    TraceError
        If ``func`` has positional-only parameters or ``*args``, or its source is not available.
    """

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func
        self.__name__ = func.__name__
        self.python_signature = check_parameters(func, var_keywords=True)
        frame = user_frame(2)
        delayed = code_of(func).co_flags & __future__.annotations.compiler_flag
        self._namespace = dict(frame.f_locals) if delayed and frame is not None else {}
        resolver = Resolver(func)
        in_body = {
            name
            for name, annotation in declared_in_body(func)
            if resolver.kind(annotation) != "static"
        }
        parameters = self.python_signature.parameters.values()
        named = [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
        self._in_signature = [
            n for n in named if resolver.parameter_kind(n) in ("tensor", "scalar")
        ]
        self.runtime_names = tuple(n for n in named if n in self._in_signature or n in in_body)
        self.static_names = tuple(n for n in named if n not in self.runtime_names)
        self._static_defaults = {
            p.name: p.default
            for p in parameters
            if p.name in self.static_names and p.default is not p.empty
        }

    def __repr__(self) -> str:
        return f"EagerFunction({self.func.__qualname__})"

    def _arguments(self, static: Mapping[str, Any]) -> dict[str, ArgumentSpec | None]:
        namespace = {**self._namespace, **static}
        return {
            name: evaluate_annotation(self.func, name, namespace)
            if name in self._in_signature
            else None
            for name in self.runtime_names
        }

    def _static(self, given: Mapping[str, Any]) -> dict[str, Any]:
        values = {**self._static_defaults, **given}
        missing = [name for name in self.static_names if name not in values]
        if missing:
            raise TypeError(
                f"{self.__name__}() is missing compile-time arguments: {', '.join(missing)}"
            )
        misplaced = [name for name in given if name in self.runtime_names]
        if misplaced:
            raise TypeError(f"{self.__name__}(): {', '.join(misplaced)} are run-time arguments")
        return values

    @short_traceback
    def signature(self, static: Mapping[str, Any] | None = None) -> EagerSignature:
        """The declarations for the given compile-time values (phase 1).

        Raises
        ------
        TraceError, TraceTypeError
            If the declarations are wrong.
        TypeError
            If a compile-time parameter without default is missing.
        """
        values = self._static(static or {})
        session = Session(self.__name__, self._arguments(values), "signature", {}, self._namespace)
        if any(spec is None for spec in session.specs.values()):
            trace_signature(self.func, session, values)
        undeclared = [name for name, spec in session.specs.items() if spec is None]
        if undeclared:
            raise TraceError(
                f"arguments {', '.join(undeclared)} of '{self.__name__}' are not declared before "
                "the kernel",
                function_span(self.func),
            )
        arguments = {name: spec for name, spec in session.specs.items() if spec is not None}
        return EagerSignature(arguments, dict(_const_sources(arguments, session.const_vars)))

    @short_traceback
    def trace(
        self,
        static: Mapping[str, Any] | None = None,
        const_values: Mapping[str, int] | None = None,
    ) -> T.PrimFunc:
        """The program for the given compile-time values and sizes (phase 2).

        Raises
        ------
        TraceError, TraceTypeError
            If the language is used wrongly, or the value of a ``T.const`` size is missing.
        TypeError
            If the function has no ``T.const`` of a name in ``const_values``.
        """
        values = self._static(static or {})
        sizes = dict(const_values or {})
        session = Session(self.__name__, self._arguments(values), "trace", sizes, self._namespace)
        program = trace_function(self.func, session, values)
        if unknown := sorted(set(sizes) - session.used_consts):
            raise TypeError(
                f"{self.__name__}() got an unexpected keyword argument '{unknown[0]}'; it has "
                "neither a parameter nor a T.const of this name"
            )
        return program


def _const_sources(
    arguments: Mapping[str, ArgumentSpec], variables: Mapping[str, ir.Var]
) -> Iterator[tuple[str, ConstSource]]:
    found: set[str] = set()
    for argument, spec in arguments.items():
        if not isinstance(spec, TensorSpec):
            continue
        fields: tuple[tuple[Literal["shape", "strides"], tuple[Any, ...]], ...] = (
            ("shape", spec.shape),
            ("strides", spec.strides or ()),
        )
        for field, extents in fields:
            for dim, extent in enumerate(extents):
                if not isinstance(extent, ir.Var):
                    continue
                for name, variable in variables.items():
                    if name not in found and variable.same_as(extent):
                        found.add(name)
                        yield name, ConstSource(argument, field, dim)
