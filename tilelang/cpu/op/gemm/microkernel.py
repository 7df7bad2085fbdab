"""The register-blocked micro-kernel and the loops around it.

The accumulator tile is cut into blocks of rows x vectors that stay in vector registers while k
runs. Every step reads one element (or word, see :mod:`tilelang.cpu.op.gemm.dot`) of A a row and
multiplies it with vectors of B, which come from a panel of packed columns in the first-level cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tvm import DataType, ir
from tvm import tirx as T

from tilelang.cpu.op.gemm.dot import Dot
from tilelang.cpu.op.gemm.operand import Operand, span_of
from tilelang.cpu.op.gemm.pack import pack
from tilelang.cpu.op.gemm.prefetch import prefetch_share
from tilelang.cpu.op.loops import Lowering, alloc, nest, serial, vectorized

__all__ = ["Accumulator", "block_shape", "blocked_product"]

_PANEL_BYTES = 24 * 1024  # of a first-level cache of 32 KiB or more


@dataclass(frozen=True)
class Accumulator:
    """C: extents, dtype, element accessors, and whether it is overwritten."""

    m: int
    n: int
    dtype: str
    at: Callable[[Any, Any], ir.Expr]
    store: Callable[[Any, Any, ir.Expr], T.Stmt]
    clear: bool

    def padded(self, n: int, out: list[T.Stmt]) -> tuple[Accumulator, T.Stmt]:
        """A copy with ``n`` columns, so that whole vectors fit, and what copies it back.

        The statements that make it are appended to ``out``.
        """
        tile = alloc("c_tile", [self.m, n], self.dtype)
        out.append(T.AllocBuffer(tile))
        if not self.clear:
            zero = T.const(0, self.dtype)
            inside = [self.m, self.n]
            out.append(
                nest(inside, lambda at: T.BufferStore(tile, self.at(at[0], at[1]), at), None)
            )
            if n > self.n:
                rest = [self.m, n - self.n]
                out.append(
                    nest(rest, lambda at: T.BufferStore(tile, zero, [at[0], at[1] + self.n]), None)
                )
        back = nest([self.m, self.n], lambda at: self.store(at[0], at[1], tile[at[0], at[1]]), None)
        copy = Accumulator(
            self.m,
            n,
            self.dtype,
            lambda i, j: tile[i, j],
            lambda i, j, value: T.BufferStore(tile, value, [i, j]),
            self.clear,
        )
        return copy, back


def block_shape(registers: int, m: int, vectors: int, vector_bytes: int) -> tuple[int, int]:
    """Rows and vectors of the register block: the accumulators fill most of the register file.

    With 32 registers they are 4 x 4, 8 x 3 or 8 x 2, whatever divides the vectors of a row and
    lets a panel stay in the first-level cache; with 16 registers 6 x 2. Few rows are made up by
    wider blocks, so that enough independent sums are in flight to hide the latency of a
    multiply-add.

    Parameters
    ----------
    registers : int
        Vector registers of the CPU.
    m : int
        Rows of the accumulator tile.
    vectors : int
        Vectors in one of its rows.
    vector_bytes : int
        Bytes of a packed column of B that is one vector wide.
    """
    if registers < 32:
        rows, width = 6, 2
    elif vectors % 4 == 0 and 4 * vector_bytes <= _PANEL_BYTES:
        rows, width = 4, 4
    else:
        rows, width = 8, 2 if vectors % 2 == 0 or vectors % 3 else 3
    if m < rows:
        rows, width = m, max(2, min(registers // 2 // m, 8))
    return rows, min(width, vectors)


@dataclass(frozen=True)
class _Product:
    """What the micro-kernel needs: operands in their final form.

    ``word(k, i)`` is the element or word ``k`` of row ``i`` of A; ``steps`` is how many there are.
    ``upcoming`` are parts of tensors to prefetch, a share of ``shares`` a register block.
    """

    c: Accumulator
    b: Operand
    word: Callable[[Any, Any], ir.Expr]
    steps: int
    lanes: int
    group: int
    packed_dtype: str
    dot: Dot | None
    upcoming: tuple[ir.TensorRegion, ...] = ()
    shares: int = 1


def blocked_product(
    a: Operand, b: Operand, c: Accumulator, dot: Dot | None, ctx: Lowering
) -> Iterator[T.Stmt]:
    """The statements of ``c += a @ b``, with ``dot`` or else with multiply-adds in c's dtype."""
    stmts: list[T.Stmt] = []
    lanes = dot.lanes if dot else ctx.lanes(c.dtype)
    group = dot.group if dot else 1
    word = _words_of(a, dot, stmts) if dot else _elements_of(a, c.dtype, stmts)
    vectors = -(-c.n // lanes)
    packed_dtype = b.dtype if dot else c.dtype
    if b.k_inner and not (b.addressable and b.dtype == packed_dtype):
        b = b.copied("b_copy", packed_dtype, b.k, stmts)
    back: list[T.Stmt] = []
    if c.n % lanes:
        c, copy_back = c.padded(vectors * lanes, stmts)
        back.append(copy_back)
    product = _Product(c, b, word, -(-b.k // group), lanes, group, packed_dtype, dot)
    yield from stmts
    column = product.steps * group * lanes * DataType(packed_dtype).bits // 8
    rows, width = block_shape(ctx.vector_registers, c.m, vectors, column)
    panels = vectors // width
    if panels:
        ahead = replace(product, upcoming=ctx.upcoming, shares=panels * (c.m // rows))
        yield _loop(panels, lambda q: _panel(ahead, rows, width, q * (width * lanes), q))
    if vectors % width:
        yield _panel(product, rows, vectors % width, vectors // width * width * lanes)
    yield from back


def _elements_of(a: Operand, dtype: str, out: list[T.Stmt]) -> Callable[[Any, Any], ir.Expr]:
    """How the micro-kernel reads one element of A; it is copied if it is no tile of ``dtype``."""
    if not a.addressable or a.dtype != dtype:
        a = a.copied("a_copy", dtype, a.k, out)
    return a.at


def _words_of(a: Operand, dot: Dot, out: list[T.Stmt]) -> Callable[[Any, Any], ir.Expr]:
    """How the micro-kernel reads one word of A."""
    group = dot.group

    def word(value: ir.Expr) -> ir.Expr:
        return ir.Call(ir.Op.get("tirx.reinterpret"), [value], ret_ty=ir.PrimType("int32"))

    flip = dot.bias is not None
    padded = -(-a.k // group) * group if a.k_inner else a.k
    if not a.addressable or padded > a.k or flip:
        a = a.copied("a_copy", a.dtype, padded, out, flip)
    if a.k_inner:
        return lambda k, i: word(a.vector(k * group, i, group))
    packed, stmts = pack(a, 0, a.size, a.size, group, dot.lanes, a.dtype)
    out += stmts
    return lambda k, i: word(T.BufferLoad(packed, [k, span_of(i * group, group)]))


def _panel(p: _Product, rows: int, vectors: int, j0: Any, number: Any = 0) -> T.Stmt:
    """Pack some columns of B and multiply all rows of A with them."""
    width = vectors * p.lanes
    filled = width
    if isinstance(j0, int):  # only the last panel is not in a loop
        filled = min(width, p.b.size - j0)
    panel, parts = pack(p.b, j0, width, filled, p.group, p.lanes, p.packed_dtype)
    bias = None
    if p.dot is not None and p.dot.bias is not None:
        bias = alloc("bias", [width], p.c.dtype)
        parts += [T.AllocBuffer(bias), *_bias(p, p.dot.bias, panel, bias, vectors)]
    blocks = p.c.m // rows

    def whole_block(r: Any) -> T.Stmt:
        share = _index(number * blocks + r)
        requests = prefetch_share(p.upcoming, share, p.shares)
        return T.stmt_seq(*requests, _block(p, panel, bias, r * rows, j0, rows, vectors))

    if blocks:
        parts.append(_loop(blocks, whole_block))
    if p.c.m % rows:
        rest = p.c.m % rows
        parts.append(_block(p, panel, bias, blocks * rows, j0, rest, vectors))
    return T.stmt_seq(*parts)


def _bias(
    p: _Product,
    add: Callable[[ir.Expr, ir.Expr], ir.Expr],
    panel: ir.Var,
    bias: ir.Var,
    vectors: int,
) -> Iterator[T.Stmt]:
    """What every row of the panel's product has too much."""

    def at(q: Any) -> list[ir.Expr]:
        return [span_of(q * p.lanes, p.lanes)]

    zero = T.const(0, p.c.dtype)
    yield vectorized(vectors * p.lanes, lambda v: T.BufferStore(bias, zero, [v]))

    def step(k: ir.Var) -> T.Stmt:
        return _unrolled(
            vectors,
            lambda q: T.BufferStore(
                bias, add(T.BufferLoad(bias, at(q)), _vector_of(p, panel, k, q)), at(q)
            ),
        )

    yield serial(p.steps, step)


def _vector_of(p: _Product, panel: ir.Var, k: Any, q: Any) -> ir.Expr:
    count = p.lanes * p.group
    return T.BufferLoad(panel, [k, span_of(q * count, count)])


def _block(
    p: _Product, panel: ir.Var, bias: ir.Var | None, i0: Any, j0: Any, rows: int, vectors: int
) -> T.Stmt:
    """One register block: load the accumulators, run over k, store them."""
    lanes, c = p.lanes, p.c
    acc = alloc("acc", [rows, vectors * lanes], c.dtype)

    def vectors_of(body: Callable[[Any, Any], T.Stmt]) -> T.Stmt:
        return _unrolled(rows, lambda i: _unrolled(vectors, lambda q: body(i, q)))

    def each(body: Callable[[Any, Any], T.Stmt]) -> T.Stmt:
        return vectors_of(lambda i, q: vectorized(lanes, lambda v: body(i, q * lanes + v)))

    def begin(i: Any, j: Any) -> T.Stmt:
        return T.BufferStore(acc, T.const(0, c.dtype), [i, j])

    def end(i: Any, j: Any) -> T.Stmt:
        value = acc[i, j] if bias is None else acc[i, j] - bias[j]
        return c.store(i0 + i, j0 + j, value if c.clear else c.at(i0 + i, j0 + j) + value)

    def multiply_add(k: ir.Var) -> T.Stmt:
        return each(
            lambda i, j: T.BufferStore(acc, acc[i, j] + p.word(k, i0 + i) * panel[k, j], [i, j])
        )

    def dot_step(k: ir.Var, dot: Dot) -> T.Stmt:
        def one(i: Any, q: Any) -> T.Stmt:
            here = [_index(i), span_of(q * lanes, lanes)]
            old = T.BufferLoad(acc, here)
            new = dot.multiply(old, p.word(k, i0 + i), _vector_of(p, panel, k, q))
            return T.BufferStore(acc, new, here)

        return vectors_of(one)

    dot = p.dot
    step = multiply_add if dot is None else lambda k: dot_step(k, dot)
    return T.SeqStmt([T.AllocBuffer(acc), each(begin), serial(p.steps, step), each(end)])


def _index(value: Any) -> ir.Expr:
    return value if isinstance(value, ir.Expr) else T.const(value, "int32")


def _loop(extent: int, body: Callable[[Any], T.Stmt]) -> T.Stmt:
    return body(0) if extent == 1 else serial(extent, body, "q")


def _unrolled(extent: int, body: Callable[[Any], T.Stmt]) -> T.Stmt:
    if extent == 1:
        return body(0)
    var = T.Var("u", "int32")
    return T.For(var, 0, extent, T.ForKind.UNROLLED, body(var))
