"""Writes of a parallel loop that touch one element from two iterations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_equal, structural_visit, structural_walk

from tilelang.errors import SemanticError
from tilelang.ir.expr import const_int
from tilelang.ir.op import ELEMENT_ATOMIC, REDUCER_UPDATE
from tilelang.layout.check import row_major_keys

__all__ = ["check_parallel_writes"]

_MAX_POINTS = 1 << 16
_PRIMES = (10007, 20011, 30011, 40009, 50021, 60013, 70001, 80021)


@dataclass(frozen=True)
class _Access:
    buffer: ir.Var
    indices: tuple[Any, ...]
    is_store: bool
    node: Any


def check_parallel_writes(func: T.PrimFunc) -> None:
    """Check that no two iterations of a ``T.Parallel`` touch one element with a write.

    Only unconditional accesses whose indices are arithmetic are judged. Sizes, arguments and
    variables of outer loops are taken at two values each, and a conflict counts if it is there at
    both. Everything else is left to the run-time checks of the interpreter.

    Raises
    ------
    SemanticError
        Naming the buffer, the two iterations and what to do.
    """
    nests: list[list[T.For]] = []
    outside = _Outside()

    def on_for(loop: T.For, visitor: Any) -> None:
        if loop.kind == T.ForKind.PARALLEL:
            nests.append(_nest(loop))
            return
        outside.enter(loop)
        visitor.default_visit(loop)

    structural_visit(func.body, (T.For, on_for))
    for nest in nests:
        _check_nest(nest, outside)


class _Outside:
    """Two values for every variable that a parallel nest takes from outside of it."""

    def __init__(self) -> None:
        self._values: dict[ir.Var, tuple[int, int]] = {}

    def enter(self, loop: T.For) -> None:
        """The variable of an outer loop: its first and last value, where they are known."""
        first, extent = const_int(loop.min), const_int(loop.extent)
        if first is not None and extent is not None:
            self._values[loop.loop_var] = (first + max(extent - 1, 0), first)

    def at(self, var: ir.Var, which: int) -> np.int64 | None:
        """The value of ``var`` at sample 0 or 1; None if it is no index."""
        if not (isinstance(var.ty, ir.PrimType) and str(var.ty.dtype) in ("int32", "int64")):
            return None
        if var not in self._values:
            # A prime sets sizes apart; at 1 nothing divides.
            self._values[var] = (_PRIMES[len(self._values) % len(_PRIMES)], 1)
        return np.int64(self._values[var][which])


def _nest(loop: T.For) -> list[T.For]:
    loops = [loop]
    while isinstance(loops[-1].body, T.For) and loops[-1].body.kind == T.ForKind.PARALLEL:
        loops.append(loops[-1].body)
    return loops


def _check_nest(nest: list[T.For], outside: _Outside) -> None:
    extents = [const_int(loop.extent) for loop in nest]
    if any(extent is None for extent in extents):
        return
    sizes = [extent for extent in extents if extent is not None]
    if not 1 < math.prod(sizes) <= _MAX_POINTS:
        return
    if _is_plain(nest, _accesses(nest[-1].body)):
        return
    grids = np.meshgrid(*(np.arange(size) for size in sizes), indexing="ij")
    points = {loop.loop_var: grid.ravel() for loop, grid in zip(nest, grids, strict=True)}
    # A temporary of the iteration may hold anything: accesses through it are not judged.
    hidden = _bound_variables(nest[-1].body)
    accesses = [a for a in _accesses(nest[-1].body) if not _mentions(a.indices, hidden)]
    tables = [(access, _evaluate_all(access.indices, points, outside)) for access in accesses]
    for access, table in tables:
        if access.is_store and table is not None:
            _check_store(access, table, tables, points)


def _check_store(
    access: _Access,
    table: np.ndarray,
    tables: list[tuple[_Access, Any]],
    points: dict[ir.Var, np.ndarray],
) -> None:
    reads = [
        indices
        for load, indices in tables
        if not load.is_store and indices is not None and load.buffer.same_as(access.buffer)
    ]
    written, *read = row_major_keys(table, *reads)
    elements, first, inverse = np.unique(written, return_index=True, return_inverse=True)
    repeated = np.flatnonzero(first[inverse] != np.arange(len(written)))
    if repeated.size:
        other = int(repeated[0])
        _report(access, "both write", int(first[inverse[other]]), other, points)
    for keys in read:
        place = np.minimum(np.searchsorted(elements, keys), len(elements) - 1)
        meets = (elements[place] == keys) & (first[place] != np.arange(len(keys)))
        if meets.any():
            reader = int(np.flatnonzero(meets)[0])
            writer = int(first[place[reader]])
            _report(access, "one writes and the other reads", writer, reader, points)


def _is_plain(nest: list[T.For], accesses: list[_Access]) -> bool:
    """Whether every store is at the loop variables themselves, and nothing else is read there."""
    moving = [loop.loop_var for loop in nest if const_int(loop.extent) != 1]
    stores = [a for a in accesses if a.is_store]
    for store in stores:
        if any(sum(index.same_as(var) for index in store.indices) != 1 for var in moving):
            return False
    for access in accesses:
        for store in stores:
            if access.buffer.same_as(store.buffer) and not all(
                structural_equal(a, b) for a, b in zip(access.indices, store.indices, strict=True)
            ):
                return False
    return True


def _report(
    access: _Access, how: str, one: int, two: int, points: dict[ir.Var, np.ndarray]
) -> None:
    def at(position: int) -> str:
        return (
            "("
            + ", ".join(f"{var.name}={int(grid[position])}" for var, grid in points.items())
            + ")"
        )

    raise SemanticError(
        f"iterations {at(one)} and {at(two)} of T.Parallel touch the same element of "
        f"{access.buffer.name}: {how}. Iterations are unordered; reduce with T.reduce_* or "
        "T.atomic_*, use T.serial, or write to another buffer",
        access.node.span,
    )


def _accesses(body: Any) -> list[_Access]:
    """Unconditional loads and stores of the body, stores through plain assignment only."""
    found: list[_Access] = []

    def skip(node: Any, visitor: Any) -> None:
        return None

    def on_store(stmt: T.BufferStore, visitor: Any) -> None:
        found.append(_Access(stmt.buffer, tuple(stmt.indices), True, stmt))
        visitor.default_visit(stmt)

    def on_load(load: ir.TensorLoad, visitor: Any) -> None:
        found.append(_Access(load.source, tuple(load.indices), False, load))
        visitor.default_visit(load)

    def on_call(call: ir.Call, visitor: Any) -> None:
        conditional = isinstance(call.op, ir.Op) and call.op.name == "prim.if_then_else"
        update = call.op.same_as(ELEMENT_ATOMIC) or call.op.same_as(REDUCER_UPDATE)
        if not conditional and not update:
            visitor.default_visit(call)

    structural_visit(
        body,
        [
            (T.BufferStore, on_store),
            (ir.TensorLoad, on_load),
            (T.IfThenElse, skip),
            (T.While, skip),
            (T.For, skip),
            (T.Select, skip),
            (ir.Call, on_call),
        ],
    )
    return [a for a in found if not _is_private(a.buffer.scope())]


def _is_private(scope: str) -> bool:
    """Whether every iteration may use the buffer as scratch of its own."""
    return scope in ("local", "local.var") or scope.startswith("local.reducer")


def _evaluate_all(
    indices: tuple[Any, ...], points: dict[ir.Var, np.ndarray], outside: _Outside
) -> np.ndarray | None:
    """The indices of all iterations at both samples, a column each; None if not arithmetic."""
    rows = []
    for which in (0, 1):
        for index in indices:
            row = _evaluate(index, points, outside, which)
            if row is None:
                return None
            rows.append(np.broadcast_to(row, next(iter(points.values())).shape))
    return np.stack(rows)


_FOLD = {
    T.Add: np.add,
    T.Sub: np.subtract,
    T.Mul: np.multiply,
    T.FloorDiv: np.floor_divide,
    T.FloorMod: np.mod,
    T.Min: np.minimum,
    T.Max: np.maximum,
}


def _evaluate(expr: Any, points: dict[ir.Var, np.ndarray], outside: _Outside, which: int) -> Any:
    value = const_int(expr)
    if value is not None:
        return np.int64(value)
    if isinstance(expr, ir.Var):
        return points[expr] if expr in points else outside.at(expr, which)
    if type(expr) in _FOLD:
        a, b = (_evaluate(side, points, outside, which) for side in (expr.a, expr.b))
        if a is None or b is None or (type(expr) in (T.FloorDiv, T.FloorMod) and np.any(b == 0)):
            return None
        return _FOLD[type(expr)](a, b)
    return None


def _mentions(indices: tuple[Any, ...], variables: list[ir.Var]) -> bool:
    used: list[ir.Var] = []
    for index in indices:
        structural_walk(index, (ir.Var, used.append))
    return any(var.same_as(other) for var in used for other in variables)


def _bound_variables(body: Any) -> list[ir.Var]:
    found: list[ir.Var] = []
    structural_walk(body, (T.Bind, lambda stmt: found.append(stmt.var)))
    return found
