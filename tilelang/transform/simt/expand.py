"""Element-wise tile ops become parallel nests, which the thread partition then deals out."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map

from tilelang.ir.op import REDUCER_INIT, TileCall
from tilelang.transform import elementwise
from tilelang.transform.simt.access_map import mentions
from tilelang.transform.simt.launch import launch_of
from tilelang.transform.simt.own_storage import lower_own
from tilelang.transform.simt.reducer_style import name_updates
from tilelang.transform.thread_use import is_thread_program

__all__ = ["ELEMENTWISE", "expand_elementwise"]

#: Ops that treat every element alike, by name.
ELEMENTWISE: dict[str, Any] = {
    "atomic": elementwise.lower_atomic,
    "copy": elementwise.lower_copy,
    "fill": elementwise.lower_fill,
    "im2col": elementwise.lower_im2col,
    "transpose": elementwise.lower_transpose,
}
_PER_ELEMENT = ("atomic", "copy", "fill", "im2col", "transpose")


def expand_elementwise(func: T.PrimFunc) -> T.PrimFunc:
    """Replace element-wise tile ops by nests; a nest of a copy carries its options.

    Before: ``T.copy(A[bx * 64:+64], A_shared)``. After: ``for i in T.parallel(64): A_shared[i] =
    A[bx * 64 + i]``. In a thread program, an op on storage of the thread, or at a place that names
    it, becomes loops of each thread.
    """
    threads = launch_of(func).variables("threadIdx") if is_thread_program(func) else None

    def expand(stmt: T.Evaluate) -> T.Stmt:
        call = TileCall.of(stmt)
        if call is not None and threads is not None and _is_per_thread(call, threads):
            if call.name in _PER_ELEMENT:
                return _serial(ELEMENTWISE[call.name](call, None))
            if call.name not in ("reducer_init", "finalize_reducer") and _is_own(call):
                return lower_own(call)
        if call is not None and call.name == "reducer_init":
            return _with_bound_start(stmt, call)
        if call is None or call.name not in ELEMENTWISE:
            return stmt
        nest = ELEMENTWISE[call.name](call, None)
        return _with_notes(nest, call) if call.name == "copy" else nest

    return func.with_body(name_updates(structural_map(func.body, (T.Evaluate, expand))))


def _is_per_thread(call: TileCall, threads: list[ir.Var]) -> bool:
    return any(
        str(region.source.scope()) in ("local", "local.var") or mentions(region, threads)
        for region in (*call.regions("r"), *call.regions("w"))
    )


def _is_own(call: TileCall) -> bool:
    """Whether a result of the op is storage that every thread has for itself."""
    return any(str(r.source.scope()) in ("local", "local.var") for r in call.regions("w"))


def _serial(nest: T.Stmt) -> T.Stmt:
    """The iterations of a parallel nest, one after another."""
    if not isinstance(nest, T.For) or nest.kind != T.ForKind.PARALLEL:
        return nest
    return T.For(
        nest.loop_var, nest.min, nest.extent, T.ForKind.SERIAL, _serial(nest.body), None, {},
        nest.step, nest.span,
    )  # fmt: skip


def _with_bound_start(stmt: T.Evaluate, call: TileCall) -> T.Stmt:
    """Evaluate the start value before: it may read tiles, which the op itself does not."""
    start = call.get("start")
    if start is None or isinstance(start, (T.IntImm, T.FloatImm)):
        return stmt
    once = T.Var("start", start.ty)
    attrs = {"kind": call.attrs.kind, "batch": call.attrs.batch}
    opened = REDUCER_INIT.call(call.span, attrs, reducer=call.operand("reducer"), start=once)
    return T.SeqStmt([T.Bind(once, start, call.span), opened], call.span)


def _with_notes(nest: T.Stmt, call: TileCall) -> T.Stmt:
    """Mark the nest of a copy: passes overlap it, and honour the user's hints."""
    if not isinstance(nest, T.For):
        return nest
    notes: dict[str, Any] = {**nest.annotations, "tl.copy": 1}
    if call.attrs.coalesced_width:
        notes["coalesced_width"] = int(call.attrs.coalesced_width)
    if call.attrs.loop_layout is not None:
        notes["loop_layout"] = call.attrs.loop_layout
    if call.attrs.is_async:
        notes["tl.async"] = 1
    return with_annotations(nest, notes)


def with_annotations(loop: T.For, annotations: dict[str, Any]) -> T.For:
    """``loop`` with other annotations."""
    return T.For(
        loop.loop_var, loop.min, loop.extent, loop.kind, loop.body, loop.thread_binding,
        annotations, loop.step, loop.span,
    )  # fmt: skip
