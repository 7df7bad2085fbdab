"""Foreign code: C functions, IR ops by name, addresses, source text put before the kernel.

Nothing is known about a foreign function but its name, so a kernel that calls one runs only where
that name is defined: in the text of :func:`import_source`, in the headers of the backend, or, for
the interpreter, in the table it is given. Whether the backend can call it is not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder, intrin
from tilelang.ir.dtype import AnyDType
from tilelang.ir.expr import const_int, is_buffer
from tilelang.ir.intrin.record import value_type
from tilelang.ir.region import full_region
from tilelang.ir.span import user_span
from tilelang.ir.values import as_scalar, guard

__all__ = [
    "access_ptr",
    "address_of",
    "call_cpacked",
    "call_extern",
    "call_intrin",
    "call_llvm_intrin",
    "call_llvm_pure_intrin",
    "call_packed",
    "call_pure_extern",
    "import_source",
    "isnullptr",
]

_ACCESS = {"r": 1, "w": 2, "rw": 3}


def _argument(value: Any, what: str) -> ir.Expr:
    if isinstance(value, str):
        return ir.StringImm(str(value))
    if isinstance(value, ir.TensorRegion) or (is_buffer(value) and value.scope() != "local.var"):
        return address_of(value)
    return as_scalar(value, what)


def _call(what: str, op: str, kind: AnyDType, name: Any, args: tuple[Any, ...]) -> ir.Call:
    if not isinstance(name, str) or not name:
        raise TraceTypeError(
            f"{what}: expected the name of a function, found {name!r}; the order is dtype, name, "
            "arguments",
            user_span(),
        )
    arguments = [ir.StringImm(name), *(_argument(value, what) for value in args)]
    return ir.Call(ir.Op.get(op), arguments, ret_ty=value_type(kind), span=user_span())


def call_extern(dtype: AnyDType, name: str, *args: Any) -> ir.Call:
    """Call the C function ``name``.

    Parameters
    ----------
    dtype : AnyDType
        Type of the result; ``"void"`` or ``"handle"`` (a pointer) are allowed.
    name : str
        Name of the function in the generated code.
    *args : expression, number, str or buffer
        A buffer or slice passes the address of its first element.

    Raises
    ------
    TraceTypeError
        If ``name`` or an argument has the wrong type.

    Examples
    --------
    >>> B[i] = T.call_extern("float32", "my_activation", A[i])      # doctest: +SKIP
    """
    return _call("T.call_extern", "tirx.call_extern", dtype, name, args)


def call_pure_extern(dtype: AnyDType, name: str, *args: Any) -> ir.Call:
    """:func:`call_extern` of a function without effects: calls may be merged, moved or dropped."""
    return _call("T.call_pure_extern", "tirx.call_pure_extern", dtype, name, args)


def call_intrin(
    dtype: AnyDType, op: str | ir.Op, *args: Any, annotations: Mapping[str, Any] | None = None
) -> ir.Call:
    """Call an IR op by name, such as ``"tirx.exp"``.

    Raises
    ------
    TraceError
        If there is no op of that name.
    """
    name = op.name if isinstance(op, ir.Op) else str(op)
    if name not in ir.Op.list_op_names():
        raise TraceError(f"T.call_intrin: there is no op '{name}'", user_span())
    arguments = [_argument(value, "T.call_intrin") for value in args]
    attrs = dict(annotations) if annotations else None
    return ir.Call(
        ir.Op.get(name), arguments, attrs=attrs, ret_ty=value_type(dtype), span=user_span()
    )


def call_llvm_intrin(dtype: AnyDType, name: str, *args: Any) -> ir.Call:
    """Call an LLVM intrinsic such as ``"llvm.fma"``; backends that compile through LLVM only."""
    return guard("T.call_llvm_intrin", lambda: T.call_llvm_intrin(value_type(dtype), name, *args))


def call_llvm_pure_intrin(dtype: AnyDType, name: str, *args: Any) -> ir.Call:
    """:func:`call_llvm_intrin` of an intrinsic without effects."""
    return guard(
        "T.call_llvm_pure_intrin", lambda: T.call_llvm_pure_intrin(value_type(dtype), name, *args)
    )


def call_packed(*args: Any) -> ir.Call:
    """Call a registered packed function by name, on the host side of the program."""
    return guard("T.call_packed", lambda: T.call_packed(*args, span=user_span()))


def call_cpacked(*args: Any) -> ir.Call:
    """Call a packed function with C linkage by name, on the host side of the program."""
    return guard("T.call_cpacked", lambda: T.call_cpacked(*args, span=user_span()))


def address_of(obj: Any) -> ir.Expr:
    """A pointer to a buffer's first element, to an element ``A[i]`` or to the start of a slice.

    Raises
    ------
    TraceTypeError
        If ``obj`` is none of these.
    """
    return intrin.get("address_of")(obj).args[0]


def access_ptr(
    base: Any,
    access_type: str | int = "r",
    *extents: Any,
    offset: Any = 0,
    extent: Any = None,
    ignore_last_ndim: int = 0,
) -> ir.Expr:
    """A pointer together with how much is read or written through it.

    Parameters
    ----------
    base : buffer, element or slice
        The extent in elements defaults to the whole buffer, 1, or the size of the slice.
    access_type : {"r", "w", "rw"} or int
        Reading is bit 0, writing bit 1.
    *extents : int
        Sizes that multiply to the extent; instead of ``extent``.
    offset : int expression
        Elements to skip; one-dimensional buffers only.
    extent : int expression, optional
        Number of elements.
    ignore_last_ndim : int
        Trailing dimensions of ``base`` that start at index 0.

    Raises
    ------
    TraceError
        For an unknown access, both kinds of extent, or an offset into several dimensions.
    """
    span = user_span()
    mask = _ACCESS.get(access_type) if isinstance(access_type, str) else access_type
    if mask not in (1, 2, 3):
        raise TraceError(
            f"T.access_ptr: access_type must be r, w or rw, found {access_type!r}", span
        )
    if extents and extent is not None:
        raise TraceError("T.access_ptr: give either extents or extent=", span)
    element, size = _head(base, ignore_last_ndim)
    if const_int(offset) != 0:
        if len(element.indices) != 1:
            raise TraceError(
                "T.access_ptr: offset needs a one-dimensional buffer; index it instead", span
            )
        element = T.BufferLoad(element.source, [element.indices[0] + offset], span)
    for part in extents:
        extent = part if extent is None else extent * part
    return intrin.get("access_ptr")(element, 0, size if extent is None else extent, mask)


def _head(base: Any, ignore_last_ndim: int) -> tuple[ir.TensorLoad, Any]:
    """The first element of an operand and its size in elements."""
    if isinstance(base, ir.TensorLoad):
        keep = len(base.indices) - ignore_last_ndim
        indices = [index if d < keep else 0 for d, index in enumerate(base.indices)]
        return T.BufferLoad(base.source, indices, user_span()), 1
    region = full_region(base) if is_buffer(base) else base
    if not isinstance(region, ir.TensorRegion):
        raise TraceTypeError(
            f"T.access_ptr requires a buffer, element or slice, found {type(base).__name__}",
            user_span(),
        )
    size: Any = 1
    for axis in region.region:
        size = axis.extent * size
    return T.BufferLoad(region.source, [axis.min for axis in region.region], user_span()), size


def isnullptr(pointer: Any) -> ir.Expr:
    """Whether a pointer is null, as a bool."""
    return intrin.get("isnullptr")(pointer)


def import_source(source: str | None = None) -> None:
    """Put C source before the kernel, for functions called with :func:`call_extern`.

    Raises
    ------
    TraceTypeError
        If ``source`` is no text.
    TraceError
        Outside of a kernel.
    """
    if source is None:
        return
    if not isinstance(source, str):
        raise TraceTypeError(
            f"T.import_source: expected text, found {type(source).__name__}", user_span()
        )
    text, span = ir.StringImm(source), user_span()
    builder.current("T.import_source").wrap_rest(
        lambda body: T.AttrStmt(T.IntImm("int32", 0), "pragma_import_c", text, body, span)
    )
