"""Tile ops: the context in which the reference of a tile op runs.

A tile op is collective: in thread code it runs once if any thread reaches it, whatever the
branch. Only a tile op on a per-thread buffer, or at a place that names the thread, runs once a
thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm_ffi import VisitInterrupt, structural_walk

from tilelang.errors import TileLangError
from tilelang.interpreter.machine import Machine, is_per_thread
from tilelang.interpreter.memory import View
from tilelang.interpreter.nodes import Fn, dtype_of
from tilelang.interpreter.numbers import cast, dtype_named
from tilelang.ir.op import TileCall

__all__ = ["RefContext", "safe_value", "tile_op"]


class RefContext:
    """What the reference of a tile op may do: read and write regions, evaluate scalars."""

    def __init__(self, m: Machine, code: Any, call: TileCall) -> None:
        self._m, self._code, self._call = m, code, call
        self._cache: dict[Any, Any] = code.tile_functions
        self._seen: list[tuple[View, tuple[slice, ...]]] = []  # what was read so far

    def scalar(self, expr: Any) -> Any:
        """The value of a scalar operand, as a number of its dtype; Python ints pass through."""
        if not isinstance(expr, ir.Expr):
            return expr
        key = (expr, str(expr.ty.dtype)) if isinstance(expr, prim.IntImm) else expr
        function = self._cache.get(key)
        if function is None:
            function = self._cache[key] = self._code.value(expr)
        return function(self._m)

    def dtype(self, region: ir.TensorRegion) -> str:
        """The element dtype of a region, such as ``"float16"``."""
        return str(region.source.dtype)

    def cast(self, array: Any, dtype: str) -> np.ndarray:
        """Convert an array of any numbers to ``dtype`` by the numeric contract."""
        array = np.asarray(array)
        target = dtype_named(dtype)
        return np.asarray(cast(array, dtype_named(array.dtype.name), target))

    def read(self, region: ir.TensorRegion) -> np.ndarray:
        """The elements of a region, with its full extents; the safe value outside a tensor."""
        view, own, starts, sizes = self._locate(region)
        inner, outer = self._clip(view, region, starts, sizes, "reads")
        index = (*own, *inner)
        self._seen.append((view, inner))
        found = view.gather(index)
        self._check_written(view, own, index, starts, region)
        if found.shape == (*sizes, *view.dtype.vector_shape):
            return found.copy()
        safe = view.dtype.carrier.type(0) if view.safe_value is None else view.safe_value
        result = np.full((*sizes, *view.dtype.vector_shape), safe, view.dtype.carrier)
        result[outer] = found
        return result

    def write(self, region: ir.TensorRegion, array: np.ndarray) -> None:
        """Store an array of the region's dtype and extents; what lies outside is dropped."""
        view, own, starts, sizes = self._locate(region)
        inner, outer = self._clip(view, region, starts, sizes, "writes")
        self._check_overlap(view, inner)
        values = np.broadcast_to(array, (*sizes, *view.dtype.vector_shape))
        view.scatter((*own, *inner), values[outer])

    def _locate(self, region: ir.TensorRegion) -> tuple[View, Any, list[int], list[int]]:
        m = self._m
        view, own = m.place(m.view(self._code.var(region.source)))
        functions = self._cache.get(region)
        if functions is None:
            functions = self._cache[region] = [
                (self._code.index(r.min), self._code.index(r.extent)) for r in region.region
            ]
        starts = [int(start(m)) for start, _ in functions]
        sizes = [max(0, int(size(m))) for _, size in functions]
        return view, own, starts, sizes

    def _clip(
        self, view: View, region: Any, starts: list[int], sizes: list[int], what: str
    ) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The part of a region inside its buffer, as slices of the buffer and of the region."""
        inner, outer = [], []
        for start, size, extent in zip(starts, sizes, view.shape, strict=True):
            low, high = min(max(start, 0), extent), max(min(start + size, extent), 0)
            high = max(high, low)
            inner.append(slice(low, high))
            outer.append(slice(low - start, high - start) if high > low else slice(0, 0))
        inside = [s.stop - s.start for s in inner] == sizes
        if not inside and view.scope != "global" and 0 not in sizes:
            spans = ", ".join(f"{a}:{a + n}" for a, n in zip(starts, sizes, strict=True))
            raise self._m.error(
                f"T.{self._call.name} {what} {view.name}[{spans}], outside its shape "
                f"{list(view.shape)} (scope {view.scope})",
                self._call.span,
            )
        return tuple(inner), tuple(outer)

    def _check_overlap(self, view: View, written: tuple[slice, ...]) -> None:
        """What is written may be what was read, or apart from it: elements have no order."""
        if not self._m.options.check_conflicts:
            return
        for other, read in self._seen:
            same = other.storage is view.storage and other.shape == view.shape
            if same and read != written and _overlap(read, written):
                raise self._m.error(
                    f"T.{self._call.name} writes part of what it reads of {view.name}; its "
                    "elements have no order. Use another buffer",
                    self._call.span,
                )

    def _check_written(
        self, view: View, own: Any, index: Any, starts: list[int], region: ir.TensorRegion
    ) -> None:
        if view.storage.written is None or not self._m.options.check_initialized:
            return
        written = np.asarray(view.is_written(index))
        if written.all():
            return
        first = np.argwhere(~written)[0]
        at = [int(i) + max(start, 0) for i, start in zip(first, starts, strict=True)]
        reason = f": {view.storage.note}" if view.storage.note else ""
        raise self._m.error(
            f"T.{self._call.name} reads {view.name}{at} ({view.scope}) before it is written"
            + reason,
            self._call.span,
        )


def _overlap(a: tuple[slice, ...], b: tuple[slice, ...]) -> bool:
    return all(max(x.start, y.start) < min(x.stop, y.stop) for x, y in zip(a, b, strict=True))


def tile_op(c: Any, call: TileCall) -> Fn:
    """The function of a tile-op statement."""
    regions = [v for v in call.operands.values() if isinstance(v, ir.TensorRegion)]
    per_thread = any(
        is_per_thread(region.source.scope()) or _names_thread(c, region) for region in regions
    )

    def once(m: Machine) -> None:
        try:
            call.op.reference(RefContext(m, c, call), call)
        except TileLangError as error:
            raise error.at(call.span) from None

    def run(m: Machine) -> None:
        if m.domain.kind == "threads" and not per_thread:
            with m.parallel(m.domain.nest((), m.active), {}):
                once(m)
        elif m.domain.shape:
            for point in m.domain.points(m.active):
                with m.within(point):
                    once(m)
        else:
            once(m)

    return run


def _names_thread(c: Any, region: ir.TensorRegion) -> bool:
    def on_var(var: ir.Var) -> VisitInterrupt | None:
        return VisitInterrupt(var) if var in c.thread_vars else None

    return structural_walk(region, (ir.Var, on_var)) is not None


def safe_value(c: Any, stmt: T.AttrStmt, body: Fn) -> Fn:
    """``T.annotate_safe_value``: what reads outside a tensor give."""
    buffer, value, dtype = c.var(stmt.node), c.value(stmt.value), dtype_of(stmt.value)

    def run(m: Machine) -> None:
        view = m.view(buffer)
        outer, view.safe_value = view.safe_value, cast(value(m), dtype, view.dtype)
        body(m)
        view.safe_value = outer

    return run
