"""Turn tile-language loops into plain ones: a CPU block is one thread."""

from __future__ import annotations

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_walk

from tilelang.cpu.transform.threads.classify import leaves_loop
from tilelang.ir.expr import const_int

__all__ = ["sequential_loops"]


_LIKELY = ir.Op.get("prim.likely")


def sequential_loops(func: T.PrimFunc) -> T.PrimFunc:
    """Make parallel and pipelined loops sequential and drop annotations and hints that are spent.

    Sets the attribute ``tl.may_alias`` if a tensor was declared to overlap another.

    Before: ``for i in T.parallel(64): ...``. After: ``for i in range(64): ...``.
    """

    def on_for(loop: T.For) -> T.Stmt:
        if loop.kind == T.ForKind.UNROLLED:
            return _expandable(loop)
        if loop.kind == T.ForKind.VECTORIZED:
            return loop if _is_vector(loop) else _serial(loop)
        if loop.kind not in (T.ForKind.PARALLEL, T.ForKind.SERIAL):
            return loop
        if loop.kind == T.ForKind.SERIAL and not len(loop.annotations):
            return loop
        return _serial(loop)

    aliased = False

    def on_attr(stmt: T.AttrStmt) -> T.Stmt:
        nonlocal aliased
        aliased = aliased or stmt.attr_key == "tl.may_alias"
        return stmt.body if stmt.attr_key.startswith("tl.") else stmt

    def on_call(call: ir.Call) -> ir.Expr:
        return call.args[0] if call.op.same_as(_LIKELY) else call

    rules = [(T.For, on_for), (T.AttrStmt, on_attr), (ir.Call, on_call)]
    result = func.with_body(structural_map(func.body, rules))
    return result.with_attr("tl.may_alias", True) if aliased else result


# Copies of a body above which expanding costs compile time (a second at 4096) and gains nothing.
_MOST_COPIES = 256


def _is_vector(loop: T.For) -> bool:
    """Whether TVM vectorises a vector loop; it loses temporaries where it gives up on a part."""
    lanes = const_int(loop.extent)
    binds: list[T.Bind] = []
    structural_walk(loop.body, (T.Bind, binds.append))
    return lanes is not None and lanes > 1 and not binds


def _serial(loop: T.For) -> T.For:
    return T.For(
        loop.loop_var,
        loop.min,
        loop.extent,
        T.ForKind.SERIAL,
        loop.body,
        step=loop.step,
        span=loop.span,
    )


def _expandable(loop: T.For) -> T.For:
    """An unrolled loop as TVM expands it: with a constant extent and without a step."""
    extent, step = const_int(loop.extent), 1 if loop.step is None else const_int(loop.step)
    if extent is None or step is None or leaves_loop(loop.body):
        return _serial(loop)
    if -(-extent // step) > _MOST_COPIES:
        return _serial(loop)
    if step == 1:
        return loop
    count = T.Var(loop.loop_var.name, loop.loop_var.ty)
    value = loop.min + count * T.const(step, loop.loop_var.ty)
    body = structural_map(
        loop.body, (ir.Var, lambda var: value if var.same_as(loop.loop_var) else var)
    )
    iterations = T.const(-(-extent // step), loop.loop_var.ty)
    start = T.const(0, loop.loop_var.ty)
    return T.For(
        count,
        start,
        iterations,
        loop.kind,
        body,
        annotations=loop.annotations,
        span=loop.span,
    )
