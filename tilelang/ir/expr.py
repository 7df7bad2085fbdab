"""Small helpers over scalar expressions: dtype, constants, conversion from Python values."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceTypeError

__all__ = [
    "const_float",
    "const_int",
    "const_number",
    "convert",
    "dtype_of",
    "is_buffer",
    "is_expr",
    "is_float_dtype",
    "is_int_dtype",
]


def is_buffer(value: Any) -> bool:
    """Whether ``value`` is a buffer variable (a Var whose type is a BufferType)."""
    return isinstance(value, ir.Var) and isinstance(value.ty, T.BufferType)


def is_expr(value: Any) -> bool:
    """Whether ``value`` is a scalar IR expression (buffers and regions are not)."""
    return (
        isinstance(value, ir.Expr)
        and not is_buffer(value)
        and not isinstance(value, ir.TensorRegion)
    )


def dtype_of(value: Any) -> str:
    """Element dtype of an expression, buffer or region as text, such as ``"float16"``."""
    if isinstance(value, ir.TensorRegion):
        value = value.source
    if isinstance(value.ty, T.BufferType):
        return str(value.ty.dtype.dtype)  # str of the type itself would run the script printer
    if isinstance(value.ty, ir.PointerType):
        return "handle"
    return str(value.ty.dtype)


def const_int(value: Any) -> int | None:
    """The Python int behind an integer constant, else None."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value
    return int(value.value) if isinstance(value, T.IntImm) else None


def const_float(value: Any) -> float | None:
    """The Python float behind a floating constant, else None."""
    if isinstance(value, float):
        return value
    return float(value.value) if isinstance(value, T.FloatImm) else None


def const_number(value: Any) -> int | float | None:
    """The Python number behind a constant of any kind, else None."""
    found = const_int(value)
    return found if found is not None else const_float(value)


def convert(value: Any, dtype: str | None = None) -> ir.Expr:
    """Turn a Python number or expression into an expression, of ``dtype`` when given.

    Python ints become int32 (int64 when they need it), floats float32, bools bool.

    Raises
    ------
    TraceTypeError
        If ``value`` is no scalar, or an int that an integer ``dtype`` cannot hold.
    """
    if isinstance(value, ir.Expr) and is_expr(value):
        return value if dtype is None or dtype_of(value) == dtype else value.astype(dtype)
    if isinstance(value, bool):
        return T.const(value, dtype or "bool")
    if isinstance(value, int):
        default = "int32" if -(2**31) <= value < 2**31 else "int64"
        if dtype is not None:
            _check_range(value, dtype)
        return T.const(value, dtype or default)
    if isinstance(value, float):
        return T.const(value, dtype or "float32")
    if hasattr(value, "item") and not hasattr(value, "shape"):  # numpy scalars
        return convert(value.item(), dtype)
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return convert(value.item(), dtype)
    if hasattr(value, "asobject"):  # the lazy result of comparing two expressions with ==
        return value.asobject()
    raise TraceTypeError(f"expected a scalar expression or number, found {type(value).__name__}")


def _check_range(value: int, dtype: str) -> None:
    kind, _, bits = dtype.partition("int")
    if kind not in ("", "u") or not bits.isdigit():
        return
    low, high = (0, 2 ** int(bits)) if kind else (-(2 ** (int(bits) - 1)), 2 ** (int(bits) - 1))
    if not low <= value < high:
        raise TraceTypeError(f"{value} does not fit {dtype} ({low} to {high - 1})")


def is_int_dtype(dtype: str) -> bool:
    """Whether ``dtype`` is a signed or unsigned integer (bool is not)."""
    return dtype.startswith(("int", "uint"))


def is_float_dtype(dtype: str) -> bool:
    """Whether ``dtype`` is a floating type of any width."""
    return dtype.startswith(("float", "bfloat", "tfloat", "custom"))
