"""Places of shared buffers in the block's arena; buffers that never live together may share one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import LoweringError
from tilelang.ir.expr import const_int, dtype_of
from tilelang.transform.simt.barriers import UNIT
from tilelang.transform.simt.defaults import dtype_bits
from tilelang.transform.simt.memory import is_shared, touches_of
from tilelang.transform.simt.sites import view_of

__all__ = ["SharedPlan", "plan_shared_memory"]

_SWIZZLED = 128
"""Bytes. Swizzles and bulk copies count from such a boundary."""


@dataclass(frozen=True)
class SharedPlan:
    """``places``: (offset, bytes) of every shared buffer; ``total``: bytes of the arena."""

    places: Mapping[ir.Var, tuple[int, int]]
    total: int


@dataclass
class _Life:
    first: int
    last: int


def plan_shared_memory(
    body: T.Stmt, layouts: Mapping[ir.Var, Any], limit: int, *, merge: bool = True
) -> SharedPlan:
    """Give every shared buffer of a kernel a place.

    Parameters
    ----------
    layouts : mapping of buffer to Layout
        Storage that is not row-major may need more room.
    limit : int
        Bytes a block may have.
    merge : bool
        Whether buffers with disjoint lives may share bytes.

    Raises
    ------
    LoweringError
        If the buffers do not fit; the message lists them.
    """
    walk = _Lives(layouts)
    walk.visit(body)
    sizes, lives = walk.sizes, walk.lives
    order = sorted(sizes, key=lambda b: -sizes[b])
    places: dict[ir.Var, tuple[int, int]] = {}
    for buffer in order:
        taken = sorted(
            places[other]
            for other in places
            if not merge or _together(lives.get(buffer), lives.get(other))
        )
        offset = 0
        for start, size in taken:
            if offset + sizes[buffer] <= start:
                break
            offset = max(offset, _aligned(start + size))
        places[buffer] = (offset, sizes[buffer])
    total = max((offset + size for offset, size in places.values()), default=0)
    if total > limit:
        raise _too_large(sizes, total, limit)
    return SharedPlan(places, total)


def _aligned(offset: int) -> int:
    return -(-offset // _SWIZZLED) * _SWIZZLED


def _too_large(sizes: Mapping[ir.Var, int], total: int, limit: int) -> LoweringError:
    largest = sorted(sizes.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{b.name} {size}" for b, size in largest[:6])
    return LoweringError(
        f"the shared buffers of a block need {total} bytes, the target has {limit} ({shown}). "
        "Use smaller tiles or fewer stages",
        largest[0][0].span,
    )


def _together(a: _Life | None, b: _Life | None) -> bool:
    if a is None or b is None:
        return False
    return a.first <= b.last and b.first <= a.last


def _bytes(buffer: ir.Var, layout: Any) -> int:
    shape = list(buffer.shape) if layout is None else layout.get_output_shape()
    extents = [const_int(extent) for extent in shape]
    if any(extent is None for extent in extents):
        raise LoweringError(
            f"the shape of shared buffer '{buffer.name}' must be constant, found "
            f"({', '.join(str(e) for e in buffer.shape)})",
            buffer.span,
        )
    count = math.prod(e for e in extents if e is not None)
    return max(1, -(-count * dtype_bits(dtype_of(buffer)) // 8))


class _Lives:
    """From the first to the last touch of every buffer, in numbers of statements.

    A loop counts as one moment for buffers declared outside of it.
    """

    def __init__(self, layouts: Mapping[ir.Var, Any]) -> None:
        self.layouts = layouts
        self.sizes: dict[ir.Var, int] = {}
        self.lives: dict[ir.Var, _Life] = {}
        self._views: dict[ir.Var, ir.Var] = {}
        self._clock = 0

    def _touch(self, stmt: Any) -> None:
        for found in touches_of(stmt):
            buffer = found.buffer
            while buffer in self._views:
                buffer = self._views[buffer]
            if buffer in self.sizes:
                life = self.lives.setdefault(buffer, _Life(self._clock, self._clock))
                life.last = self._clock

    def visit(self, stmt: Any) -> None:
        """Walk a statement in program order."""
        self._clock += 1
        if isinstance(stmt, T.SeqStmt):
            for child in stmt.seq:
                self.visit(child)
        elif isinstance(stmt, T.AllocBuffer):
            if is_shared(stmt.buffer):
                self.sizes[stmt.buffer] = _bytes(stmt.buffer, self.layouts.get(stmt.buffer))
        elif isinstance(stmt, T.DeclBuffer):
            viewed = view_of(stmt)
            if viewed is not None:
                self._views[stmt.buffer] = viewed
        elif isinstance(stmt, (T.For, T.While)):
            self._loop(stmt)
        elif isinstance(stmt, T.IfThenElse):
            self._touch(stmt.condition)
            self.visit(stmt.then_case)
            if stmt.else_case is not None:
                self.visit(stmt.else_case)
        elif isinstance(stmt, T.AttrStmt) and stmt.attr_key != UNIT:
            self.visit(stmt.body)
        else:
            self._touch(stmt)

    def _loop(self, loop: Any) -> None:
        start, outside = self._clock, set(self.sizes)
        bounds = [loop.condition] if isinstance(loop, T.While) else [loop.min, loop.extent]
        for bound in bounds:
            self._touch(bound)
        self.visit(loop.body)
        self._clock += 1
        for buffer, life in self.lives.items():
            if buffer in outside and life.last >= start:
                life.last = self._clock
