"""A parallel nest as the code of one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_equal, structural_map, structural_walk

from tilelang.ir.expr import const_int, dtype_of
from tilelang.layout.distribution import Distribution, Part
from tilelang.transform.simt.access_map import map_access, mentions
from tilelang.transform.simt.context import SimtContext
from tilelang.transform.simt.defaults import at_zero, contiguous, uniform, vector_width
from tilelang.transform.simt.digits import Digits, loop_digits
from tilelang.transform.simt.effects import effects_when, writes_registers
from tilelang.transform.simt.nest import Access, Nest
from tilelang.transform.simt.vector import Place, vectorize

__all__ = ["lower_nest"]

_UNROLL_LIMIT = 64


def lower_nest(nest: Nest, loop: Distribution | None, ctx: SimtContext) -> T.Stmt:
    """The iterations of ``nest`` that belong to the running thread.

    Before: ``for i in T.parallel(64): for j in T.parallel(64): C[i, j] = A[i, j]``. After:
    ``for s in T.unroll(4): C[s * 16 + tx // 8, tx % 8 * 8:+8] = A[...]``.
    """
    if loop is None:
        return _runtime_nest(nest, ctx)
    width = vector_width(nest, ctx.threads, ctx.layouts, ctx.analyzer)
    return _Lowered(nest, loop, ctx).statement(width)


class _Lowered:
    """The pieces of one nest."""

    def __init__(self, nest: Nest, loop: Distribution, ctx: SimtContext) -> None:
        self.nest, self.loop, self.ctx = nest, loop, ctx

    def statement(self, width: int) -> T.Stmt:
        loop, ctx = self.loop, self.ctx
        inner_axis = len(loop.shape) - 1
        slots: list[Any] = []
        loops: list[tuple[ir.Var, int]] = []
        vector = T.Var("v", "int32")
        lanes = 1
        for number, part in enumerate(loop.slots):
            if part.axis == inner_axis and part.divisor == 1:
                lanes = _common(width, part.extent)
                if part.extent == lanes:
                    slots.append(vector)
                    continue
                var = T.Var(f"s{number}", "int32")
                loops.append((var, part.extent // lanes))
                slots.append(var * lanes + vector if lanes > 1 else var)
                continue
            var = T.Var(f"s{number}", "int32")
            loops.append((var, part.extent))
            slots.append(var)
        for var, extent in (*loops, (vector, lanes)):
            ctx.analyzer.bind(var, ir.Range(0, extent), True)
        digits = loop_digits(loop, ctx.thread, slots)
        index = [ctx.simplify(_expr(d.value())) for d in digits]
        body = self._body(index, digits)
        copies = loop.copies
        if copies and writes_registers(body):
            body, copies = effects_when(body, self._first_of(copies)), ()
        stmt = vectorize(body, vector, lanes, self._place(vector, lanes), self._is_async())
        stmt = self._guarded(stmt, index, vector, lanes)
        if copies:
            stmt = T.IfThenElse(self._first_of(copies), stmt, None, self.nest.root.span)
        return self._loops(stmt, loops)

    def _is_async(self) -> bool:
        return bool(const_int(self.nest.note("tl.async")))

    def _place(self, vector: ir.Var, lanes: int) -> Place:
        ctx = self.ctx
        registers = {tile.registers: tile for tile in ctx.tiles.values()}

        def in_registers(access: Access) -> bool:
            if access.buffer not in registers or len(access.indices) != 1:
                return False
            rest = ctx.simplify(access.indices[0] - vector)
            found: list[ir.Var] = []
            structural_walk(
                rest, (ir.Var, lambda v: found.append(v) if v.same_as(vector) else None)
            )
            if found:
                return False
            scale = ctx.analyzer.modular_set(rest)
            return int(scale.coeff) % lanes == 0 and int(scale.base) % lanes == 0

        return Place(
            memory=lambda a: contiguous(a, vector, lanes, ctx.analyzer, ctx.layouts),
            registers=in_registers,
            same=lambda c: uniform(c, vector, lanes, ctx.analyzer),
        )

    def _body(self, index: Sequence[Any], digits: Sequence[Digits]) -> T.Stmt:
        """The body with the loop variables replaced and tiles turned into registers."""
        nest, ctx = self.nest, self.ctx
        values = {
            var: _plus(loop.min, value)
            for var, loop, value in zip(nest.variables, nest.loops, index, strict=True)
        }

        def on_load(load: ir.TensorLoad) -> Any:
            if not ctx.is_tile(load.source):
                return load
            at = self._register(load.source, load.indices, values, digits)
            return T.BufferLoad(ctx.tile(load.source).registers, [at], load.span)

        def on_store(store: T.BufferStore) -> Any:
            if not ctx.is_tile(store.buffer):
                return store
            at = self._register(store.buffer, store.indices, values, digits)
            return T.BufferStore(ctx.tile(store.buffer).registers, store.value, [at], store.span)

        body = (
            structural_map(
                nest.body, [(ir.TensorLoad, on_load), (T.BufferStore, on_store)], order="pre"
            )
            if False
            else structural_map(nest.body, [(ir.TensorLoad, on_load), (T.BufferStore, on_store)])
        )
        replaced = structural_map(body, (ir.Var, lambda v: values.get(v, v)))
        return _simplified_indices(replaced, ctx)

    def _register(
        self, buffer: ir.Var, indices: Any, values: dict[ir.Var, Any], digits: Sequence[Digits]
    ) -> Any:
        tile = self.ctx.tile(buffer).distribution
        mapping = map_access(Access(buffer, tuple(indices), False), self.nest)
        known: list[Digits | None] = [None] * len(tile.shape)
        if mapping is not None:
            for axis, dim in mapping.axes.items():
                known[dim] = digits[axis]
        actual = [structural_map(i, (ir.Var, lambda v: values.get(v, v))) for i in indices]
        return self.ctx.simplify(self.ctx.slot(tile, actual, known))

    def _guarded(self, stmt: T.Stmt, index: Sequence[Any], vector: ir.Var, lanes: int) -> T.Stmt:
        loop, ctx = self.loop, self.ctx
        conditions: list[Any] = []
        if loop.num_threads < ctx.threads:
            conditions.append(T.LT(ctx.thread, T.const(loop.num_threads, "int32")))
        for axis, extent in enumerate(loop.shape):
            if loop.covered(axis) > extent:
                first = index[axis]
                if lanes > 1 and axis == len(loop.shape) - 1:
                    first = at_zero(first, vector)
                    assert extent % lanes == 0, "a group of a vector lies inside or outside"
                condition = T.LT(first, T.const(extent, "int32"))
                if not ctx.analyzer.can_prove(condition):
                    conditions.append(condition)
        if not conditions:
            return stmt
        guard = conditions[0]
        for condition in conditions[1:]:
            guard = T.And(guard, condition)
        return T.IfThenElse(guard, stmt, None, self.nest.root.span)

    def _first_of(self, copies: Sequence[Part]) -> ir.Expr:
        """Whether the thread is the first of those that run the same iteration."""
        first: Any = None
        for part in copies:
            one = T.EQ(_expr(part.of(self.ctx.thread)), T.const(0, "int32"))
            first = one if first is None else T.And(first, one)
        return first

    def _loops(self, stmt: T.Stmt, loops: Sequence[tuple[ir.Var, int]]) -> T.Stmt:
        count = 1
        for _, extent in loops:
            count *= extent
        unroll = _uses_registers(stmt, self.ctx) or count <= _UNROLL_LIMIT
        kind = T.ForKind.UNROLLED if unroll else T.ForKind.SERIAL
        fused = self._fused(stmt, loops)
        if fused is not None:
            stmt, loops = fused
        for var, extent in loops:
            if extent == 1:
                stmt = at_zero(stmt, var)
                continue
            stmt = T.For(var, 0, extent, kind, stmt, span=self.nest.root.span)
        return stmt

    def _fused(
        self, stmt: T.Stmt, loops: Sequence[tuple[ir.Var, int]]
    ) -> tuple[T.Stmt, list[tuple[ir.Var, int]]] | None:
        """One loop for all digits, where every access counts them in the same dense way."""
        loops = [(var, extent) for var, extent in loops if extent > 1]
        if len(loops) < 2:
            return None
        dense: Any = T.const(0, "int32")
        count = 1
        for var, extent in loops:
            dense = dense + var * count
            count *= extent
        dense = self.ctx.simplify(dense)
        one = T.Var("s", "int32")

        def counted(index: Any) -> Any:
            return one if structural_equal(index, dense) else index

        def on_load(load: ir.TensorLoad) -> Any:
            return T.BufferLoad(load.source, [counted(i) for i in load.indices], load.span)

        def on_store(store: T.BufferStore) -> Any:
            indices = [counted(i) for i in store.indices]
            return T.BufferStore(store.buffer, store.value, indices, store.span)

        replaced = structural_map(stmt, [(ir.TensorLoad, on_load), (T.BufferStore, on_store)])
        if mentions(replaced, [var for var, _ in loops]):
            return None
        return replaced, [(one, count)]


def _common(width: int, extent: int) -> int:
    while extent % width:
        width //= 2
    return width


def _expr(value: Any) -> Any:
    return value if isinstance(value, ir.Expr) else T.const(int(value), "int32")


def _plus(start: Any, value: Any) -> Any:
    if const_int(start) == 0:
        return value if dtype_of(value) == dtype_of(start) else value.astype(dtype_of(start))
    return start + (value if dtype_of(value) == dtype_of(start) else value.astype(dtype_of(start)))


def _simplified_indices(root: Any, ctx: SimtContext) -> Any:
    def on_load(load: ir.TensorLoad) -> Any:
        return T.BufferLoad(load.source, [ctx.simplify(i) for i in load.indices], load.span)

    def on_store(store: T.BufferStore) -> Any:
        return T.BufferStore(
            store.buffer, store.value, [ctx.simplify(i) for i in store.indices], store.span
        )

    return structural_map(root, [(ir.TensorLoad, on_load), (T.BufferStore, on_store)])


def _uses_registers(stmt: Any, ctx: SimtContext) -> bool:
    registers = {tile.registers for tile in ctx.tiles.values()}
    found: list[Any] = []

    def check(buffer: Any) -> None:
        if buffer in registers:
            found.append(buffer)

    structural_walk(
        stmt,
        [
            (ir.TensorLoad, lambda e: check(e.source)),
            (T.BufferStore, lambda s: check(s.buffer)),
        ],
    )
    return bool(found)


def _runtime_nest(nest: Nest, ctx: SimtContext) -> T.Stmt:
    """A nest over memory whose extents are known only at run time: threads take turns."""
    total: Any = T.const(1, "int32")
    for loop in nest.loops:
        total = total * loop.extent
    total = ctx.simplify(total)
    turn = T.Var("turn", dtype_of(total))
    flat = turn * ctx.threads + (
        ctx.thread if dtype_of(turn) == "int32" else ctx.thread.astype(dtype_of(turn))
    )
    values: dict[ir.Var, Any] = {}
    rest: Any = flat
    for position in range(len(nest.loops) - 1, -1, -1):
        loop = nest.loops[position]
        digit = rest if position == 0 else rest % loop.extent
        rest = rest if position == 0 else rest // loop.extent
        if dtype_of(digit) != dtype_of(loop.loop_var):
            digit = digit.astype(dtype_of(loop.loop_var))
        values[loop.loop_var] = digit if const_int(loop.min) == 0 else loop.min + digit
    body = structural_map(nest.body, (ir.Var, lambda v: values.get(v, v)))
    guarded = T.IfThenElse(T.LT(flat, total), body, None, nest.root.span)
    count = (total + (ctx.threads - 1)) // ctx.threads
    return T.For(turn, 0, ctx.simplify(count), T.ForKind.SERIAL, guarded, span=nest.root.span)
