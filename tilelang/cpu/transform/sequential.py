"""Turn tile-language loops into plain ones: a CPU block is one thread."""

from __future__ import annotations

from tvm import tirx as T
from tvm_ffi import structural_map

__all__ = ["sequential_loops"]


def sequential_loops(func: T.PrimFunc) -> T.PrimFunc:
    """Make parallel and pipelined loops sequential and drop the annotations that are spent.

    Sets the attribute ``tl.may_alias`` if a tensor was declared to overlap another.

    Before: ``for i in T.parallel(64): ...``. After: ``for i in range(64): ...``.
    """

    def on_for(loop: T.For) -> T.Stmt:
        if loop.kind not in (T.ForKind.PARALLEL, T.ForKind.SERIAL):
            return loop
        if loop.kind == T.ForKind.SERIAL and not len(loop.annotations):
            return loop
        return T.For(
            loop.loop_var,
            loop.min,
            loop.extent,
            T.ForKind.SERIAL,
            loop.body,
            step=loop.step,
            span=loop.span,
        )

    aliased = False

    def on_attr(stmt: T.AttrStmt) -> T.Stmt:
        nonlocal aliased
        aliased = aliased or stmt.attr_key == "tl.may_alias"
        return stmt.body if stmt.attr_key.startswith("tl.") else stmt

    result = func.with_body(structural_map(func.body, [(T.For, on_for), (T.AttrStmt, on_attr)]))
    return result.with_attr("tl.may_alias", True) if aliased else result
