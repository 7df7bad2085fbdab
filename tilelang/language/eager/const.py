"""``T.const``: sizes of an eager kernel, compiled in as numbers."""

from __future__ import annotations

from typing import Any

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder
from tilelang.ir.dtype import dtype as to_dtype
from tilelang.ir.span import user_span
from tilelang.language.eager.mode import declares_kernel
from tilelang.language.tensor import symbol_names

__all__ = ["const"]


@declares_kernel
def const(name: str, dtype: Any = "int32") -> Any:
    """Sizes of the arguments, known when the kernel is called and compiled in as numbers.

    Parameters
    ----------
    name : str
        One name, or several separated by commas or spaces. Each must stand by itself in a shape or
        stride of some argument, or be given by keyword in the call.
    dtype : dtype
        An integer type.

    Returns
    -------
    int or tuple of int
        While only the declarations are wanted: variables in their place.

    Raises
    ------
    TraceError
        Outside a function decorated with ``@tilelang.jit``, or if the value is unknown.

    Examples
    --------
    >>> M, N = T.const("M, N")  # doctest: +SKIP
    >>> A: T.Tensor((M, N), T.float16)  # doctest: +SKIP
    """
    kind = to_dtype(dtype)
    if not kind.is_integer:
        raise TraceTypeError(f"T.const: a size is an integer, found dtype {kind}", user_span())
    session = builder.current("T.const").session
    if session is None:
        raise TraceError(
            "T.const is only valid in a function decorated with @tilelang.jit", user_span()
        )
    values = tuple(session.const(each, kind) for each in symbol_names(name, "T.const"))
    return values[0] if len(values) == 1 else values
