"""``@T.prim_func``: trace a function with typed arguments at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from tvm import tirx as T

from tilelang.errors import TraceError
from tilelang.ir.span import user_frame
from tilelang.language.eager.failures import short_traceback
from tilelang.language.eager.function import EagerFunction
from tilelang.language.eager.resolve import declared_in_body
from tilelang.language.eager.session import ArgumentSpec, Session
from tilelang.language.eager.source import function_span
from tilelang.language.eager.tracer import check_parameters, evaluate_annotation, trace_function

__all__ = ["prim_func"]


@overload
def prim_func(func: Callable[..., Any]) -> T.PrimFunc: ...
@overload
def prim_func(*, eager_jit: bool = False) -> Callable[[Callable[..., Any]], T.PrimFunc]: ...
def prim_func(func: Callable[..., Any] | None = None, *, eager_jit: bool = False) -> Any:
    """Trace a function into a PrimFunc when it is defined.

    Every parameter is annotated with a tensor (``T.Tensor``, ``T.StridedTensor``), a pointer
    (``T.ptr``), a dtype (a run-time scalar) or a ``T.dynamic`` size, in the signature or, as
    ``A: T.Tensor(...)``, in the body. A parameter with another annotation or none is a
    compile-time constant: its default value, or else the annotation itself. A run-time scalar with
    a default (``n: T.int32 = 3``) may be left out of a call. Tensors made by
    ``T.empty`` and returned become trailing parameters.

    Parameters
    ----------
    func : function
        Left out when the decorator is called with options.
    eager_jit : bool
        Return the untraced :class:`~tilelang.language.eager.EagerFunction` instead.

    Returns
    -------
    PrimFunc
        Its attribute ``orig_func`` is the Python function.

    Raises
    ------
    TraceError, TraceTypeError
        At the line of the mistake.

    Examples
    --------
    >>> @T.prim_func  # doctest: +SKIP
    ... def scale(A: T.Tensor((64,), "float32"), factor: T.float32):
    ...     with T.Kernel(1):
    ...         for i in T.Parallel(64):
    ...             A[i] = A[i] * factor
    """
    if func is None:
        return EagerFunction if eager_jit else _trace
    return EagerFunction(func) if eager_jit else _trace(func)


@short_traceback
def _trace(func: Callable[..., Any]) -> T.PrimFunc:
    frame = user_frame(2)
    namespace = dict(frame.f_locals) if frame is not None else {}
    signature = check_parameters(func)
    in_body = {name for name, _ in declared_in_body(func)}
    arguments: dict[str, ArgumentSpec | None] = {}
    constants: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        spec = evaluate_annotation(func, name, namespace)
        if spec is not None:
            arguments[name] = spec
        elif name in in_body:
            arguments[name] = None
        elif parameter.default is not parameter.empty:
            constants[name] = parameter.default
        elif parameter.annotation is parameter.empty or isinstance(
            parameter.annotation, type | str
        ):
            raise TraceError(
                f"parameter '{name}' of '{func.__name__}' has no run-time type; annotate it with "
                "T.Tensor(shape, dtype), T.ptr or a dtype such as T.int32",
                function_span(func),
            )
        else:
            constants[name] = parameter.annotation
    return trace_function(func, Session(func.__name__, arguments, namespace=namespace), constants)
