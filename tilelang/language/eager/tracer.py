"""Running a function under trace: from a Python function to a PrimFunc."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir.builder import Builder, activate, current_or_none, seq
from tilelang.language.eager import logic, runtime
from tilelang.language.eager.scoping import check_scopes
from tilelang.language.eager.session import (
    ArgumentSpec,
    ScalarSpec,
    Session,
    SignatureKnown,
    argument_spec,
)
from tilelang.language.eager.source import function_span, rewrite_function

__all__ = ["check_parameters", "evaluate_annotation", "trace_function", "trace_signature"]


_REFUSED: dict[Any, str] = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of arguments",
    inspect.Parameter.VAR_KEYWORD: "takes any keyword",
}


def check_parameters(func: Callable[..., Any], var_keywords: bool = False) -> inspect.Signature:
    """The signature of ``func``.

    Raises
    ------
    TraceError
        If it has positional-only parameters or ``*args``, or ``**kwargs`` where not allowed.
    """
    signature = inspect.signature(func)
    for parameter in signature.parameters.values():
        refused = _REFUSED.get(parameter.kind)
        if parameter.kind is parameter.VAR_KEYWORD and var_keywords:
            continue
        if refused is not None:
            raise TraceError(
                f"parameter '{parameter.name}' of '{func.__name__}' {refused}; the parameters of "
                "a kernel are named ones",
                function_span(func),
            )
    return signature


def evaluate_annotation(
    func: Callable[..., Any], name: str, namespace: Mapping[str, Any]
) -> ArgumentSpec | None:
    """The run-time argument that the signature declares for ``name``, or None.

    Annotations kept as text (``from __future__ import annotations``) are evaluated with the
    globals and the closure of ``func`` and ``namespace``.
    """
    annotation = func.__annotations__.get(name)
    spec = argument_spec(annotation)
    if spec is not None or not isinstance(annotation, str):
        return spec
    scope = dict(namespace)
    for free, cell in zip(func.__code__.co_freevars, func.__closure__ or (), strict=True):
        scope[free] = cell.cell_contents
    try:
        return argument_spec(eval(annotation, func.__globals__, scope))
    except NameError as error:
        raise TraceError(
            f"annotation of parameter '{name}' of '{func.__name__}': {error}; 'from __future__ "
            "import annotations' hides names of enclosing functions, remove it or declare the "
            "argument in the body",
            function_span(func),
        ) from None


def _run(
    func: Callable[..., Any], session: Session, values: Mapping[str, Any]
) -> tuple[Builder, Any]:
    twin = rewrite_function(func, runtime, session.namespace)
    if current_or_none() is None:
        logic.reset()
    builder = Builder(session.function, session)
    with activate(builder):
        result = twin(**values, **session.params)
    return builder, result


def trace_signature(func: Callable[..., Any], session: Session, values: Mapping[str, Any]) -> None:
    """Run ``func`` until its arguments are declared; ``session`` then holds them."""
    try:
        _run(func, session, values)
    except SignatureKnown:
        return


def _scalar_defaults(func: Callable[..., Any], session: Session) -> dict[str, int | float | bool]:
    """What a call may leave out: the scalar arguments with a default value, by name."""
    defaults: dict[str, int | float | bool] = {}
    for name, parameter in inspect.signature(func).parameters.items():
        spec, value = session.specs.get(name), parameter.default
        if not isinstance(spec, ScalarSpec) or value is parameter.empty:
            continue
        if not isinstance(value, int | float):
            raise TraceTypeError(
                f"default of parameter '{name}' of '{func.__name__}': a run-time scalar of dtype "
                f"{spec.dtype} defaults to a number, found {value!r}",
                function_span(func),
            )
        defaults[name] = value
    return defaults


def trace_function(
    func: Callable[..., Any], session: Session, values: Mapping[str, Any]
) -> T.PrimFunc:
    """Trace ``func`` with the compile-time ``values`` of its other parameters.

    Raises
    ------
    TraceError, TraceTypeError
        If the language is used wrongly.
    """
    builder, result = _run(func, session, values)
    span = function_span(func)
    try:
        params = session.finish(result)
    except TraceError as error:
        raise error.at(session.return_span or span) from None
    program = T.PrimFunc(params, seq(builder.finish(), span), span=span)
    attributes: dict[str, Any] = {"global_symbol": session.function}
    if session.outputs:
        attributes["tilelang_out_idx"] = list(range(-len(session.outputs), 0))
    for key in ("pass_configs", "compile_flags"):
        if builder.annotations.get(key):
            attributes[f"tilelang_{key}"] = builder.annotations[key]
    if defaults := _scalar_defaults(func, session):
        attributes["tilelang_defaults"] = defaults
    for key, value in attributes.items():
        program = program.with_attr(key, value)
    check_scopes(program)
    program.orig_func = func
    return program
