"""Is a function under ``@tilelang.jit`` a kernel (eager) or a factory of kernels (lazy)?"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any, Literal

from tilelang.language.eager.resolve import UNKNOWN, Resolver, declared_in_body, own_nodes
from tilelang.language.eager.source import parse_function

__all__ = ["declares_kernel", "detect_mode"]

#: Attribute that marks the functions whose use in a body makes the function eager.
EAGER_MARK = "__tl_declares_kernel__"


def declares_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a language function (``T.Kernel``, ``T.const``, ...) as one that only kernels call."""
    setattr(function, EAGER_MARK, True)
    return function


def detect_mode(func: Callable[..., Any]) -> Literal["eager", "lazy"]:
    """Decide the mode from what the names in ``func`` refer to; its code is not run.

    Eager if a parameter or a declaration in the body is a tensor, or the body itself (not a
    function nested in it) uses ``T.const``, ``T.empty`` or ``T.Kernel``; lazy otherwise.

    Raises
    ------
    TraceError
        If the source of ``func`` is not available.
    """
    if not inspect.isfunction(func):
        return "lazy"
    resolver = Resolver(func)
    if any(
        resolver.parameter_kind(name) == "tensor" for name in inspect.signature(func).parameters
    ):
        return "eager"
    if any(resolver.kind(annotation) == "tensor" for _, annotation in declared_in_body(func)):
        return "eager"
    for node in own_nodes(parse_function(func).body):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            found = resolver.lookup(node)
            if found is not UNKNOWN and getattr(found, EAGER_MARK, False) is True:
                return "eager"
    return "lazy"
