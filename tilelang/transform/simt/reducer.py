"""Reducers in shared memory: contributions are atomic updates of it."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map

from tilelang.ir.expr import dtype_of
from tilelang.ir.op import ELEMENT_ATOMIC, REDUCER_UPDATE, AtomicAttrs

__all__ = ["update_atomically"]

_KINDS = {"sum": "add", "max": "max", "min": "min", "bitand": "and", "bitor": "or", "bitxor": "xor"}


def update_atomically(body: T.Stmt) -> T.Stmt:
    """Write contributions to reducers as atomics.

    Before: ``T.reducer_update(r[i], v)``. After: ``T.atomic_add(r[i], v)``.
    """

    def update(call: ir.Call) -> Any:
        if not call.op.same_as(REDUCER_UPDATE):
            return call
        target, value = call.args
        attrs = AtomicAttrs(kind=_KINDS[call.attrs.kind])
        return ir.Call(
            ELEMENT_ATOMIC, [target, value], attrs=attrs, ret_ty=dtype_of(target), span=call.span
        )

    return structural_map(body, (ir.Call, update))
