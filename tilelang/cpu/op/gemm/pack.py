"""Copies of operands in the order in which the micro-kernel reads them.

A packed operand has one row for each group of consecutive k. In it, the elements of a group stand
side by side for one row of A or column of B after the other: element (k, j) is
``pack[k // group, j * group + k % group]``. What is missing of a last group, or of a last vector of
columns, is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import DataType, ir
from tvm import tirx as T
from tvm.ir import prim

from tilelang.cpu.op.gemm.operand import Operand, span_of
from tilelang.cpu.op.loops import alloc, nest, serial

__all__ = ["pack"]


def pack(
    x: Operand, start: Any, width: int, filled: int, group: int, lanes: int, dtype: str
) -> tuple[ir.Var, list[T.Stmt]]:
    """Pack ``width`` rows or columns of ``x`` from ``start`` on, of which ``filled`` exist.

    ``lanes`` is the number of groups in a vector. Returns the buffer and the statements that
    declare and fill it.
    """
    groups = -(-x.k // group)
    buffer = alloc("pack", [groups, width * group], dtype)
    whole = x.addressable and x.dtype == dtype and filled == width and width % lanes == 0
    if whole and x.k_inner and lanes > 1:
        fill = _transposed(x, buffer, start, width, group, lanes)
    elif whole and not x.k_inner and group > 1:
        fill = _interleaved(x, buffer, start, width, group, lanes)
    else:
        fill = [_elementwise(x, buffer, start, 0, width, filled, group)]
    return buffer, [T.AllocBuffer(buffer), *fill]


def _elementwise(
    x: Operand, buffer: ir.Var, start: Any, first: int, width: int, filled: int, group: int
) -> T.Stmt:
    """Element by element, from group ``first`` on."""
    dtype = str(buffer.ty.dtype.dtype)

    def element(row: ir.Expr, j: ir.Expr, g: int) -> T.Stmt:
        k = row * group + g
        value = x.at(k, start + j, dtype)
        inside = [k < x.k] if x.k % group else []
        inside += [j < filled] if filled < width else []
        if inside:
            value = T.if_then_else(T.all(*inside), value, T.const(0, dtype))
        return T.BufferStore(buffer, value, [row, j * group + g])

    def one(at: list[ir.Expr]) -> T.Stmt:
        return T.stmt_seq(*(element(at[0] + first, at[1], g) for g in range(group)))

    return nest([-(-x.k // group) - first, width], one, None)


def _interleaved(
    x: Operand, buffer: ir.Var, start: Any, width: int, group: int, lanes: int
) -> list[T.Stmt]:
    """Rows of k side by side: ``group`` vectors are read, and their elements take turns."""
    order = [part * lanes + lane for lane in range(lanes) for part in range(group)]

    def row(k: Any, present: int) -> T.Stmt:
        def vector(q: Any) -> T.Stmt:
            j = start + q * lanes
            parts: list[ir.Expr] = [x.vector(k * group + g, j, lanes) for g in range(present)]
            parts += [prim.Broadcast(T.const(0, x.dtype), lanes)] * (group - present)
            where = [_index(k), span_of(q * (lanes * group), lanes * group)]
            return T.BufferStore(buffer, _shuffle(parts, order), where)

        return serial(width // lanes, vector, "q")

    stmts = [serial(x.k // group, lambda k: row(k, group))] if x.k >= group else []
    if x.k % group:
        stmts.append(row(x.k // group, x.k % group))
    return stmts


def _transposed(
    x: Operand, buffer: ir.Var, start: Any, width: int, group: int, lanes: int
) -> list[T.Stmt]:
    """Squares of groups are transposed in registers, the groups of the last few k one by one."""
    groups = x.k // group
    lanes = min(lanes, 1 << (max(groups, 1).bit_length() - 1))
    squares = groups // lanes if lanes > 1 else 0
    word = x.dtype if group == 1 else f"int{DataType(x.dtype).bits * group}"

    def square(q: ir.Var, k: ir.Var) -> T.Stmt:
        rows = alloc("square", [lanes, lanes], word)
        stmts: list[T.Stmt] = [T.AllocBuffer(rows)]

        def row(i: int) -> list[ir.Expr]:
            return [T.const(i, "int32"), span_of(0, lanes)]

        for i in range(lanes):
            value = x.vector(k * (lanes * group), start + q * lanes + i, lanes * group)
            stmts.append(T.BufferStore(rows, _reinterpreted(value, word, lanes), row(i)))
        half = lanes // 2
        while half:
            low = [j if not j & half else lanes + j - half for j in range(lanes)]
            high = [j + half if not j & half else lanes + j for j in range(lanes)]
            for i in (i for i in range(lanes) if not i & half):
                a, b = T.BufferLoad(rows, row(i)), T.BufferLoad(rows, row(i + half))
                swap = alloc("swap", [lanes], word)
                here = [span_of(0, lanes)]
                stmts += [
                    T.AllocBuffer(swap),
                    T.BufferStore(swap, _shuffle([a, b], high), here),
                    T.BufferStore(rows, _shuffle([a, b], low), row(i)),
                    T.BufferStore(rows, T.BufferLoad(swap, here), row(i + half)),
                ]
            half //= 2
        for i in range(lanes):
            value = _reinterpreted(T.BufferLoad(rows, row(i)), x.dtype, lanes * group)
            where = [_index(k * lanes + i), span_of(q * (lanes * group), lanes * group)]
            stmts.append(T.BufferStore(buffer, value, where))
        return T.SeqStmt(stmts)

    stmts: list[T.Stmt] = []
    if squares:
        stmts.append(serial(width // lanes, lambda q: serial(squares, lambda k: square(q, k)), "q"))
    if squares * lanes * group < x.k:
        stmts.append(_elementwise(x, buffer, start, squares * lanes, width, width, group))
    return stmts


def _index(value: Any) -> ir.Expr:
    return value if isinstance(value, ir.Expr) else T.const(value, "int32")


def _shuffle(vectors: Sequence[ir.Expr], order: Sequence[int]) -> ir.Expr:
    return prim.Shuffle(list(vectors), [T.const(position, "int32") for position in order])


def _reinterpreted(value: ir.Expr, dtype: str, lanes: int) -> ir.Expr:
    ty = ir.PrimType(f"{dtype}x{lanes}")
    if value.ty == ty:
        return value
    return ir.Call(ir.Op.get("tirx.reinterpret"), [value], ret_ty=ty)
