"""Distributions where nothing demands a particular one: coalesced vectors over all threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import DataType, ir, sym
from tvm import tirx as T
from tvm_ffi import structural_map, structural_walk

from tilelang.ir.expr import const_int, dtype_of
from tilelang.layout.distribution import Distribution, dense
from tilelang.transform.simt.access_map import mentions
from tilelang.transform.simt.nest import Access, Nest, accesses_of

__all__ = ["default_distribution", "dtype_bits", "keeps_vectors", "spread", "vector_width"]

_VECTOR_BITS = 128
_MEMORY = ("global", "shared", "shared.dyn")


def dtype_bits(dtype: str) -> int:
    """Bits an element occupies in memory."""
    return 8 if dtype == "bool" else int(DataType(dtype).bits) * int(DataType(dtype).lanes)


def spread(extents: Sequence[int], threads: int, vector: int) -> Distribution:
    """Deal a tile to threads in row-major order, ``vector`` neighbours of a row at a time.

    The last axis is dealt first. Where its vectors do not fill the threads, the number of threads
    along it is the divisor that leaves the fewest slots.
    """
    rank = len(extents)
    lanes: list[tuple[int, int, int]] = []
    slots: list[tuple[int, int, int]] = []
    left = threads
    for axis in range(rank - 1, -1, -1):
        unit = vector if axis == rank - 1 else 1
        if unit > 1:
            slots.append((axis, 1, unit))
        count = -(-extents[axis] // unit)
        outer = 1
        for extent in extents[:axis]:
            outer *= extent
        across = _share(count, outer, left)
        lanes.append((axis, unit, across))
        left //= across
        rest = -(-count // across)
        slots.append((axis, unit * across, rest))
    return Distribution(tuple(extents), dense(lanes), dense(slots))


def _share(count: int, outer: int, threads: int) -> int:
    """How many of ``threads`` work along an axis of ``count`` vectors before ``outer`` rows."""
    divisors = [d for d in range(1, threads + 1) if threads % d == 0]
    fitting = [d for d in divisors if d < 2 * count] or [1]
    return min(fitting, key=lambda d: (-(-count // d) * -(-outer // (threads // d)), -d))


def default_distribution(
    nest: Nest, threads: int, layouts: Any, analyzer: sym.Analyzer
) -> Distribution:
    """The distribution of a nest with constant extents that no tile decides."""
    shape = nest.shape
    assert shape is not None, "the extents of the nest are constants"
    return spread(shape, threads, vector_width(nest, threads, layouts, analyzer))


def vector_width(nest: Nest, threads: int, layouts: Any, analyzer: sym.Analyzer) -> int:
    """The most elements a thread can move at once in every access to memory of ``nest``.

    An access takes part if its last index is the innermost loop variable plus a constant, aligned
    to the width; one that runs along another dimension forbids vectors. ``layouts`` maps a buffer
    to the user's or inferred layout of its storage.
    """
    var, last = nest.variables[-1], nest.extents[-1]
    if last is None:
        return 1
    moving = [
        a for a in accesses_of(nest.body) if a.scope in _MEMORY and mentions(list(a.indices), [var])
    ]
    if not moving:
        return 1
    widest = max(dtype_bits(dtype_of(a.buffer)) for a in moving)
    width = max(1, _VECTOR_BITS // widest)
    wished = const_int(nest.note("coalesced_width"))
    if wished:
        width = min(width, max(1, wished))
    while width > 1 and (last % width or (last // width) * 2 <= 0):
        width //= 2
    conditions = _conditions(nest.body, var)
    while width > 1:
        fits = all(contiguous(a, var, width, analyzer, layouts) for a in moving)
        if fits and all(uniform(c, var, width, analyzer) for c in conditions):
            break
        width //= 2
    return _no_wider_than_useful(width, nest.shape, threads, widest)


def _no_wider_than_useful(
    width: int, shape: tuple[int, ...] | None, threads: int, bits: int
) -> int:
    """Keep all threads busy before widening beyond 32 bits."""
    if shape is None:
        return width
    total = 1
    for extent in shape:
        total *= extent
    while width > 1 and width * bits > 32 and total < threads * width:
        width //= 2
    return width


def contiguous(
    access: Access, var: ir.Var, width: int, analyzer: sym.Analyzer, layouts: Any
) -> bool:
    """Whether ``width`` steps of ``var`` touch neighbours, the first of them aligned to all."""
    *outer, inner = access.indices
    if mentions(outer, [var]):
        return False
    rest = analyzer.simplify(inner - var)
    if mentions(rest, [var]):
        return False
    layout = layouts(access.buffer)
    if layout is not None and not keeps_vectors(layout, width):
        return False
    strides = list(access.buffer.ty.strides)
    if strides and const_int(strides[-1]) != 1:
        return False
    offset: Any = rest
    if layout is None:
        scale: Any = 1
        for dim in range(len(outer) - 1, -1, -1):
            scale = strides[dim] if strides else access.buffer.shape[dim + 1] * scale
            offset = offset + outer[dim] * scale
    return divides(offset, width, analyzer)


def divides(expr: Any, width: int, analyzer: sym.Analyzer) -> bool:
    """Whether ``expr`` is provably a multiple of ``width``."""
    value = const_int(expr)
    if value is not None:
        return value % width == 0
    found = analyzer.modular_set(analyzer.simplify(expr))
    return int(found.coeff) % width == 0 and int(found.base) % width == 0


def keeps_vectors(layout: Any, width: int) -> bool:
    """Whether ``layout`` keeps aligned groups of ``width`` elements of a row together."""
    table = layout.table()
    flat = 0
    for row, extent in zip(table, layout.get_output_shape(), strict=True):
        flat = flat * extent + row
    if flat.shape[-1] % width:
        return False
    groups = flat.reshape(-1, width)
    return bool(
        (groups[:, 0] % width == 0).all() and ((groups - groups[:, :1]) == range(width)).all()
    )


def _conditions(body: Any, var: ir.Var) -> list[ir.Expr]:
    """The conditions below ``body`` that depend on ``var`` and stand before an access to memory."""
    found: list[ir.Expr] = []

    def add(condition: Any, guarded: Any) -> None:
        touches = any(a.scope in _MEMORY for a in accesses_of(guarded))
        if touches and mentions(condition, [var]):
            found.append(condition)

    def on_call(call: ir.Call) -> None:
        if isinstance(call.op, ir.Op) and call.op.name == "prim.if_then_else":
            for branch in call.args[1:]:
                add(call.args[0], branch)

    structural_walk(
        body,
        [
            (T.IfThenElse, lambda s: add(s.condition, s.then_case)),
            (ir.Call, on_call),
        ],
    )
    return found


def uniform(condition: ir.Expr, var: ir.Var, width: int, analyzer: sym.Analyzer) -> bool:
    """Whether ``condition`` is the same for all ``var`` of an aligned group of ``width``."""
    if isinstance(condition, (T.And, T.Or)):
        return uniform(condition.a, var, width, analyzer) and uniform(
            condition.b, var, width, analyzer
        )
    if not mentions(condition, [var]):
        return True
    if isinstance(condition, (T.LT, T.GE)):
        rest = analyzer.simplify(condition.a - var)
        if mentions(rest, [var]) or mentions(condition.b, [var]):
            return False
        return divides(rest - condition.b, width, analyzer)
    return False


def at_zero(expr: Any, var: ir.Var) -> Any:
    """``expr`` with ``var`` replaced by 0."""
    zero = T.const(0, dtype_of(var))
    return structural_map(expr, (ir.Var, lambda v: zero if v.same_as(var) else v))
