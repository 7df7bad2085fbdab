"""Bodies of the reductions and scans.

A reduction over the innermost dimension keeps several vectors of partial results; over any other
dimension the vectors run along the inner dimensions. Narrow floats accumulate in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.cpu.op.loops import (
    Lowering,
    alloc,
    load,
    nest,
    serial,
    store,
    vectorized,
)
from tilelang.errors import LoweringError
from tilelang.ir.expr import const_int, dtype_of, is_float_dtype
from tilelang.ir.op import TileCall
from tilelang.ir.op.reducer import identity
from tilelang.ir.region import region_extents
from tilelang.transform import folds
from tilelang.transform.folds import Combine, working_dtype

__all__ = ["lower_logical", "lower_reduce", "lower_scan"]

_UNROLL = 4


def _step(kind: str, nan_propagate: bool, dtype: str) -> Combine:
    """How a new element enters a partial result, which is never NaN unless NaN propagate.

    A NaN compares false, so one comparison ignores it; the general minimum and maximum need two.
    """
    if nan_propagate or kind not in ("max", "min") or not is_float_dtype(dtype):
        return folds.combine(kind, nan_propagate)
    if kind == "max":
        return lambda partial, element: T.Select(element > partial, element, partial)
    return lambda partial, element: T.Select(element < partial, element, partial)


def lower_reduce(call: TileCall, ctx: Lowering) -> T.Stmt:
    """Reduce dimension ``dim`` of ``src`` into ``dst``."""
    attrs, src, dst = call.attrs, call.operand("src"), call.operand("dst")
    dtype = working_dtype(dtype_of(src), dtype_of(dst))
    kind = attrs.kind.removeprefix("abs")
    combine = folds.combine(kind, attrs.nan_propagate)
    step = _step(kind, attrs.nan_propagate, dtype)
    extents = region_extents(src)
    outer, extent, inner = extents[: attrs.dim], extents[attrs.dim], extents[attrs.dim + 1 :]

    def value(at: list[ir.Expr], k: Any, rest: list[ir.Expr]) -> ir.Expr:
        element = load(src, [*at, k, *rest], dtype)
        return T.abs(element) if attrs.kind.startswith("abs") else element

    def finish(at: list[ir.Expr], rest: list[ir.Expr], result: ir.Expr) -> T.Stmt:
        offsets = (
            [*at, *rest]
            if len(region_extents(dst)) < len(extents)
            else [*at, T.const(0, "int32"), *rest]
        )
        if not region_extents(dst) or (len(offsets) == 0):
            offsets = [T.const(0, "int32")] * len(region_extents(dst))
        if not attrs.clear:
            result = combine(load(dst, offsets, dtype), result)
        return store(dst, offsets, result, call.span)

    start = identity(kind, dtype)
    if all(const_int(e) == 1 for e in inner):
        rest = [T.const(0, "int32") for _ in inner]

        def body(at: list[ir.Expr]) -> T.Stmt:
            return _reduce_row(
                extent,
                start,
                dtype,
                ctx,
                step,
                lambda k: value(at, k, rest),
                lambda r: finish(at, rest, r),
            )

    else:

        def body(at: list[ir.Expr]) -> T.Stmt:
            return _reduce_columns(
                inner,
                extent,
                start,
                dtype,
                step,
                lambda k, rest: value(at, k, rest),
                lambda rest, r: finish(at, rest, r),
                call.span,
            )

    return nest(outer, body, call.span, parallel=False)


def _reduce_row(
    extent: Any,
    start: ir.Expr,
    dtype: str,
    ctx: Lowering,
    combine: Combine,
    value: Callable[[Any], ir.Expr],
    finish: Callable[[ir.Expr], T.Stmt],
) -> T.Stmt:
    """Fold ``value(k)`` for k in [0, extent) and hand the result to ``finish``."""
    total = alloc("total", [1], dtype)
    zero = T.const(0, "int32")
    parts: list[T.Stmt] = [T.AllocBuffer(total), T.BufferStore(total, start, [zero])]
    size = const_int(extent)
    width = ctx.lanes(dtype)
    while size is not None and width > 1 and size < width:
        width //= 2
    done = 0
    if size is not None and width > 1:
        count = min(_UNROLL, size // width)
        partial = alloc("partial", [count * width], dtype)
        chunk = count * width
        done = size // chunk * chunk

        def update(position: Callable[[ir.Expr], ir.Expr]) -> T.Stmt:
            return T.stmt_seq(
                *(
                    vectorized(
                        width,
                        lambda v, u=u: T.BufferStore(
                            partial,
                            combine(partial[u * width + v], value(position(u * width + v))),
                            [u * width + v],
                        ),
                    )
                    for u in range(count)
                )
            )

        parts += [
            T.AllocBuffer(partial),
            vectorized(chunk, lambda v: T.BufferStore(partial, start, [v]))
            if chunk & (chunk - 1) == 0
            else serial(chunk, lambda v: T.BufferStore(partial, start, [v])),
            serial(size // chunk, lambda q: update(lambda offset: q * chunk + offset)),
            *_fold_partial(partial, count, width, combine),
            T.BufferStore(total, combine(total[zero], partial[zero]), [zero]),
        ]
    if size is None or done < size:
        rest = extent - done if size is None else size - done
        parts.append(
            serial(
                rest, lambda k: T.BufferStore(total, combine(total[zero], value(k + done)), [zero])
            )
        )
    return T.SeqStmt([*parts, finish(total[zero])])


def _fold_partial(partial: ir.Var, count: int, width: int, combine: Combine) -> list[T.Stmt]:
    """Fold ``count`` vectors into the first, then its halves, down to element 0."""
    stmts: list[T.Stmt] = []
    for u in range(1, count):
        stmts.append(
            vectorized(
                width,
                lambda v, u=u: T.BufferStore(
                    partial, combine(partial[v], partial[u * width + v]), [v]
                ),
            )
        )
    half = width // 2
    while half >= 1:
        step = (lambda n, f: vectorized(n, f)) if half > 1 else (lambda n, f: serial(n, f))
        stmts.append(
            step(
                half,
                lambda v, half=half: T.BufferStore(
                    partial, combine(partial[v], partial[v + half]), [v]
                ),
            )
        )
        half //= 2
    return stmts


def _reduce_columns(
    inner: list[Any],
    extent: Any,
    start: ir.Expr,
    dtype: str,
    combine: Combine,
    value: Callable[[Any, list[ir.Expr]], ir.Expr],
    finish: Callable[[list[ir.Expr], ir.Expr], T.Stmt],
    span: ir.Span | None,
) -> T.Stmt:
    """Fold rows elementwise into one accumulator an inner position."""
    sizes = [const_int(e) for e in inner]
    if any(size is None for size in sizes):
        raise LoweringError(
            "a reduction needs constant extents in the dimensions behind the reduced one", span
        )
    acc = alloc("acc", [size for size in sizes if size is not None], dtype)
    return T.SeqStmt(
        [
            T.AllocBuffer(acc),
            nest(inner, lambda at: T.BufferStore(acc, start, at), span),
            serial(
                extent,
                lambda k: nest(
                    inner,
                    lambda at: T.BufferStore(acc, combine(acc[tuple(at)], value(k, at)), at),
                    span,
                ),
            ),
            nest(inner, lambda at: finish(at, acc[tuple(at)]), span),
        ]
    )


def lower_scan(call: TileCall, ctx: Lowering) -> T.Stmt:
    """Inclusive scan along ``dim``; vectors run along the inner dimensions."""
    attrs, src, dst = call.attrs, call.operand("src"), call.operand("dst")
    dtype = working_dtype(dtype_of(src), dtype_of(dst))
    combine = folds.combine(attrs.kind, False)
    extents = region_extents(src)
    outer, extent, inner = extents[: attrs.dim], extents[attrs.dim], extents[attrs.dim + 1 :]
    sizes = [const_int(e) or 1 for e in inner] or [1]
    acc = alloc("running", sizes, dtype)

    def body(at: list[ir.Expr]) -> T.Stmt:
        def step(k: ir.Var) -> T.Stmt:
            index = extent - 1 - k if attrs.reverse else k

            def one(rest: list[ir.Expr]) -> T.Stmt:
                where = rest or [T.const(0, "int32")]
                total = combine(acc[tuple(where)], load(src, [*at, index, *rest], dtype))
                save = T.BufferStore(acc, total, where)
                return T.SeqStmt(
                    [save, store(dst, [*at, index, *rest], acc[tuple(where)], call.span)]
                )

            return nest(inner, one, call.span)

        reset = nest(
            sizes, lambda rest: T.BufferStore(acc, identity(attrs.kind, dtype), rest), call.span
        )
        return T.SeqStmt([reset, serial(extent, step)])

    return T.SeqStmt([T.AllocBuffer(acc), nest(outer, body, call.span, parallel=False)])


def lower_logical(call: TileCall, ctx: Lowering) -> T.Stmt:
    """Whether any or all elements are non-zero."""
    src, dst = call.operand("src"), call.operand("dst")
    any_of = call.attrs.kind == "any"
    zero = [T.const(0, "int32")]

    def body(at: list[ir.Expr]) -> T.Stmt:
        element = load(src, at)
        truth = (
            element if dtype_of(element) == "bool" else T.NE(element, T.const(0, dtype_of(element)))
        )
        old = load(dst, zero)
        return store(dst, zero, T.Or(old, truth) if any_of else T.And(old, truth))

    return T.SeqStmt(
        [
            store(dst, zero, T.const(not any_of, "bool")),
            nest(region_extents(src), body, call.span, parallel=False),
        ]
    )
