"""Execution of statements: one small rule a node type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm.ir import prim
from tvm_ffi import structural_walk

from tilelang.errors import UnsupportedError
from tilelang.interpreter import accesses, debug, launch, tiles
from tilelang.interpreter.atomics import reducer_store
from tilelang.interpreter.conflicts import TouchLog
from tilelang.interpreter.domain import some
from tilelang.interpreter.expressions import Expressions
from tilelang.interpreter.machine import Jumps, Machine, Options, is_per_thread
from tilelang.interpreter.memory import Storage, View, strides_of
from tilelang.interpreter.nodes import Fn, dtype_of, lane_indices
from tilelang.interpreter.numbers import dtype_named
from tilelang.interpreter.pointers import Pointer
from tilelang.ir.op import TileCall

__all__ = ["Code"]


class Code(Expressions):
    """Builds functions that execute statements."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.options = options

    def stmt(self, stmt: T.Stmt) -> Fn:
        """A function that executes ``stmt`` for the active points."""
        rule = _RULES.get(type(stmt))
        if rule is None:
            raise UnsupportedError(
                f"the interpreter has no meaning for {type(stmt).__name__}", stmt.span
            )
        body, span = rule(self, stmt), stmt.span
        if span is None:
            return body
        stop = debug.breakpoint_at(self.options, span)

        def run(m: Machine) -> None:
            m.span = span
            if stop is not None:
                stop(m)
            body(m)

        return run


def _seq(c: Code, stmt: T.SeqStmt) -> Fn:
    parts = [c.stmt(part) for part in stmt.seq]

    def run(m: Machine) -> None:
        for part in parts:
            part(m)
            if not some(m.active):
                return

    return run


def _store(c: Code, stmt: T.BufferStore) -> Fn:
    contribution = reducer_store(c, stmt)
    if contribution is not None:
        return contribution
    if any(type(i) is prim.Ramp for i in stmt.indices):
        return _vector_store(c, stmt)
    buffer, span = c.var(stmt.buffer), stmt.span
    where, value = c.where(stmt), c.value(stmt.value)
    return lambda m: accesses.store(m, m.view(buffer), where(m), value(m), span)


def _vector_store(c: Code, stmt: T.BufferStore) -> Fn:
    buffer, span, value = c.var(stmt.buffer), stmt.span, c.value(stmt.value)
    lanes = range(dtype_of(stmt.value).lanes)
    wheres = [[c.index(i) for i in lane_indices(stmt.indices, lane)] for lane in lanes]

    def run(m: Machine) -> None:
        vector = np.asarray(value(m))
        for lane, where in enumerate(wheres):
            index = [part(m) for part in where]
            accesses.store(m, m.view(buffer), index, vector[..., lane][()], span)

    return run


def _bind(c: Code, stmt: T.Bind) -> Fn:
    return c.binding(stmt.var, stmt.value)


def _evaluate(c: Code, stmt: T.Evaluate) -> Fn:
    call = TileCall.of(stmt)
    if call is not None:
        return tiles.tile_op(c, call)
    return c.value(stmt.value)


def _if(c: Code, stmt: T.IfThenElse) -> Fn:
    condition, then = c.condition(stmt.condition), c.stmt(stmt.then_case)
    otherwise = c.stmt(stmt.else_case) if stmt.else_case is not None else (lambda m: None)

    def run(m: Machine) -> None:
        taken = condition(m)
        if np.ndim(taken) == 0:
            (then if taken else otherwise)(m)
            return
        entered = m.active
        m.active = entered & taken
        if some(m.active):
            then(m)
        left, m.active = m.active, entered & ~taken
        if some(m.active):
            otherwise(m)
        m.active = m.active | left

    return run


def _serial(c: Code, stmt: T.For) -> Fn:
    var = c.var(stmt.loop_var)
    start, extent = c.index(stmt.min), c.index(stmt.extent)
    step = c.index(stmt.step) if stmt.step is not None else (lambda m: 1)
    c.index_vars.add(var)
    body = c.stmt(stmt.body)

    def run(m: Machine) -> None:
        first, size, stride = start(m), extent(m), step(m)
        if np.ndim(stride) != 0:
            raise m.error("the step of a loop differs between its points")
        if np.ndim(size) == 0:
            counts: Any = max(0, -(-size // stride))
        else:
            counts = np.maximum(0, -(-size // stride))
        _loop(m, var, first, stride, counts, body)

    return run


def _loop(m: Machine, var: ir.Var, first: Any, stride: int, counts: Any, body: Fn) -> None:
    """Run ``body`` ``counts`` times; the counts may differ between points."""
    outer, m.jumps = m.jumps, Jumps()
    done: Any = np.False_
    uniform = np.ndim(counts) == 0
    trips = counts if uniform else int(np.where(m.active, counts, 0).max(initial=0))
    for trip in range(trips):
        if not uniform:
            done = done | (m.active & (counts <= trip))
            m.active = m.active & (counts > trip)
        if not some(m.active):
            break
        m.assign(var, first + trip * stride)
        m.jumps.continued = np.False_
        body(m)
        m.active = m.active | m.jumps.continued
    m.active = m.active | done | m.jumps.broken
    m.jumps = outer


def _parallel(c: Code, stmt: T.For) -> Fn:
    loops = [stmt]
    while isinstance(loops[-1].body, T.For) and loops[-1].body.kind == T.ForKind.PARALLEL:
        loops.append(loops[-1].body)
    starts = [c.index(loop.min) for loop in loops]
    extents = [c.index(loop.extent) for loop in loops]
    variables = [c.var(loop.loop_var) for loop in loops]
    c.index_vars.update(variables)
    body = c.stmt(loops[-1].body)
    stored: set[ir.Var] = set()
    loaded: set[ir.Var] = set()
    structural_walk(
        loops[-1].body,
        [
            (T.BufferStore, lambda s: stored.add(c.var(s.buffer))),
            (ir.TensorLoad, lambda load: loaded.add(c.var(load.source))),
        ],
    )

    def run(m: Machine) -> None:
        with m.within(m.domain.nest((), m.active)):
            first = [int(f(m)) for f in starts]
            sizes = tuple(max(0, int(f(m))) for f in extents)
        domain, entered = m.domain.nest(sizes, m.active), m.active
        if 0 in domain.shape:
            return
        with m.parallel(domain, _logs(m, stored, loaded)):
            if domain.parent is not None and domain.parent.kind == "parallel":
                m.active = np.asarray(entered).reshape(
                    np.shape(entered) + (1,) * (len(sizes) if np.ndim(entered) else 0)
                )[()]
            for var, start, grid in zip(variables, first, domain.grids[-len(sizes) :], strict=True):
                m.assign(var, start + grid)
            body(m)

    return run


def _logs(m: Machine, stored: set[ir.Var], loaded: set[ir.Var]) -> dict[Storage, TouchLog]:
    """A log for each storage that the buffers ``stored`` write."""
    written = {m.views[buffer].storage for buffer in stored if buffer in m.views}
    units: dict[Storage, int] = {}
    for view in (m.views[buffer] for buffer in stored | loaded if buffer in m.views):
        if view.storage in written:
            units[view.storage] = min(view.element_bits, units.get(view.storage, 2**30))
    return {storage: TouchLog(unit) for storage, unit in units.items()}


def _for(c: Code, stmt: T.For) -> Fn:
    if stmt.kind == T.ForKind.THREAD_BINDING:
        return launch.launch(c, stmt)
    if stmt.kind == T.ForKind.PARALLEL:
        return _parallel(c, stmt)
    return _serial(c, stmt)


def _while(c: Code, stmt: T.While) -> Fn:
    condition, body = c.condition(stmt.condition), c.stmt(stmt.body)

    def run(m: Machine) -> None:
        outer, m.jumps = m.jumps, Jumps()
        done: Any = np.False_
        while some(m.active):
            again = condition(m)
            done = done | (m.active & ~np.asarray(again))
            m.active = (m.active & again)[()]
            if not some(m.active):
                break
            m.jumps.continued = np.False_
            body(m)
            m.active = m.active | m.jumps.continued
        m.active = (m.active | done | m.jumps.broken)[()]
        m.jumps = outer

    return run


def _break(c: Code, stmt: T.Break) -> Fn:
    def run(m: Machine) -> None:
        m.jumps.broken = m.jumps.broken | m.active
        m.active = np.False_

    return run


def _continue(c: Code, stmt: T.Continue) -> Fn:
    def run(m: Machine) -> None:
        m.jumps.continued = m.jumps.continued | m.active
        m.active = np.False_

    return run


def _return(c: Code, stmt: T.Return) -> Fn:
    return Machine.leave


def _assert(c: Code, stmt: T.AssertStmt) -> Fn:
    condition, span = c.condition(stmt.condition), stmt.span
    parts = [c.value(part) for part in stmt.message_parts]

    def run(m: Machine) -> None:
        holds = np.asarray(condition(m))
        if np.any(m.active & ~holds):
            text = "".join(str(part(m)) for part in parts) or str(stmt.condition)
            raise m.error(f"assertion failed: {text}", span)

    return run


def _allocate(c: Code, stmt: T.AllocBuffer) -> Fn:
    buffer = c.var(stmt.buffer)
    extents = [c.index(extent) for extent in buffer.shape]
    dtype, scope = dtype_named(str(buffer.dtype)), buffer.scope()

    def run(m: Machine) -> None:
        shape = tuple(int(f(m)) for f in extents)
        nbytes = (int(np.prod(shape, dtype=np.int64)) * dtype.lanes * dtype.memory_bits + 7) // 8
        own = is_per_thread(scope)
        storage = Storage.allocate(
            buffer.name,
            scope,
            nbytes,
            m.domain if own else None,
            m.domain.shape if own else (),
        )
        m.views[buffer] = View(buffer.name, dtype, shape, strides_of(shape), 0, storage)

    return run


def _declare(c: Code, stmt: T.DeclBuffer) -> Fn:
    buffer = c.var(stmt.buffer)
    if stmt.data is None:
        return _allocate(c, stmt)
    pointer = c.pointer(stmt.data)
    extents = [c.index(extent) for extent in buffer.shape]
    strides = [c.index(stride) for stride in buffer.ty.strides]
    dtype = dtype_named(str(buffer.dtype))

    def run(m: Machine) -> None:
        shape = tuple(int(f(m)) for f in extents)
        steps = tuple(int(f(m)) for f in strides) or strides_of(shape)
        found: Pointer = pointer(m)
        m.views[buffer] = found.view(buffer.name, dtype, shape, steps)

    return run


def _attribute(c: Code, stmt: T.AttrStmt) -> Fn:
    body = c.stmt(stmt.body)
    if stmt.attr_key == "tl.safe_value":
        return tiles.safe_value(c, stmt, body)
    return body


_RULES: dict[type, Callable[[Any, Any], Fn]] = {
    T.SeqStmt: _seq,
    T.BufferStore: _store,
    T.Bind: _bind,
    T.Evaluate: _evaluate,
    T.IfThenElse: _if,
    T.For: _for,
    T.While: _while,
    T.Break: _break,
    T.Continue: _continue,
    T.Return: _return,
    T.AssertStmt: _assert,
    T.AllocBuffer: _allocate,
    T.DeclBuffer: _declare,
    T.AttrStmt: _attribute,
}
