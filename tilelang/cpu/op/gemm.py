"""Body of ``T.gemm``: a register-blocked micro-kernel over packed operands.

The accumulator tile is cut into blocks of ``rows x cols`` that stay in vector registers while k
runs: every step broadcasts one element of A a row and multiplies it with vectors of B. An operand
that does not already lie that way (B transposed, or another dtype than the accumulator's) is
first copied to a packed temporary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.cpu.op.loops import (
    Lowering,
    accumulator_dtype,
    alloc,
    load,
    nest,
    serial,
    store,
    vectorized,
)
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.op import TileCall
from tilelang.ir.region import region_extents

__all__ = ["lower_gemm"]

Element = Callable[[Any, Any], ir.Expr]


@dataclass(frozen=True)
class _Problem:
    """One product: sizes, working dtype and element accessors A(i, k), B(k, j), C(i, j).

    Within a panel, B is addressed by the column in the panel.
    """

    m: int
    n: int
    k: int
    dtype: str
    a: Element
    b: Element
    c: Element
    store_c: Callable[[Any, Any, ir.Expr], T.Stmt]
    clear: bool


def lower_gemm(call: TileCall, ctx: Lowering) -> T.Stmt:
    """Accumulate ``op(A) @ op(B)`` into C; narrow floats accumulate in float32."""
    attrs, a, b, c = call.attrs, call.operand("A"), call.operand("B"), call.operand("C")
    m, n = (_size(extent) for extent in region_extents(c)[-2:])
    k = _size(region_extents(a)[-2 if attrs.transpose_A else -1])
    dtype = accumulator_dtype(dtype_of(c))
    prologue: list[T.Stmt] = []

    def element(region: ir.TensorRegion, transposed: bool) -> Element:
        lead = [T.const(0, "int32")] * (len(region_extents(region)) - 2)
        return lambda p, q: load(region, [*lead, *((q, p) if transposed else (p, q))], dtype)

    read_a, read_b = element(a, attrs.transpose_A), element(b, attrs.transpose_B)
    if dtype_of(a) != dtype:
        read_a = _packed("a_pack", read_a, m, k, dtype, prologue)
    lead_c = [T.const(0, "int32")] * (len(region_extents(c)) - 2)
    problem = _Problem(
        m,
        n,
        k,
        dtype,
        read_a,
        read_b,
        lambda i, j: load(c, [*lead_c, i, j], dtype),
        lambda i, j, value: store(c, [*lead_c, i, j], value, call.span),
        attrs.clear_accum,
    )
    panels = _panels(problem, ctx) if ctx.blocked else _row_updates(problem)
    return T.stmt_seq(*prologue, *panels)


def _row_updates(p: _Problem) -> Iterator[T.Stmt]:
    """Plain loops: a row of the accumulator is updated with one element of A at a time.

    What a C compiler vectorises well and translates fast; register blocks take it minutes.
    """
    pack = alloc("b_pack", [p.k, p.n], p.dtype)
    row = alloc("row", [p.n], p.dtype)

    def one(at: list[ir.Expr]) -> T.Stmt:
        i = at[0]
        start = T.const(0, p.dtype)
        left = T.Var("left", ir.PrimType(p.dtype))

        def update(k: ir.Var) -> T.Stmt:
            step = nest(
                [p.n],
                lambda j: T.BufferStore(row, row[j[0]] + left * pack[k, j[0]], j),
                None,
            )
            return T.SeqStmt([T.Bind(left, p.a(i, k)), step])

        return T.SeqStmt(
            [
                nest(
                    [p.n], lambda j: T.BufferStore(row, start if p.clear else p.c(i, j[0]), j), None
                ),
                serial(p.k, update),
                nest([p.n], lambda j: p.store_c(i, j[0], row[j[0]]), None),
            ]
        )

    yield T.AllocBuffer(pack)
    yield T.AllocBuffer(row)
    yield nest([p.k, p.n], lambda at: T.BufferStore(pack, p.b(at[0], at[1]), at), None)
    yield nest([p.m], one, None, parallel=False)


def _size(extent: Any) -> int:
    size = const_int(extent)
    assert size is not None, "T.gemm checks that its tiles are constant"
    return size


def _packed(
    name: str, read: Element, rows: int, cols: int, dtype: str, out: list[T.Stmt]
) -> Element:
    """Copy an operand to a row-major temporary and return its accessor."""
    pack = alloc(name, [rows, cols], dtype)
    out.append(T.AllocBuffer(pack))
    out.append(nest([rows, cols], lambda at: T.BufferStore(pack, read(at[0], at[1]), at), None))
    return lambda p, q: pack[p, q]


def _block_shape(ctx: Lowering, dtype: str, m: int) -> tuple[int, int]:
    """Rows and columns of the register block: the accumulators fill most of the register file.

    With 32 registers 8 rows of 2 vectors leave room for the vectors of B, with 16 registers 6 rows
    do. Few rows are made up by wider blocks, so that enough independent sums are in flight.
    """
    lanes = ctx.lanes(dtype)
    rows, vectors = (8, 2) if ctx.vector_registers >= 32 else (6, 2)
    if m < rows:
        rows = m
        vectors = max(2, min(ctx.vector_registers // 2 // max(m, 1), 8))
    return rows, vectors * lanes


def _pieces(total: int, block: int, lanes: int) -> Iterator[tuple[int, int, int]]:
    """Cut ``total`` into (start, width, count): full blocks, whole vectors, then powers of two."""
    full = total // block
    if full:
        yield 0, block, full
    start = full * block
    rest = total - start
    if rest >= lanes:
        width = rest // lanes * lanes
        yield start, width, 1
        start, rest = start + width, rest - width
    while rest:
        width = 1 << (rest.bit_length() - 1)
        yield start, width, 1
        start, rest = start + width, rest - width


def _panels(p: _Problem, ctx: Lowering) -> Iterator[T.Stmt]:
    """Loops over column panels and row blocks; the panel of B stays in the first-level cache."""
    rows, cols = _block_shape(ctx, p.dtype, p.m)
    lanes = ctx.lanes(p.dtype)
    for col, width, count in _pieces(p.n, cols, lanes):

        def panel(q: Any, col: int = col, width: int = width) -> T.Stmt:
            j0 = col + q * width
            pack = alloc("b_panel", [p.k, width], p.dtype)
            fill = nest(
                [p.k, width], lambda at: T.BufferStore(pack, p.b(at[0], j0 + at[1]), at), None
            )
            packed = replace(p, b=lambda k, j: pack[k, j])
            parts: list[T.Stmt] = [T.AllocBuffer(pack), fill]
            if p.m // rows:
                parts.append(
                    _loop(p.m // rows, lambda r: _block(packed, ctx, r * rows, j0, rows, width))
                )
            if p.m % rows:
                parts.append(_block(packed, ctx, p.m // rows * rows, j0, p.m % rows, width))
            return T.stmt_seq(*parts)

        yield _loop(count, panel)


def _loop(extent: int, body: Callable[[Any], T.Stmt]) -> T.Stmt:
    return body(0) if extent == 1 else serial(extent, body, "q")


def _block(p: _Problem, ctx: Lowering, i0: Any, j0: Any, rows: int, cols: int) -> T.Stmt:
    """One register block: load the accumulators, run over k, store them."""
    lanes = min(ctx.lanes(p.dtype), cols)
    acc = alloc("acc", [rows, cols], p.dtype)

    def each(body: Callable[[Any, Any], T.Stmt]) -> T.Stmt:
        def row(i: ir.Var) -> T.Stmt:
            return _unrolled(
                cols // lanes, lambda q: vectorized(lanes, lambda v: body(i, q * lanes + v))
            )

        return _unrolled(rows, row)

    zero = T.const(0, p.dtype)
    start = each(lambda i, j: T.BufferStore(acc, zero if p.clear else p.c(i0 + i, j0 + j), [i, j]))
    step = serial(
        p.k,
        lambda k: each(
            lambda i, j: T.BufferStore(acc, acc[i, j] + p.a(i0 + i, k) * p.b(k, j), [i, j])
        ),
    )
    finish = each(lambda i, j: p.store_c(i0 + i, j0 + j, acc[i, j]))
    return T.SeqStmt([T.AllocBuffer(acc), start, step, finish])


def _unrolled(extent: int, body: Callable[[Any], T.Stmt]) -> T.Stmt:
    if extent == 1:
        return body(0)
    var = T.Var("u", "int32")
    return T.For(var, 0, extent, T.ForKind.UNROLLED, body(var))
