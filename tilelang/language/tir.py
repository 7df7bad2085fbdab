"""Names of TVM's script language that kernels use beside ours: node classes and low-level calls.

The classes are TVM's own, for ``isinstance`` and annotations. The ``tvm_*`` functions build calls
for programs written in TVM's style; what a backend makes of them is not checked here.
"""

from __future__ import annotations

import typing
from typing import Any as _Any

from tvm import ir
from tvm import tirx as T
from tvm.ir import Call, Expr, Range, StringImm
from tvm.ir.prim import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Sub,
)
from tvm.tirx import Bind, BufferLoad, IterVar, Let, Reduce, Var
from tvm.tirx.op import (
    TVMBackendAllocWorkspace,
    TVMBackendFreeWorkspace,
    anylist_getitem,
    anylist_resetitem,
    anylist_setitem_call_cpacked,
    anylist_setitem_call_packed,
    call_cpacked_lowered,
    call_packed_lowered,
    end_profile_intrinsic,
    get_active_lane_mask,
    ignore_loop_partition,
    lookup_param,
    start_profile_intrinsic,
    tvm_access_ptr,
    tvm_bmma_sync,
    tvm_fill_fragment,
    tvm_load_matrix_sync,
    tvm_mma_sync,
    tvm_stack_alloca,
    tvm_stack_make_array,
    tvm_stack_make_shape,
    tvm_store_matrix_sync,
    tvm_struct_get,
    tvm_struct_set,
    tvm_thread_invariant,
    tvm_throw_last_error,
    tvm_tuple,
    type_annotation,
    undef,
    vscale,
)

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder, intrin
from tilelang.ir.dtype import dtype
from tilelang.ir.expr import dtype_of, is_buffer
from tilelang.ir.span import user_span
from tilelang.ir.values import as_scalar, cast
from tilelang.language.allreduce import attr, comm_reducer, tvm_thread_allreduce

__all__ = [
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "Add",
    "And",
    "Any",
    "Bind",
    "BufferLoad",
    "Call",
    "Div",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "IntImm",
    "IterVar",
    "Let",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Not",
    "Or",
    "PrimExpr",
    "Range",
    "Reduce",
    "StringImm",
    "Sub",
    "TVMBackendAllocWorkspace",
    "TVMBackendFreeWorkspace",
    "Var",
    "anylist_getitem",
    "anylist_resetitem",
    "anylist_setitem_call_cpacked",
    "anylist_setitem_call_packed",
    "attr",
    "bind",
    "boolean",
    "buffer_store",
    "call_cpacked_lowered",
    "call_packed_lowered",
    "comm_reducer",
    "end_profile_intrinsic",
    "evaluate",
    "get_active_lane_mask",
    "get_let_value",
    "has_let_value",
    "ignore_loop_partition",
    "lookup_param",
    "ret",
    "start_profile_intrinsic",
    "thread_return",
    "tvm_access_ptr",
    "tvm_bmma_sync",
    "tvm_fill_fragment",
    "tvm_load_matrix_sync",
    "tvm_mma_sync",
    "tvm_stack_alloca",
    "tvm_stack_make_array",
    "tvm_stack_make_shape",
    "tvm_storage_sync",
    "tvm_store_matrix_sync",
    "tvm_struct_get",
    "tvm_struct_set",
    "tvm_thread_allreduce",
    "tvm_thread_invariant",
    "tvm_throw_last_error",
    "tvm_tuple",
    "tvm_warp_activemask",
    "tvm_warp_shuffle",
    "tvm_warp_shuffle_down",
    "tvm_warp_shuffle_up",
    "type_annotation",
    "undef",
    "vscale",
]

#: Any scalar expression.
PrimExpr = Expr
boolean = dtype("bool")
Any = typing.Any


def tvm_warp_shuffle(mask: _Any, value: _Any, warp_id: _Any, width: _Any, warp_size: _Any) -> Expr:
    """``T.shfl_sync`` with the arguments in TVM's order; ``warp_size`` is that of the target."""
    return intrin.get("shfl_sync")(value, warp_id, width, mask)


def tvm_warp_shuffle_up(
    mask: _Any, value: _Any, offset: _Any, width: _Any, warp_size: _Any
) -> Expr:
    """``T.shfl_up`` with the arguments in TVM's order."""
    return intrin.get("shfl_up")(value, offset, width, mask)


def tvm_warp_shuffle_down(
    mask: _Any, value: _Any, offset: _Any, width: _Any, warp_size: _Any
) -> Expr:
    """``T.shfl_down`` with the arguments in TVM's order."""
    return intrin.get("shfl_down")(value, offset, width, mask)


def tvm_warp_activemask() -> Expr:
    """``T.activemask``."""
    return intrin.get("activemask")()


_BARRIERS = {
    "shared": "sync_threads",
    "shared.dyn": "sync_threads",
    "warp": "sync_warp",
    "global": "sync_global",
}


def tvm_storage_sync(storage_scope: str) -> None:
    """The barrier for memory of a scope: ``shared``, ``warp`` or ``global``.

    Raises
    ------
    TraceError
        For another scope, or outside of a kernel.
    """
    if storage_scope not in _BARRIERS:
        raise TraceError(
            f"T.tvm_storage_sync: there is no barrier for scope {storage_scope!r}; expected one of "
            f"{', '.join(_BARRIERS)}",
            user_span(),
        )
    intrin.get(_BARRIERS[storage_scope]).emit()


def evaluate(value: _Any) -> None:
    """Append an expression as a statement, for its effect.

    A call that has no value, such as ``T.sync_threads()``, is a statement already.

    Raises
    ------
    TraceTypeError
        If ``value`` is no expression or number.
    """
    if value is None:
        return
    span = user_span()
    call = value if isinstance(value, ir.Call) else as_scalar(value, "T.evaluate")
    builder.current("T.evaluate").emit(T.Evaluate(call, span))


def buffer_store(buffer: ir.Var, value: _Any, indices: _Any) -> None:
    """``buffer[indices] = value``; ``value`` is cast to the dtype of the buffer.

    Raises
    ------
    TraceTypeError
        If ``buffer`` is no buffer or the number of indices is not its rank.
    """
    span = user_span()
    if not is_buffer(buffer):
        raise TraceTypeError(f"T.buffer_store: {type(buffer).__name__} is no buffer", span)
    where = list(indices) if isinstance(indices, (list, tuple)) else [indices]
    if len(where) != len(buffer.shape):
        raise TraceTypeError(
            f"T.buffer_store: {buffer.name} has {len(buffer.shape)} dimensions, found {len(where)} "
            "indices",
            span,
        )
    stored = cast(as_scalar(value, "T.buffer_store"), dtype_of(buffer))
    builder.current("T.buffer_store").emit(T.BufferStore(buffer, stored, where, span))


def bind(value: _Any, name: str = "v") -> ir.Var:
    """Evaluate ``value`` once, here, and return the variable that holds it."""
    expr = as_scalar(value, "T.bind")
    return builder.current("T.bind").bind(name, expr, user_span())


def has_let_value(var: _Any) -> bool:
    """Whether the value behind ``var`` is known: it was assigned in a block that is still open."""
    active = builder.current_or_none()
    return active is not None and isinstance(var, ir.Var) and active.value_of(var) is not None


def get_let_value(var: ir.Var) -> Expr:
    """The expression that ``var`` was assigned.

    Raises
    ------
    TraceError
        If it is not known; see :func:`has_let_value`.
    """
    active = builder.current("T.get_let_value")
    value = active.value_of(var) if isinstance(var, ir.Var) else None
    if value is None:
        raise TraceError(f"T.get_let_value: no value is known for {var}", user_span())
    return value


def ret(value: _Any) -> None:
    """Return ``value`` from the function."""
    span = user_span()
    builder.current("T.ret").emit(T.Return(as_scalar(value, "T.ret"), span))


def thread_return() -> None:
    """End this thread: the statements behind it run for the other threads only.

    In a program of tiles, where the threads of a block act together, it ends the block. Like
    :func:`ret` it cannot end one thread of many on a CPU.
    """
    builder.current("T.thread_return").emit(T.Return(as_scalar(0, "T.thread_return"), user_span()))
