"""Tensors, pointers and symbolic sizes: the declarations of a kernel's arguments."""

from __future__ import annotations

import contextlib
import operator
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder
from tilelang.ir.dtype import dtype as to_dtype
from tilelang.ir.expr import const_int, is_buffer, is_expr
from tilelang.ir.span import user_span

__all__ = [
    "Buffer",
    "FragmentBuffer",
    "LocalBuffer",
    "PointerSpec",
    "SharedBuffer",
    "StridedTensor",
    "Tensor",
    "TensorSpec",
    "declare_buffer",
    "dynamic",
    "handle",
    "make_tensor",
    "make_tensor_from_addr",
    "match_buffer",
    "ptr",
    "symbolic",
]


@dataclass(frozen=True)
class TensorSpec:
    """What ``T.Tensor(shape, dtype)`` says about an argument.

    ``strides`` in elements; None means compact row-major.
    """

    shape: tuple[Any, ...]
    dtype: to_dtype
    strides: tuple[Any, ...] | None = None
    scope: str = "global"

    def declare(self, name: str, span: ir.Span | None = None) -> ir.Var:
        """The buffer of this description called ``name``."""
        return declare_buffer(self.shape, self.dtype, name, self.scope, self.strides, span=span)


@dataclass(frozen=True)
class PointerSpec:
    """A pointer argument; ``dtype`` None is an untyped pointer."""

    dtype: to_dtype | None = None
    scope: str = "global"

    def declare(self, name: str, span: ir.Span | None = None) -> ir.Var:
        """The pointer variable of this description called ``name``."""
        element = ir.PrimType("void") if self.dtype is None else self.dtype.prim_type
        return T.Var(name, ir.PointerType(element, self.scope), span)


class _Pointer:
    """``T.ptr`` and ``T.handle``: usable bare or called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return self.__name__

    def __call__(
        self, dtype: Any = None, storage_scope: str = "global", *, is_size_var: bool = False
    ) -> PointerSpec:
        """A pointer argument to elements of ``dtype`` (untyped without) in ``storage_scope``.

        ``is_size_var`` is accepted for compatibility; a pointer is no size.
        """
        del is_size_var
        return PointerSpec(
            None if dtype is None or dtype == "void" else to_dtype(dtype), storage_scope
        )


#: A pointer argument. As the dtype of a tensor it means a table of 64-bit addresses.
ptr = _Pointer("T.ptr")
#: An untyped pointer argument, made a tensor by :func:`match_buffer`.
handle = _Pointer("T.handle")


def element_type(dtype: Any) -> to_dtype:
    """The element dtype of a buffer declared with ``dtype``; pointers are stored as int64."""
    return to_dtype("int64") if isinstance(dtype, _Pointer | PointerSpec) else to_dtype(dtype)


def extents(shape: Any, what: str, least: int = 0) -> tuple[Any, ...]:
    """Normalise a shape: an int or expression is one dimension.

    Raises
    ------
    TraceError, TraceTypeError
        If an extent is below ``least`` or no integer.
    """
    if is_buffer(shape) or isinstance(shape, str):
        raise TraceTypeError(
            f"{what}: expected a shape such as (64, 64), found {shape!r}; the order is "
            f"{what}(shape, dtype)",
            user_span(),
        )
    sizes = (shape,) if not hasattr(shape, "__len__") else tuple(shape)
    return tuple(_extent(size, what, least) for size in sizes)


def _extent(size: Any, what: str, least: int) -> Any:
    if is_expr(size) and const_int(size) is None:
        if str(size.ty.dtype).startswith(("int", "uint")):
            return size
    elif not isinstance(size, bool):
        number = const_int(size)
        if number is None:
            with contextlib.suppress(TypeError):
                number = operator.index(size)
        if number is not None and number < least:
            raise TraceError(f"{what}: an extent must be >= {least}, found {number}", user_span())
        if number is not None:
            return number
    simple = isinstance(size, bool | int | float | str | ir.Expr)
    found = repr(size) if simple else f"a {type(size).__module__}.{type(size).__name__}"
    hint = "; a factory takes sizes, and the kernel it returns takes tensors"
    raise TraceTypeError(
        f"{what}: an extent must be an integer, found {found}"
        f"{hint if hasattr(size, 'device') else ''}",
        user_span(),
    )


def declare_buffer(
    shape: Sequence[Any],
    dtype: to_dtype,
    name: str,
    scope: str = "global",
    strides: Sequence[Any] | None = None,
    span: ir.Span | None = None,
) -> ir.Var:
    """A buffer variable as the passes expect it: no TVM layout, aligned to its element."""
    return T.decl_buffer(
        list(shape),
        dtype.prim_type,
        name,
        strides=None if strides is None else list(strides),
        scope=scope,
        data_alignment=dtype.itemsize,
        span=span or user_span(),
        layout=None,
    )


def _is_array(value: Any) -> bool:
    return isinstance(value, tuple | list) or type(value).__name__ == "Array"


class _TensorType(type):
    """Makes ``isinstance(x, T.Tensor)`` true for the buffers of a kernel."""

    def __instancecheck__(cls, value: Any) -> bool:
        return is_buffer(value)


class Tensor(metaclass=_TensorType):
    """A compact row-major tensor argument: ``A: T.Tensor((M, N), "float16")``.

    Parameters
    ----------
    shape : int, expression or sequence of them
        Extents. They may contain sizes made by ``T.dynamic`` or ``T.const``, and expressions of
        dynamic ones such as ``n * 4``.
    dtype : dtype
        Element type. ``T.ptr`` means a table of 64-bit addresses.
    data : pointer, optional
        ``buffer.data`` of another buffer: makes a view of its storage instead of an argument.
    scope : str, optional
        Storage scope, default ``"global"``.

    Examples
    --------
    >>> A: T.Tensor[[M, K], "float16"]  # doctest: +SKIP
    """

    def __new__(
        cls, shape: Any, dtype: Any = "float32", data: Any = None, scope: str | None = None
    ) -> Any:
        spec = TensorSpec(extents(shape, "T.Tensor"), element_type(dtype), None, scope or "global")
        return spec if data is None else _view(data, spec)

    def __class_getitem__(cls, parameters: Any) -> Any:
        if isinstance(parameters, tuple) and len(parameters) == 2:
            shape, dtype = parameters
            if _is_array(shape) or not (is_expr(dtype) or isinstance(dtype, int)):
                return cls(shape, dtype)
        if _is_array(parameters) and not any(isinstance(p, str) for p in parameters):
            return cls(parameters)
        raise TraceTypeError(
            f"T.Tensor[...] takes [shape, dtype] or [[extents], dtype], found {parameters!r}",
            user_span(),
        )

    @staticmethod
    def from_ptr(
        pointer_var: Any, shape: Any, dtype: Any = "float32", strides: Any = None
    ) -> ir.Var:
        """A tensor over the memory a pointer argument points to. See :func:`make_tensor`."""
        return make_tensor(pointer_var, shape, dtype, strides)


class StridedTensor(metaclass=_TensorType):
    """A tensor argument with explicit strides, in elements.

    Parameters
    ----------
    shape, strides : sequence of int or expression
        Of equal length. Strides may be sizes made by ``T.dynamic``.
    dtype : dtype
        Element type.
    scope : str, optional
        Storage scope, default ``"global"``.
    """

    def __new__(
        cls, shape: Any, strides: Any, dtype: Any = "float32", scope: str | None = None
    ) -> Any:
        sizes = extents(shape, "T.StridedTensor")
        steps = (strides,) if isinstance(strides, int) or is_expr(strides) else tuple(strides)
        if len(sizes) != len(steps):
            raise TraceError(
                f"T.StridedTensor: shape has {len(sizes)} dimensions and strides has {len(steps)}",
                user_span(),
            )
        return TensorSpec(sizes, element_type(dtype), steps, scope or "global")

    def __class_getitem__(cls, parameters: Any) -> Any:
        if isinstance(parameters, tuple) and len(parameters) in (2, 3):
            return cls(*parameters)
        raise TraceTypeError("T.StridedTensor[...] takes [shape, strides, dtype]", user_span())


class Buffer(Tensor):
    """Deprecated spelling of :class:`Tensor`."""

    def __new__(
        cls, shape: Any, dtype: Any = "float32", data: Any = None, scope: str | None = None
    ) -> Any:
        warnings.warn("T.Buffer is deprecated; use T.Tensor", DeprecationWarning, stacklevel=2)
        return Tensor(shape, dtype, data, scope)


class _ScopedBuffer(metaclass=_TensorType):
    """Annotation of macro parameters that are tiles; it documents, it does not check."""

    default_scope = "global"

    def __new__(cls, shape: Any = (), dtype: Any = "float32", scope: str | None = None) -> Any:
        return TensorSpec(
            extents(shape, cls.__name__), element_type(dtype), None, scope or cls.default_scope
        )


class FragmentBuffer(_ScopedBuffer):
    """A tile in registers, distributed over the threads of a block."""

    default_scope = "local.fragment"


class SharedBuffer(_ScopedBuffer):
    """A tile in the memory shared by a block."""

    default_scope = "shared.dyn"


class LocalBuffer(_ScopedBuffer):
    """A tile private to a thread."""

    default_scope = "local"


def dynamic(name: str, dtype: Any = "int32") -> Any:
    """Sizes that are only known when the kernel is called.

    Parameters
    ----------
    name : str
        One name, or several separated by commas or spaces.
    dtype : dtype
        An integer type.

    Returns
    -------
    tirx.Var or tuple of tirx.Var
        To be used in the shapes of arguments.

    Examples
    --------
    >>> m, n = T.dynamic("m, n")  # doctest: +SKIP
    """
    kind = to_dtype(dtype)
    if not kind.is_integer:
        raise TraceTypeError(f"T.dynamic: a size is an integer, found dtype {kind}", user_span())
    names = symbol_names(name, "T.dynamic")
    variables = tuple(T.Var(each, kind.prim_type, user_span()) for each in names)
    return variables[0] if len(variables) == 1 else variables


def symbol_names(name: Any, what: str) -> list[str]:
    """Split ``"m, n"`` into valid names."""
    names = [part for part in re.split(r"[\s,]+", name) if part] if isinstance(name, str) else []
    if not names or not all(part.isidentifier() for part in names):
        raise TraceTypeError(f"{what}: expected names such as 'm, n', found {name!r}", user_span())
    return names


def symbolic(name: str, dtype: Any = "int32") -> Any:
    """Deprecated spelling of :func:`dynamic`."""
    warnings.warn("T.symbolic is deprecated; use T.dynamic", DeprecationWarning, stacklevel=2)
    return dynamic(name, dtype)


def _view(data: Any, spec: TensorSpec) -> ir.Var:
    """A buffer over the memory behind the pointer expression ``data``."""
    current = builder.current("a view of a pointer")
    if not isinstance(data, ir.Expr) or not isinstance(data.ty, ir.PointerType):
        raise TraceTypeError(
            f"expected a pointer (a T.ptr argument or buffer.data), found {data!r}", user_span()
        )
    span = user_span()
    buffer = spec.declare(current.take_name("view"), span)
    current.emit(T.DeclBuffer(buffer, data=data, span=span))
    return buffer


def make_tensor(pointer: Any, shape: Any, dtype: Any = "float32", strides: Any = None) -> ir.Var:
    """A tensor over the memory a pointer points to; nothing is copied.

    Parameters
    ----------
    pointer : pointer or int64 expression
        A ``T.ptr`` argument, ``buffer.data``, or an address loaded from a table of pointers.
    shape : int, expression or sequence of them
        Extents.
    dtype : dtype
        Element type.
    strides : sequence, optional
        In elements; default compact row-major.

    Raises
    ------
    TraceTypeError
        If ``pointer`` is neither a pointer nor an integer.
    """
    if isinstance(pointer, ir.Expr) and isinstance(pointer.ty, ir.PrimType):
        return make_tensor_from_addr(pointer, shape, dtype, strides)
    scope = "global"
    if isinstance(pointer, ir.Expr) and isinstance(pointer.ty, ir.PointerType):
        scope = pointer.ty.storage_scope or "global"
    return _view(pointer, _spec(shape, dtype, strides, scope))


def _spec(shape: Any, dtype: Any, strides: Any, scope: str) -> TensorSpec:
    if strides is not None:
        spec: TensorSpec = StridedTensor(shape, strides, dtype, scope)
        return spec
    return TensorSpec(extents(shape, "T.make_tensor"), element_type(dtype), None, scope)


def make_tensor_from_addr(
    addr: Any,
    shape: Any,
    dtype: Any = "float32",
    strides: Any = None,
    storage_scope: str = "global",
) -> ir.Var:
    """A tensor at an integer address. See :func:`make_tensor`.

    Raises
    ------
    TraceTypeError
        If ``addr`` is no 64-bit integer expression.
    """
    if not is_expr(addr) or str(addr.ty.dtype) not in ("int64", "uint64"):
        raise TraceTypeError(
            f"an address is a 64-bit integer expression, found {addr!r}", user_span()
        )
    spec = _spec(shape, dtype, strides, storage_scope)
    target = ir.PointerType(spec.dtype.prim_type, storage_scope)
    return _view(T.reinterpret(target, addr, user_span()), spec)


def match_buffer(
    param: Any, shape: Any, dtype: Any = "float32", strides: Any = None, scope: str = "global"
) -> ir.Var:
    """Give a ``T.handle`` argument its tensor type.

    Parameters
    ----------
    param : pointer argument
        Declared with ``T.handle``.
    shape, dtype, strides, scope
        As in :class:`Tensor`.

    Raises
    ------
    TraceError
        If ``param`` is no argument of the kernel being traced.
    """
    current = builder.current("T.match_buffer")
    buffer = _spec(shape, dtype, strides, scope).declare(
        getattr(param, "name", "buffer"), user_span()
    )
    if current.session is None or not current.session.replace_argument(param, buffer):
        raise TraceError("T.match_buffer needs a T.handle argument of this kernel", user_span())
    return buffer
