"""Tile programs to the code of one thread: nests, tile ops, and tiles in registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tvm import ir, sym
from tvm import tirx as T
from tvm_ffi import structural_map, structural_mutate

from tilelang.errors import UnsupportedError
from tilelang.ir.expr import const_int, dtype_of, is_buffer
from tilelang.ir.intrin import simt
from tilelang.ir.op import TileCall
from tilelang.layout import Fragment
from tilelang.layout.distribution import Distribution
from tilelang.transform.guard_accesses import guard_statement
from tilelang.transform.simt.barriers import unit
from tilelang.transform.simt.block_arrays import in_shared_memory, share_block_arrays
from tilelang.transform.simt.context import SimtContext, Tile, register_array
from tilelang.transform.simt.defaults import default_distribution, dtype_bits
from tilelang.transform.simt.inference import infer_layouts
from tilelang.transform.simt.inference_state import MatrixRule
from tilelang.transform.simt.launch import Launch, launch_of
from tilelang.transform.simt.nest import Nest, accesses_of, nest_of
from tilelang.transform.simt.notes import with_notes
from tilelang.transform.simt.once import once, once_for_all, runs_once
from tilelang.transform.simt.output import lower_print, prints_tile
from tilelang.transform.simt.parallel import lower_nest
from tilelang.transform.simt.reducer import contribute, update_atomically
from tilelang.transform.simt.sites import Sites, collect_sites
from tilelang.transform.simt.views import view_layouts
from tilelang.transform.simt.wide_atomics import widen_atomics
from tilelang.transform.thread_use import is_thread_program

__all__ = ["OpBody", "ThreadProgram", "lower_to_threads"]

OpBody = Callable[[TileCall, SimtContext], T.Stmt]


class ThreadProgram:
    """Lowers the tile programs of one backend.

    Parameters
    ----------
    bodies : mapping of str to OpBody
        By the name of the tile op.
    rule : callable, optional
        ``rule(threads) -> MatrixRule`` of the backend.
    backend : str
        For messages.
    swizzle : callable, optional
        ``swizzle(sites, threads) -> {shared buffer: Layout}``: storage of tiles that the user gave
        no layout.
    """

    def __init__(
        self,
        bodies: Mapping[str, OpBody],
        rule: Callable[[int], MatrixRule] | None,
        backend: str,
        swizzle: Callable[[Sites, int], Mapping[ir.Var, Any]] | None = None,
    ) -> None:
        self.bodies, self.rule, self.backend, self.swizzle = bodies, rule, backend, swizzle

    def __call__(self, func: T.PrimFunc) -> T.PrimFunc:
        """Lower one device function; see :func:`lower_to_threads`."""
        return lower_to_threads(func, self)


def lower_to_threads(func: T.PrimFunc, program: ThreadProgram) -> T.PrimFunc:
    """Rewrite a tile program as what each thread of a block does.

    Fragments become register arrays, nests loops over the thread's share, tile ops their bodies.
    Shared buffers keep their shape; layouts of their storage go into the attribute
    ``tl.storage_layouts`` for :mod:`tilelang.transform.simt.flatten`. Barriers are not placed yet.

    Raises
    ------
    UnsupportedError
        If an op has no body here.
    """
    launch = launch_of(func)
    block_program = not is_thread_program(func)
    arrays: dict[ir.Var, str] = {}
    if block_program:
        body, arrays = share_block_arrays(launch.body)
        launch = replace(launch, body=body)
    analyzer = _analyzer(func, launch)
    sites = collect_sites(launch.body)
    rule = program.rule(launch.threads) if program.rule is not None else None
    storage: dict[ir.Var, Any] = {
        b: layout for b, layout in sites.given.items() if not isinstance(layout, Fragment)
    }
    if program.swizzle is not None:
        for buffer, layout in program.swizzle(sites, launch.threads).items():
            storage.setdefault(buffer, layout)
    view_layouts(sites, storage)

    def layouts(buffer: ir.Var) -> Any:
        return storage.get(buffer)

    inferred = infer_layouts(sites, launch.threads, rule, layouts, analyzer)
    moved = {tile: in_shared_memory(tile) for tile in inferred.spilled}
    body = launch.body
    if moved:
        body = structural_map(body, (ir.Var, lambda v: moved.get(v, v)))
        body = update_atomically(body)
    tiles = {
        buffer: Tile(buffer, d, _registers(buffer, d))
        for buffer, d in inferred.tiles.items()
        if buffer not in inferred.spilled
    }
    ctx = SimtContext(launch.threads, launch.thread, tiles, layouts, analyzer)
    for tile, reason in (*arrays.items(), *inferred.spilled.items()):
        ctx.notes.append(f"{tile.name} lives in shared memory: {reason}")
    result = widen_atomics(_Rewriter(inferred.nests, ctx, program, block_program).run(body))
    body = T.stmt_seq(*ctx.allocations, result)
    func = func.with_body(launch.around(body)).with_attr("tl.block", list(launch.block))
    func = with_notes(func, ctx.notes)
    if storage:
        func = func.with_attr("tl.storage_layouts", [[b, layout] for b, layout in storage.items()])
    return func


def _registers(tile: ir.Var, distribution: Distribution) -> ir.Var:
    """The array of a thread's share, aligned for wide accesses."""
    size = distribution.num_slots * dtype_bits(dtype_of(tile)) // 8
    alignment = min(16, size & -size) if size else 0
    return register_array(str(tile.name), distribution.num_slots, dtype_of(tile), alignment)


def _fills_own_registers(nest: Nest) -> bool:
    """Whether all that a nest leaves are local arrays, of which every thread has its own."""
    accesses = accesses_of(nest.body)
    written = {access.scope for access in accesses if access.is_write}
    fragments = any(access.scope == "local.fragment" for access in accesses)
    return bool(written) and written <= {"local", "local.var"} and not fragments


def _in_each_thread(nest: Nest) -> T.Stmt:
    """The nest as loops that every thread runs as a whole."""
    body = nest.body
    for loop in reversed(nest.loops):
        constant = const_int(loop.extent) is not None
        kind = T.ForKind.UNROLLED if constant else T.ForKind.SERIAL
        body = T.For(loop.loop_var, loop.min, loop.extent, kind, body, span=loop.span)
    return body


def _analyzer(func: T.PrimFunc, launch: Launch) -> sym.Analyzer:
    analyzer = sym.Analyzer()
    for loop in launch.loops:
        analyzer.bind(loop.loop_var, ir.Range.from_min_extent(loop.min, loop.extent))
    for param in func.params:
        if is_buffer(param):
            for extent in param.shape:
                if isinstance(extent, ir.Var):
                    analyzer.update(extent, sym.ConstIntBound(0, 2**31 - 1), True)
    return analyzer


class _Rewriter:
    """The traversal of one kernel's body."""

    def __init__(
        self,
        nests: list[Distribution | None],
        ctx: SimtContext,
        program: ThreadProgram,
        block_program: bool,
    ) -> None:
        self.nests, self.ctx, self.program = iter(nests), ctx, program
        self.block_program = block_program

    def run(self, body: T.Stmt) -> T.Stmt:
        return structural_mutate(
            body,
            [
                (T.For, self.on_for),
                (T.Evaluate, self.on_evaluate),
                (T.AllocBuffer, self.on_alloc),
                (T.BufferStore, self.on_store),
                (ir.TensorLoad, self.on_load),
                (T.AttrStmt, self.on_attr),
                (T.Bind, self.on_bind),
            ],
        )

    def on_for(self, loop: T.For, mutator: Any) -> Any:
        ctx, nest = self.ctx, nest_of(loop)
        if nest is None:
            around = ir.Range.from_min_extent(loop.min, loop.extent)
            ctx.analyzer.bind(loop.loop_var, around, True)
            return mutator.default_mutate(loop)
        decided = next(self.nests)
        if not self.block_program and _fills_own_registers(nest):
            return mutator.default_mutate(_in_each_thread(nest))
        if decided is None and nest.shape is not None:
            decided = default_distribution(nest, ctx.threads, ctx.layouts, ctx.analyzer)
        body = unit(contribute(lower_nest(nest, decided, ctx)), loop.span)
        if const_int(nest.note("tl.async")) == 1:
            return T.SeqStmt([body, simt.call("cp_async_commit", span=loop.span)])
        return body

    def on_evaluate(self, stmt: T.Evaluate, mutator: Any) -> Any:
        call = TileCall.of(stmt)
        if call is None and prints_tile(stmt):
            return lower_print(stmt, self.ctx, self.block_program)
        if call is None:
            result = mutator.default_mutate(stmt)
            return once(result, self.ctx) if self.block_program and runs_once(stmt) else result
        lower = self.program.bodies.get(call.name)
        if lower is None:
            raise UnsupportedError.on_backend(f"T.{call.name}", self.program.backend, (), call.span)
        result = lower(call, self.ctx)
        reached = [*call.regions("r"), *call.regions("w")]
        if any(str(region.source.scope()) == "global" for region in reached):
            return guard_statement(result, self.ctx.analyzer)
        return result

    def on_alloc(self, stmt: T.AllocBuffer, mutator: Any) -> Any:
        if self.ctx.is_tile(stmt.buffer):
            return T.AllocBuffer(self.ctx.tile(stmt.buffer).registers, span=stmt.span)
        return stmt

    def on_store(self, store: T.BufferStore, mutator: Any) -> Any:
        value = mutator.mutate(store.value)
        indices = [mutator.mutate(i) for i in store.indices]
        if not self.ctx.is_tile(store.buffer):
            result = T.BufferStore(store.buffer, value, indices, store.span)
            return once(result, self.ctx) if self.block_program and runs_once(store) else result
        registers = self.ctx.tile(store.buffer).registers
        return T.BufferStore(registers, value, [self._at(store.buffer, indices)], store.span)

    def on_load(self, load: ir.TensorLoad, mutator: Any) -> Any:
        indices = [mutator.mutate(i) for i in load.indices]
        if not self.ctx.is_tile(load.source):
            return T.BufferLoad(load.source, indices, load.span)
        registers = self.ctx.tile(load.source).registers
        return T.BufferLoad(registers, [self._at(load.source, indices)], load.span)

    def _at(self, buffer: ir.Var, indices: list[Any]) -> Any:
        tile = self.ctx.tile(buffer).distribution
        return self.ctx.simplify(self.ctx.slot(tile, indices, [None] * len(tile.shape)))

    def on_attr(self, stmt: T.AttrStmt, mutator: Any) -> Any:
        if stmt.attr_key == "tl.layout":
            return mutator.mutate(stmt.body)
        return mutator.default_mutate(stmt)

    def on_bind(self, stmt: T.Bind, mutator: Any) -> Any:
        result = mutator.default_mutate(stmt)
        if self.block_program and runs_once(T.Evaluate(stmt.value)):
            return once_for_all(result, self.ctx)
        if const_int(result.value) is not None:
            self.ctx.analyzer.bind(result.var, result.value, True)
        return result
