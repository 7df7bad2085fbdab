"""Expand tile ops and element atomics into loops over plain loads and stores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_mutate

from tilelang.cpu.op import BODIES, Lowering
from tilelang.cpu.transform.atomics import (
    commuting_updates,
    update_store,
    worth_sharing,
)
from tilelang.cpu.transform.next_tiles import next_tiles
from tilelang.errors import UnsupportedError
from tilelang.ir.expr import dtype_of
from tilelang.ir.op import ELEMENT_ATOMIC, REDUCER_UPDATE, TileCall

__all__ = ["lower_element_updates", "lower_tile_ops"]

_UPDATES = {
    "add": lambda old, value: old + value,
    "sum": lambda old, value: old + value,
    "max": lambda old, value: T.max(old, value),
    "min": lambda old, value: T.min(old, value),
    "or": lambda old, value: T.bitwise_or(old, value),
    "bitor": lambda old, value: T.bitwise_or(old, value),
    "bitand": lambda old, value: T.bitwise_and(old, value),
    "bitxor": lambda old, value: T.bitwise_xor(old, value),
    "store": lambda old, value: value,
}


def lower_tile_ops(func: T.PrimFunc, ctx: Lowering) -> T.PrimFunc:
    """Replace every tile op by the body this backend has for it.

    Before: ``T.copy(A[bx * 64:+64], A_shared[0:64])``. After:
    ``for i in T.parallel(64): A_shared[i] = A[bx * 64 + i]``.

    Raises
    ------
    UnsupportedError
        If an op has no body on the CPU.
    """

    upcoming: tuple[ir.TensorRegion, ...] = ()

    def lower(stmt: T.Evaluate, mutator: Any) -> T.Stmt:
        nonlocal upcoming
        call = TileCall.of(stmt)
        if call is None:
            return mutator.default_mutate(stmt)
        body = BODIES.get(call.name)
        if body is None:
            raise UnsupportedError.on_backend(f"T.{call.name}", "cpu", (), call.span)
        if call.name != "gemm":
            return body(call, ctx)
        announced, upcoming = upcoming, ()
        return body(call, replace(ctx, upcoming=announced))

    def on_loop(loop: T.For, mutator: Any) -> Any:
        nonlocal upcoming
        outer, upcoming = upcoming, next_tiles(loop)
        result = mutator.default_mutate(loop)
        upcoming = outer
        return result

    return func.with_body(structural_mutate(func.body, [(T.Evaluate, lower), (T.For, on_loop)]))


def lower_element_updates(func: T.PrimFunc) -> T.PrimFunc:
    """Turn element atomics, reducer updates and reads through a cache into loads and stores.

    Atomics on tensors stay atomic where their order cannot be seen and the blocks have more to do
    than updates. Otherwise the blocks run on one
    thread (the launch carries the flag ``serial``), so a plain read-modify-write is atomic.

    Before: ``prev = atomic(C[i], v)``. After: ``prev = C[i]; C[i] = prev + v``.
    """

    shared_tensors = False
    shared = commuting_updates(func) and worth_sharing(func)

    def update(call: ir.Call, old: ir.Expr) -> T.Stmt | None:
        nonlocal shared_tensors
        shared_tensors = shared_tensors or call.args[0].source.scope() == "global"
        kind = call.attrs.kind
        if kind == "load":
            return None
        target = call.args[0]
        value = _UPDATES[kind](old, call.args[1])
        if dtype_of(value) != dtype_of(target):
            value = value.astype(dtype_of(target))
        return T.BufferStore(target.source, value, list(target.indices), call.span)

    def on_evaluate(stmt: T.Evaluate) -> T.Stmt:
        if not _is_update(stmt.value):
            return stmt
        if shared and stmt.value.args[0].source.scope() == "global":
            return update_store(stmt.value)
        return update(stmt.value, stmt.value.args[0]) or T.Evaluate(0)

    def on_bind(stmt: T.Bind) -> T.Stmt:
        if not _is_update(stmt.value):
            return stmt
        load = T.Bind(stmt.var, stmt.value.args[0], stmt.span)
        store = update(stmt.value, stmt.var)
        return load if store is None else T.SeqStmt([load, store])

    rules = [(T.Evaluate, on_evaluate), (T.Bind, on_bind), (ir.Call, _plain_access)]
    body = structural_map(func.body, rules)
    result = func.with_body(body)
    return result.with_attr("tl.launch_flags", ["serial"]) if shared_tensors else result


def _plain_access(call: ir.Call) -> ir.Expr:
    """``T.__ldg(A[i])`` is ``A[i]``, and ``T.access_ptr`` of an element its address."""
    name = call.op.name if isinstance(call.op, ir.Op) else ""
    if name == "tl.__ldg":
        return call.args[0]
    if name != "tl.access_ptr":
        return call
    return ir.Call(ir.Op.get("tirx.address_of"), [call.args[0]], ret_ty=call.ty, span=call.span)


def _is_update(value: Any) -> bool:
    is_call = isinstance(value, ir.Call)
    return is_call and (value.op.same_as(ELEMENT_ATOMIC) or value.op.same_as(REDUCER_UPDATE))
