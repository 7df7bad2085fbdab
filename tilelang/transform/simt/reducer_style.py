"""The older style of reducers: assignments that add to what is there."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_equal, structural_map

from tilelang.ir.op import REDUCER_UPDATE, ReducerAttrs
from tilelang.ir.op.reducer import SCOPE_PREFIX

__all__ = ["name_updates"]

_FOLDS: dict[str, Any] = {"sum": T.Add, "max": T.Max, "min": T.Min}


def name_updates(body: T.Stmt) -> T.Stmt:
    """Write assignments that contribute to a reducer as updates.

    Before: ``r[j] = T.max(r[j], v)``. After: ``T.reducer_update(r[j], v)``.
    """
    return structural_map(body, (T.BufferStore, _named))


def _named(store: T.BufferStore) -> Any:
    scope = str(store.buffer.scope())
    kind = scope.removeprefix(SCOPE_PREFIX)
    if not scope.startswith(SCOPE_PREFIX) or not isinstance(store.value, _FOLDS.get(kind, ())):
        return store
    target = T.BufferLoad(store.buffer, list(store.indices), store.span)
    for old, value in ((store.value.a, store.value.b), (store.value.b, store.value.a)):
        if structural_equal(old, target):
            attrs = ReducerAttrs(kind=kind)
            args = [target, value]
            call = ir.Call(REDUCER_UPDATE, args, attrs=attrs, ret_ty="void", span=store.span)
            return T.Evaluate(call, store.span)
    return store
