"""Turn the innermost parallel loop of a nest into whole vectors and a tail."""

from __future__ import annotations

from typing import Any

from tvm import DataType, ir, sym
from tvm import tirx as T
from tvm_ffi import VisitInterrupt, structural_map, structural_walk

from tilelang.cpu.features import Features
from tilelang.ir.expr import const_int, dtype_of

__all__ = ["vectorize_parallel"]

_WORKING_BYTES = 4  # narrower floats are computed in float32


def vectorize_parallel(func: T.PrimFunc, features: Features) -> T.PrimFunc:
    """Split innermost parallel loops that touch consecutive elements into vector loops.

    A loop qualifies if its body only stores to consecutive elements what it computes, without
    conditions, from consecutive or constant ones. Others stay as they are; LLVM may still find
    vectors in them.

    Before: ``for j in T.parallel(100): B[j] = exp(A[j])``. After: ``for q in range(6): for v in
    T.vectorized(16): B[q * 16 + v] = exp(A[q * 16 + v])``, then ``for j in range(4): B[96 + j] =
    ...``.
    """

    def on_for(loop: T.For) -> Any:
        if loop.kind != T.ForKind.PARALLEL or const_int(loop.min) != 0:
            return loop
        body = loop.body
        if isinstance(body, T.For) or not _qualifies(loop):
            return loop
        return _split(loop, features)

    return func.with_body(structural_map(func.body, (T.For, on_for)))


def _qualifies(loop: T.For) -> bool:
    analyzer = sym.Analyzer()
    var = loop.loop_var

    def stride(indices: Any) -> int | None:
        """Distance in elements of neighbours; None if it is not constant or not in the last dim."""
        *outer, last = [_step(analyzer, index, var) for index in indices]
        return last if all(step == 0 for step in outer) else None

    def stop(node: Any) -> Any:
        return VisitInterrupt(True)

    def on_store(stmt: T.BufferStore) -> Any:
        return None if stride(stmt.indices) == 1 else VisitInterrupt(True)

    def on_load(load: ir.TensorLoad) -> Any:
        return None if stride(load.indices) in (0, 1) else VisitInterrupt(True)

    def on_call(call: ir.Call) -> Any:
        pure = isinstance(call.op, ir.Op) and call.op.get_attr("TCallEffectKind") in (0, 1)
        lazy = isinstance(call.op, ir.Op) and call.op.name == "prim.if_then_else"
        return None if pure and not lazy else VisitInterrupt(True)

    rules = [
        (T.BufferStore, on_store),
        (T.SeqStmt, lambda stmt: None),
        (T.Stmt, stop),
        (ir.TensorLoad, on_load),
        (ir.Call, on_call),
        ((T.And, T.Or), stop),
    ]
    return structural_walk(loop.body, rules, order="pre") is None


def _step(analyzer: sym.Analyzer, index: Any, var: ir.Var) -> int | None:
    """How much ``index`` grows when ``var`` grows by one, if that is a constant."""
    moved = structural_map(index, (ir.Var, lambda v: v + 1 if v.same_as(var) else v))
    return const_int(analyzer.simplify(moved - index))


def _lanes(loop: T.For, features: Features) -> int:
    """Lanes of a vector of the widest type the loop computes with; copies compute nothing."""
    widest = _WORKING_BYTES
    bits: list[int] = []

    def measure(node: Any) -> None:
        buffer = node.buffer if isinstance(node, T.BufferStore) else node.source
        bits.append(DataType(dtype_of(buffer)).bits)

    structural_walk(loop.body, ((T.BufferStore, ir.TensorLoad), measure))
    if min(bits) >= 8 and _keeps_bits(loop.body):
        widest = 1
    return max(2, features.vector_bytes // max(widest, max(bits) // 8))


def _keeps_bits(body: T.Stmt) -> bool:
    """Whether ``body`` copies elements, at most with some of their bits flipped."""
    if not isinstance(body, T.BufferStore):
        return False
    value = body.value
    if isinstance(value, T.BitwiseXor) and isinstance(value.b, T.IntImm):
        value = value.a
    return isinstance(value, ir.TensorLoad)


def _split(loop: T.For, features: Features) -> T.Stmt:
    lanes = _lanes(loop, features)
    size = const_int(loop.extent)
    if size is not None and size < lanes:
        return loop
    whole = loop.extent // lanes if size is None else T.const(size // lanes, "int32")
    dtype = dtype_of(loop.loop_var)

    def at(index: ir.Expr) -> Any:
        return structural_map(
            loop.body, (ir.Var, lambda v: index if v.same_as(loop.loop_var) else v)
        )

    q, v, tail = T.Var("q", dtype), T.Var("v", dtype), T.Var(loop.loop_var.name, dtype)
    vector = T.For(v, 0, lanes, T.ForKind.VECTORIZED, at(q * lanes + v), span=loop.span)
    main = T.For(q, 0, whole, T.ForKind.SERIAL, vector, span=loop.span)
    if size is not None and size % lanes == 0:
        return main
    rest = loop.extent - whole * lanes if size is None else T.const(size % lanes, dtype)
    remainder = T.For(tail, 0, rest, T.ForKind.SERIAL, at(whole * lanes + tail), span=loop.span)
    return T.SeqStmt([main, remainder])
