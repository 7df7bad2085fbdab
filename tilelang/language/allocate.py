"""Allocation of tiles, variables, workspaces and outputs inside a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder
from tilelang.ir.expr import const_int
from tilelang.ir.span import user_span
from tilelang.language.eager.mode import declares_kernel
from tilelang.language.eager.subscript import store
from tilelang.language.tensor import TensorSpec, declare_buffer, element_type, extents

__all__ = [
    "alloc_barrier",
    "alloc_buffer",
    "alloc_fragment",
    "alloc_global",
    "alloc_local",
    "alloc_shared",
    "alloc_var",
    "allocate",
    "empty",
]


def _allocate(
    what: str,
    shape: Any,
    dtype: Any,
    scope: str,
    default_name: str,
    annotations: Mapping[str, Any] | None = None,
) -> ir.Var:
    current = builder.current(what)
    if current.kernel is None and scope != "global":
        raise TraceError(f"{what} is only valid inside 'with T.Kernel(...)'", user_span())
    sizes = extents(shape, what, least=1)
    for size in sizes:
        if const_int(size) is None and scope != "global":
            raise TraceError(
                f"{what}: the shape must be known while the kernel is traced, found {size}",
                user_span(),
            )
    span = user_span()
    name = current.take_name(default_name)
    try:
        kind = element_type(dtype)
    except TraceTypeError as error:
        raise TraceTypeError(f"{what}: {error.message}", span) from None
    if kind == "bool" and scope == "shared.dyn":
        scope = "shared"
    buffer = declare_buffer(sizes, kind, name, scope, span=span)
    current.emit(T.AllocBuffer(buffer, dict(annotations) if annotations else None, span))
    return buffer


def alloc_shared(shape: Any, dtype: Any, scope: str = "shared.dyn") -> ir.Var:
    """A tile in the memory shared by the threads of a block.

    Parameters
    ----------
    shape : int or sequence of int
        Extents, known while the kernel is traced.
    dtype : dtype
        Element type. bool is always placed in static shared memory.
    scope : str
        ``"shared.dyn"`` or ``"shared"``.

    Examples
    --------
    >>> A_shared = T.alloc_shared((128, 32), T.float16)  # doctest: +SKIP
    """
    return _allocate("T.alloc_shared", shape, dtype, scope, "shared")


def alloc_fragment(shape: Any, dtype: Any, scope: str = "local.fragment") -> ir.Var:
    """A tile in registers, distributed over the threads of a block; its layout is inferred.

    Parameters as in :func:`alloc_shared`.
    """
    return _allocate("T.alloc_fragment", shape, dtype, scope, "fragment")


def alloc_local(shape: Any, dtype: Any, scope: str = "local") -> ir.Var:
    """An array private to each thread. Parameters as in :func:`alloc_shared`."""
    return _allocate("T.alloc_local", shape, dtype, scope, "local")


def alloc_var(dtype: Any, *args: Any, scope: str = "local.var", init: Any = None) -> ir.Var:
    """A mutable scalar, read and assigned like a Python variable.

    Parameters
    ----------
    dtype : dtype
        Its type; ``T.ptr`` is stored as int64.
    *args
        The initial value, then the scope; a lone string is the scope.
    scope : str
        Default ``"local.var"``.
    init : number or expression, optional
        The initial value. Without one the variable must be assigned before it is read.

    Raises
    ------
    TraceTypeError
        For too many positional arguments or two initial values.

    Examples
    --------
    >>> total = T.alloc_var(T.float32, init=0.0)  # doctest: +SKIP
    >>> total += A[i]  # doctest: +SKIP
    """
    rest = list(args)
    if rest and isinstance(rest[-1], str):
        scope = rest.pop()
    if rest and init is None:
        init = rest.pop()
    if rest:
        raise TraceTypeError(
            "T.alloc_var takes a dtype, an initial value and a scope; the initial value was "
            "given twice",
            user_span(),
        )
    variable = _allocate("T.alloc_var", (1,), dtype, scope, "var")
    if init is not None:
        store(init, 0, variable)
    return variable


def alloc_global(shape: Any, dtype: Any, scope: str = "global") -> ir.Var:
    """A workspace in device memory, allocated for the duration of the call.

    Inside a launch it is hoisted to the host side, so its shape cannot use kernel values.
    """
    what = "T.alloc_global"
    current = builder.current(what)
    if current.kernel is None:
        return _allocate(what, shape, dtype, scope, "workspace")
    with current.before_kernel():
        return _allocate(what, shape, dtype, scope, "workspace")


def alloc_buffer(shape: Any, dtype: Any = "float32", scope: str = "global") -> ir.Var:
    """Allocate a buffer of any scope."""
    return _allocate("T.alloc_buffer", shape, dtype, scope or "global", "buffer")


allocate = alloc_buffer


def alloc_barrier(arrive_count: int | Sequence[int]) -> ir.Var:
    """An array of memory barriers in shared memory.

    Parameters
    ----------
    arrive_count : int or sequence of int
        Arrivals that complete a phase, one per barrier.

    Raises
    ------
    TraceError
        If a count is below 1.
    """
    counts = [arrive_count] if isinstance(arrive_count, int) else list(arrive_count)
    for count in counts:
        if not isinstance(count, int) or count < 1:
            raise TraceError(
                f"T.alloc_barrier: arrive counts must be >= 1, found {count!r}", user_span()
            )
    notes = {"arrive_count": counts}
    return _allocate(
        "T.alloc_barrier", (len(counts),), "uint64", "shared.barrier", "mbarrier", notes
    )


@declares_kernel
def empty(*shape: Any, dtype: Any = "float32") -> ir.Var:
    """An output tensor, allocated by the call and returned by the kernel.

    Parameters
    ----------
    *shape
        Extents, or a shape and a dtype: ``T.empty((M, N), "float16")``, ``T.empty(M, N)``.
    dtype : dtype
        Element type, unless given positionally.

    Raises
    ------
    TraceError
        Outside a kernel function, or inside ``T.Kernel``.

    Examples
    --------
    >>> C = T.empty((M, N), dtype=T.float16)  # doctest: +SKIP
    """
    current = builder.current("T.empty")
    if current.kernel is not None or current.session is None:
        raise TraceError(
            "T.empty declares an output; call it before 'with T.Kernel(...)'", user_span()
        )
    sizes: Any = shape
    if len(shape) == 2 and (_is_shape(shape[0]) or isinstance(shape[1], str)):
        sizes, dtype = shape
    elif len(shape) == 1:
        sizes = shape[0]
    spec = TensorSpec(extents(sizes, "T.empty"), element_type(dtype))
    output: ir.Var = current.session.add_output(spec, current.take_name("out"), user_span())
    return output


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple | list)
