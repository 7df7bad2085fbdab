"""What a name can hold besides a value: a variable, a reference, or nothing readable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tvm import ir
from tvm import tirx as T
from tvm.ir import prim

from tilelang.errors import TileLangError, TraceError, TraceTypeError
from tilelang.ir.expr import const_number, convert
from tilelang.ir.span import user_span

__all__ = [
    "Missing",
    "Reference",
    "as_bool",
    "describe",
    "guarded",
    "is_alloc_var",
    "is_constant",
    "is_scalar",
    "operand",
    "python_int",
    "read",
    "refuse",
    "truth",
    "unbound",
]

_Var = ir.Var
_BufferType = T.BufferType
_CONSTANTS = (prim.IntImm, prim.FloatImm, ir.StringImm)
#: The lazy results of ``==`` and ``!=`` on TVM expressions (used by code that is not rewritten).
_LAZY = (type(_Var("a", "int32") == 0), type(_Var("a", "int32") != 0))


def is_alloc_var(value: Any) -> bool:
    """Whether ``value`` is a variable made by ``T.alloc_var``."""
    if type(value) is not _Var:
        return False
    ty = value.ty
    return type(ty) is _BufferType and ty.storage_scope == "local.var"


def is_scalar(value: Any) -> bool:
    """Whether ``value`` is an expression of primitive type."""
    return isinstance(value, ir.Expr) and isinstance(value.ty, ir.PrimType)


def is_constant(value: Any) -> bool:
    """Whether ``value`` is a literal of the IR."""
    return isinstance(value, _CONSTANTS)


class Reference:
    """An element passed to a ``T.Ref`` parameter: reads load it, assignments store to it."""

    __slots__ = ("buffer", "indices")

    def __init__(self, buffer: ir.Var, indices: list[ir.Expr]) -> None:
        self.buffer = buffer
        self.indices = indices

    def load(self) -> ir.Expr:
        """The current value of the element."""
        return T.BufferLoad(self.buffer, self.indices, user_span())


class Missing:
    """Stands for the value of a name that has none; every use of it raises."""

    __slots__ = ("message", "unbound")

    def __init__(self, message: str, unbound: bool = False) -> None:
        self.message = message
        self.unbound = unbound

    def fail(self, *_: Any, **__: Any) -> NoReturn:
        """Raise the error that explains why there is no value."""
        if self.unbound:
            raise UnboundLocalError(self.message)
        raise TraceError(self.message, user_span())

    def __getattr__(self, name: str) -> NoReturn:
        self.fail()

    __getitem__ = __setitem__ = __call__ = __iter__ = __bool__ = __len__ = __contains__ = fail
    __enter__ = __exit__ = __lt__ = __le__ = __gt__ = __ge__ = fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = fail


def unbound(name: str) -> Missing:
    """The value of a local that was not assigned yet."""
    return Missing(
        f"cannot access local variable '{name}' where it is not associated with a value",
        unbound=True,
    )


def read(value: Any) -> Any:
    """The value of what a name holds: variables and references are loaded."""
    kind = type(value)
    if kind is _Var:
        ty = value.ty
        if type(ty) is _BufferType and ty.storage_scope == "local.var":
            return T.BufferLoad(value, [0], user_span())
        return value
    if kind is Missing:
        value.fail()
    if kind is Reference:
        return value.load()
    if kind in _LAZY:
        return value.asobject()
    return value


def python_int(value: Any) -> Any:
    """A Python int for an integer constant of the IR, else ``value`` itself."""
    return int(value.value) if type(value) is prim.IntImm else value


def as_bool(value: ir.Expr) -> ir.Expr:
    """The truth value of a run-time scalar: non-zero is true, as in Python."""
    if value.ty == "bool":
        return value
    return prim.NE(value, T.const(0, value.ty.dtype), user_span())


def truth(value: Any) -> Any:
    """Python's truth value if it is known now, else a boolean expression.

    Raises
    ------
    TraceError
        If ``value`` is a buffer or a slice.
    """
    value = read(value)
    if not isinstance(value, ir.Expr):
        return bool(value)
    if not is_scalar(value):
        raise TraceError(
            f"{describe(value)} has no truth value; read an element, or use T.any_of / T.all_of",
            user_span(),
        )
    number = const_number(value)
    return as_bool(value) if number is None else bool(number)


def describe(value: Any) -> str:
    """Name a value for an error message."""
    if isinstance(value, ir.Var) and isinstance(value.ty, T.BufferType):
        shape = ", ".join(str(extent) for extent in value.ty.shape)
        return f"buffer '{value.name}' ({shape}) of {value.ty.dtype}"
    if isinstance(value, ir.TensorRegion):
        return f"a slice of buffer '{value.source.name}'"
    if isinstance(value, ir.Var):
        return f"'{value.name}' ({_type_text(value)})"
    if isinstance(value, ir.Expr):
        return f"an expression of type {_type_text(value)}"
    if isinstance(value, int | float | str):
        return f"{type(value).__name__} {value!r}"
    return f"a {type(value).__name__}"


def operand(value: Any) -> ir.Expr | None:
    """A scalar expression for an operand, or None if it is no number."""
    if isinstance(value, ir.Expr):
        return value if is_scalar(value) else None
    if isinstance(value, bool | int | float) or type(value).__module__ == "numpy":
        return convert(value)
    return None


def refuse(symbol: str, left: Any, right: Any) -> TraceTypeError:
    """The error for operands that ``symbol`` does not take."""
    tiles = any(isinstance(v, ir.Expr) and not is_scalar(v) for v in (left, right))
    hint = "; compute element by element in a T.Parallel loop" if tiles else ""
    return TraceTypeError(
        f"unsupported operands for {symbol}: {describe(left)} and {describe(right)}{hint}",
        user_span(),
    )


def _type_text(value: ir.Expr) -> str:
    return str(value.ty.dtype) if isinstance(value.ty, ir.PrimType) else "pointer"


def guarded(what: str, build: Callable[..., Any], *args: Any) -> Any:
    """Build a node with the operator ``what``; a refusal becomes an error at the user's line."""
    try:
        return build(*args)
    except TileLangError:
        raise
    except (TypeError, ValueError, RuntimeError, IndexError) as error:
        reason = str(error).strip().splitlines()[0].removeprefix("Check failed: ")
        operands = " and ".join(describe(arg) for arg in args if isinstance(arg, ir.Expr))
        raise TraceTypeError(f"{what} cannot take {operands}: {reason}", user_span()) from None
