"""Output, checks and facts inside a kernel: ``T.print``, ``T.device_assert``, ``T.assume``."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import SemanticError, TraceTypeError
from tilelang.ir import arith, builder, intrin
from tilelang.ir.expr import is_buffer
from tilelang.ir.region import full_region
from tilelang.ir.span import user_span
from tilelang.ir.values import as_scalar, is_number, plain

__all__ = ["assume", "device_assert", "print"]


def print(obj: Any = None, msg: str = "", warp_group_id: int = 0, warp_id: int = 0) -> None:
    """Print an expression, a tile or a message while the kernel runs.

    Parameters
    ----------
    obj : expression, number, buffer, slice or str, optional
        Shared tiles and fragments are printed once a block, by one thread; expressions, local and
        global buffers by every thread. A string is a message.
    msg : str
        Text before the value.
    warp_group_id, warp_id : int
        The warp whose first lane prints a tile of the block.

    Raises
    ------
    TraceError
        Outside of a kernel.
    TraceTypeError
        If ``obj`` is none of these.

    Examples
    --------
    >>> T.print(acc, msg="after the k loop")          # doctest: +SKIP
    """
    if isinstance(obj, str):
        obj, msg = None, f"{msg} {obj}".strip()
    if obj is None:
        value: Any = 0
    elif is_buffer(obj) and obj.scope() != "local.var":
        value = full_region(obj)
    elif isinstance(obj, ir.TensorRegion):
        value = obj
    else:
        value = as_scalar(obj, "T.print")
    if not isinstance(msg, str):
        raise TraceTypeError(f"T.print: msg must be a str, found {type(msg).__name__}", user_span())
    if obj is None:
        intrin.get("print").emit(msg)
    else:
        intrin.get("print").emit(msg, value, warp_group_id, warp_id)


def device_assert(condition: Any, msg: str = "", no_stack_info: bool = False) -> None:
    """Stop the kernel if ``condition`` does not hold.

    Parameters
    ----------
    condition : bool or integer expression
        A constant is checked while tracing.
    msg : str
        Text of the report.
    no_stack_info : bool
        Leave out where in the source the assertion stands.

    Raises
    ------
    SemanticError
        If the condition is constant and false.
    TraceError
        Outside of a kernel.

    Notes
    -----
    Runs on the CPU, CUDA and ROCm.
    """
    span, condition = user_span(), plain(condition)
    if is_number(condition):
        if not condition:
            raise SemanticError(f"T.device_assert never holds: {msg or 'condition is false'}", span)
        return
    where = ""
    if span is not None and not no_stack_info:
        where = f" at {span.source_name.name}:{span.line}"
    text = f"{msg or 'device assertion failed'}{where}"
    intrin.get("device_assert").emit(arith.truth(condition, "T.device_assert"), text)


def assume(condition: Any) -> None:
    """State a fact that the compiler may rely on, such as ``n % 8 == 0``.

    Where the fact only depends on arguments of the kernel it is checked at the call.

    Raises
    ------
    SemanticError
        If the condition is constant and false.
    TraceError
        Outside of a kernel.
    """
    span, condition = user_span(), plain(condition)
    active = builder.current("T.assume")
    if is_number(condition):
        if not condition:
            raise SemanticError("T.assume: the condition is false", span)
        return
    fact = arith.truth(condition, "T.assume")
    active.emit(T.Evaluate(T.assume(fact), span))
