"""Accesses that leave a tile or a tensor for certain.

A tile has no safe value, so whatever is known about an index is judged. A tensor has one in tile
operations, parallel loops and where ``T.annotate_safe_value`` gives it; elsewhere a constant index
outside of it is a mistake.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm_ffi import VisitInterrupt, structural_visit, structural_walk

from tilelang.errors import SemanticError, TraceTypeError
from tilelang.ir.expr import const_int
from tilelang.ir.op import TileCall
from tilelang.layout.index_expr import evaluate

__all__ = ["check_bounds"]

_MAX_POINTS = 1 << 14
_SHORT_CIRCUITS = (T.And, T.Or, T.Select)
Ranges = dict[ir.Var, tuple[int, int]]


def check_bounds(func: T.PrimFunc) -> None:
    """Check the accesses to tiles whose indices are known: constants and variables of loops.

    Of tensors, only constant indices are judged, where no guard stands around the access.

    What stands under a condition, or in a loop that can be left early, is not judged; the
    interpreter checks it as it runs.

    Raises
    ------
    SemanticError
        Naming the tile or tensor, its extent, and an index outside of it.
    """
    state = _State()
    rules = [
        (T.For, state.on_for),
        ((T.IfThenElse, T.While, *_SHORT_CIRCUITS), lambda node, visitor: None),
        (T.AttrStmt, state.on_attr),
        (T.BufferStore, state.on_store),
        (T.Evaluate, state.on_evaluate),
        (ir.TensorLoad, state.on_load),
        (ir.Call, state.on_call),
    ]
    structural_visit(func.body, rules)


@dataclass
class _State:
    """What is known at one place of the walk."""

    ranges: Ranges = field(default_factory=dict)
    safe: set[ir.Var] = field(default_factory=set)
    guards: int = 0

    def visit_guarded(self, node: Any, visitor: Any) -> None:
        self.guards += 1
        visitor.default_visit(node)
        self.guards -= 1

    def check(self, buffer: ir.Var, indices: Any, span: Any) -> None:
        if buffer.scope() != "global":
            _check(buffer, indices, self.ranges, span)
        elif not self.guards and buffer not in self.safe:
            _check_tensor(buffer, indices, span)

    def on_for(self, loop: T.For, visitor: Any) -> None:
        first, extent = const_int(loop.min), const_int(loop.extent)
        if extent == 0 or _may_be_left(loop.body):
            return
        step = 1 if loop.step is None else const_int(loop.step)
        if first is not None and extent is not None and step == 1:
            self.ranges[loop.loop_var] = (first, extent)
        if loop.kind == T.ForKind.PARALLEL or "tl.parallel" in loop.annotations:
            self.visit_guarded(loop, visitor)
        else:
            visitor.default_visit(loop)

    def on_attr(self, stmt: T.AttrStmt, visitor: Any) -> None:
        if stmt.attr_key == "tl.safe_value":
            self.safe.add(stmt.node)
        visitor.default_visit(stmt)

    def on_store(self, stmt: T.BufferStore, visitor: Any) -> None:
        self.check(stmt.buffer, stmt.indices, stmt.span)
        visitor.default_visit(stmt)

    def on_load(self, load: ir.TensorLoad, visitor: Any) -> None:
        self.check(load.source, load.indices, load.span)
        visitor.default_visit(load)

    def on_call(self, call: ir.Call, visitor: Any) -> None:
        name = call.op.name if isinstance(call.op, ir.Op) else ""
        if name == "prim.if_then_else":
            visitor.visit(call.args[0])
        elif name == "tirx.address_of":
            self.visit_guarded(call, visitor)  # the address behind the last element is legal
        else:
            visitor.default_visit(call)

    def on_evaluate(self, stmt: T.Evaluate, visitor: Any) -> None:
        call = TileCall.of(stmt)
        if call is None:
            visitor.default_visit(stmt)
            return
        for region in (*call.regions("r"), *call.regions("w")):
            _check_region(region, self.ranges, call.span)
        self.visit_guarded(stmt, visitor)


def _may_be_left(body: Any) -> bool:
    def jump(node: Any) -> Any:
        return VisitInterrupt(True)

    def on_call(call: ir.Call) -> Any:
        leaves = isinstance(call.op, ir.Op) and call.op.name.endswith("loop_break")
        return VisitInterrupt(True) if leaves else None

    rules = [((T.Break, T.Continue), jump), (ir.Call, on_call)]
    return structural_walk(body, rules) is not None


def _check_region(region: ir.TensorRegion, ranges: Ranges, span: Any) -> None:
    if region.source.scope() == "global":
        return
    first = [axis.min for axis in region.region]
    last = []
    for axis in region.region:
        start, size = const_int(axis.min), const_int(axis.extent)
        if start is not None and size is not None:
            last.append(T.const(start + size - 1, "int32"))
        else:
            last.append(axis.min + axis.extent - 1)
    _check(region.source, first, ranges, span)
    _check(region.source, last, ranges, span)


def _check(buffer: ir.Var, indices: Any, ranges: Ranges, span: Any) -> None:
    if buffer.scope().startswith("local.reducer"):
        return
    for dim, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
        size = const_int(extent)
        reach = _reach(index, ranges)
        if size is None or reach is None or (reach[0] >= 0 and reach[1] < size):
            continue
        shape = ", ".join(str(extent) for extent in buffer.shape)
        raise SemanticError(
            f"index {reach[0] if reach[0] < 0 else reach[1]} is outside of dimension {dim} of tile "
            f"'{buffer.name}' ({shape}), which has indices 0 to {size - 1}; make the tile larger, "
            "the loop shorter, or guard the access",
            span,
        )


def _check_tensor(tensor: ir.Var, indices: Any, span: Any) -> None:
    for dim, (index, extent) in enumerate(zip(indices, tensor.shape, strict=True)):
        number, size = const_int(index), const_int(extent)
        if number is None or size is None or 0 <= number < size:
            continue
        shape = ", ".join(str(extent) for extent in tensor.shape)
        raise SemanticError(
            f"index {number} is outside of dimension {dim} of tensor '{tensor.name}' ({shape}), "
            f"which has indices 0 to {size - 1}; only tile operations and T.Parallel read the "
            "safe value there and drop what is written",
            span,
        )


def _reach(index: ir.Expr, ranges: Ranges) -> tuple[int, int] | None:
    """The least and greatest value of an index, or None if it is not known."""
    number = const_int(index)
    if number is not None:
        return number, number
    if isinstance(index, ir.Var):
        if index not in ranges:
            return None
        first, extent = ranges[index]
        return first, first + extent - 1
    used: set[ir.Var] = set()
    structural_walk(index, (ir.Var, used.add))
    if not used or any(var not in ranges for var in used):
        return None
    if math.prod(ranges[var][1] for var in used) > _MAX_POINTS:
        return None
    axes = [np.arange(first, first + extent) for first, extent in (ranges[var] for var in used)]
    grids = np.meshgrid(*axes, indexing="ij")
    try:
        with np.errstate(divide="raise"):
            values = evaluate(index, dict(zip(used, grids, strict=True)))
    except (TraceTypeError, FloatingPointError):
        return None
    return int(values.min()), int(values.max())
