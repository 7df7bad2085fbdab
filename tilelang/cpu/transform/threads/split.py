"""Split a thread program into loops over threads between the points where threads meet."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_mutate, structural_walk
from tvm_ffi.dataclasses import replace

from tilelang.cpu.transform.threads.classify import (
    BARRIERS,
    INDEX_CALLS,
    is_collective_call,
    is_per_thread_op,
    is_tile_print,
    lane_intrinsic,
    leaves_loop,
    meets,
    needs_threads,
)
from tilelang.cpu.transform.threads.collectives import WARP_SIZE, Exchange, collective
from tilelang.errors import UnsupportedError
from tilelang.ir.expr import const_int, dtype_of, is_buffer
from tilelang.ir.op import TileCall

__all__ = ["split_thread_program"]

_PER_THREAD = ("local", "local.var")


@dataclass
class _Split:
    """State of one launch."""

    loops: list[T.For]
    extents: list[int]
    expanded: dict[ir.Var, ir.Var] = field(default_factory=dict)
    binds: dict[ir.Var, ir.Var] = field(default_factory=dict)
    masks: list[ir.Var] = field(default_factory=list)

    @property
    def count(self) -> int:
        return math.prod(self.extents)

    @property
    def thread_vars(self) -> list[ir.Var]:
        return [loop.loop_var for loop in self.loops]


def split_thread_program(func: T.PrimFunc) -> T.PrimFunc:
    """Run the threads of a block in loops; a program without thread constructs loses its thread loops.

    Before: ``for tx in thread_binding(128): S[tx] = A[tx]; sync(); B[tx] = S[127 - tx]``. After:
    ``for t in range(128): S[t] = A[t]`` then ``for t in range(128): B[t] = S[127 - t]``.

    Raises
    ------
    UnsupportedError
        For a jump out of a loop with barriers that not all threads take, and for lane intrinsics
        without a CPU form.
    """

    def on_for(loop: T.For) -> T.Stmt:
        # Pre-order: the outermost thread loop is replaced first, and the result has none left.
        return loop if _tag(loop) is None else _split(loop)

    return func.with_body(structural_map(func.body, (T.For, on_for), order="pre"))


def _tag(loop: Any) -> str | None:
    if not isinstance(loop, T.For) or loop.kind != T.ForKind.THREAD_BINDING:
        return None
    tag = str(loop.thread_binding.thread_tag)
    return tag if tag.startswith("threadIdx") else None


def _split(loop: T.For) -> T.Stmt:
    loops: list[T.For] = []
    stmt: Any = loop
    while _tag(stmt) is not None:
        loops.append(stmt)
        stmt = stmt.body
    extents = [const_int(axis.extent) for axis in loops]
    threads = [axis.loop_var for axis in loops]
    if not needs_threads(loop, threads):
        return _without_barriers(stmt)
    if any(extent is None for extent in extents):
        raise UnsupportedError(
            "a thread program on the CPU needs a constant number of threads", loop.span
        )
    state = _Split(loops, [extent for extent in extents if extent is not None])
    _expand_storage(state, stmt)
    return T.stmt_seq(*_lower(state, stmt))


def _without_barriers(body: Any) -> Any:
    """Barriers order threads; one thread needs none."""

    def on_evaluate(stmt: T.Evaluate) -> T.Stmt:
        return T.Evaluate(0) if lane_intrinsic(stmt.value) in BARRIERS else stmt

    return structural_map(body, (T.Evaluate, on_evaluate))


def _expand_storage(state: _Split, body: Any) -> None:
    """Give per-thread buffers and temporaries a leading thread dimension."""

    def on_alloc(stmt: T.AllocBuffer) -> None:
        if stmt.buffer.scope() in _PER_THREAD:
            state.expanded[stmt.buffer] = _array(
                state, stmt.buffer.name, dtype_of(stmt.buffer), list(stmt.buffer.shape)
            )

    def on_bind(stmt: T.Bind) -> None:
        if not isinstance(stmt.var.ty, ir.PointerType):
            state.binds[stmt.var] = _array(state, stmt.var.name, dtype_of(stmt.var), [])

    structural_walk(body, [(T.AllocBuffer, on_alloc), (T.Bind, on_bind)])


def _array(state: _Split, name: str, dtype: str, shape: list[Any]) -> ir.Var:
    return T.decl_buffer(
        [state.count, *shape], dtype, name, scope="local", layout=None, data_alignment=64
    )


# --- statements -------------------------------------------------------------------------------


def _lower(state: _Split, stmt: Any) -> list[T.Stmt]:
    """Statements for the whole block."""
    out: list[T.Stmt] = []
    pending: list[T.Stmt] = []

    def flush() -> None:
        if pending:
            out.append(_thread_loop(state, T.stmt_seq(*pending)))
            pending.clear()

    for child in stmt.seq if isinstance(stmt, T.SeqStmt) else [stmt]:
        if isinstance(child, T.AllocBuffer):
            flush()
            out.append(
                T.AllocBuffer(state.expanded.get(child.buffer, child.buffer), span=child.span)
            )
        elif meets(child, state.thread_vars) or leaves_loop(child):
            flush()
            out.extend(_meeting(state, child))
        else:
            out.extend(_declare_temporaries(state, child))
            pending.append(child)
    flush()
    return out


def _declare_temporaries(state: _Split, stmt: Any) -> list[T.Stmt]:
    found: list[T.Stmt] = []

    def on_bind(bind: T.Bind) -> None:
        if bind.var in state.binds:
            found.append(T.AllocBuffer(state.binds[bind.var]))

    def on_alloc(alloc: T.AllocBuffer) -> None:
        if alloc.buffer in state.expanded:
            found.append(T.AllocBuffer(state.expanded[alloc.buffer]))

    structural_walk(stmt, [(T.Bind, on_bind), (T.AllocBuffer, on_alloc)])
    return found


def _meeting(state: _Split, stmt: Any) -> list[T.Stmt]:
    """A statement in which threads meet."""
    if isinstance(stmt, T.SeqStmt):
        return _lower(state, stmt)
    if isinstance(stmt, T.Evaluate) and lane_intrinsic(stmt.value) in BARRIERS:
        return []
    if isinstance(stmt, T.For) and stmt.kind == T.ForKind.PARALLEL:
        return [_once(state, stmt)]
    if isinstance(stmt, T.Evaluate):
        tile = TileCall.of(stmt)
        once = tile is not None and not is_per_thread_op(tile, state.thread_vars)
        if once or is_tile_print(stmt.value):
            return [_once(state, stmt)]
    if isinstance(stmt, T.For):
        return _meeting_loop(state, stmt)
    if isinstance(stmt, T.While):
        return _meeting_while(state, stmt)
    if isinstance(stmt, T.IfThenElse):
        return _meeting_branch(state, stmt)
    if isinstance(stmt, (T.Break, T.Continue)):
        if state.masks:
            raise UnsupportedError(
                "a break or continue that only some threads take, in a loop with barriers, does not run on the CPU",
                stmt.span,
            )
        return [stmt]
    return _exchanges(state, stmt)


def _once(state: _Split, stmt: Any) -> T.Stmt:
    """A tile construct runs once for the block, if any thread gets there."""
    body = _at_thread(state, stmt, T.const(0, "int32"))
    if not state.masks:
        return body
    flag = T.decl_buffer((1,), "bool", "reached", scope="local", layout=None)
    t = T.Var("t", "int32")
    mark = T.BufferStore(flag, T.Or(flag[0], state.masks[-1][t]), [0])
    return T.SeqStmt(
        [
            T.AllocBuffer(flag),
            T.BufferStore(flag, T.const(False, "bool"), [0]),
            T.For(t, 0, state.count, T.ForKind.SERIAL, mark),
            T.IfThenElse(flag[0], body, None, stmt.span),
        ]
    )


def _meeting_loop(state: _Split, loop: T.For) -> list[T.Stmt]:
    zero = T.const(0, "int32")
    before, (start, extent) = _hoist_exchanges(state, [loop.min, loop.extent], loop.span)
    start, extent = _at_thread(state, start, zero), _at_thread(state, extent, zero)
    body = T.stmt_seq(*_lower(state, loop.body))
    plain = T.For(
        loop.loop_var,
        start,
        extent,
        loop.kind,
        body,
        annotations=loop.annotations,
        step=loop.step,
        span=loop.span,
    )
    return [*before, plain]


def _meeting_while(state: _Split, stmt: T.While) -> list[T.Stmt]:
    before, (cond,) = _hoist_exchanges(state, [stmt.condition], stmt.span)
    if before:
        raise UnsupportedError(
            "a vote or shuffle in the condition of a while loop does not run on the CPU; compute it into "
            "a T.alloc_var at the end of the body",
            stmt.span,
        )
    cond = _at_thread(state, cond, T.const(0, "int32"))
    return [T.While(cond, T.stmt_seq(*_lower(state, stmt.body)), stmt.span)]


def _meeting_branch(state: _Split, stmt: T.IfThenElse) -> list[T.Stmt]:
    before, (cond,) = _hoist_exchanges(state, [stmt.condition], stmt.span)
    if _is_uniform(state, cond):
        value = _at_thread(state, cond, T.const(0, "int32"))
        other = T.stmt_seq(*_lower(state, stmt.else_case)) if stmt.else_case is not None else None
        return [
            *before,
            T.IfThenElse(value, T.stmt_seq(*_lower(state, stmt.then_case)), other, stmt.span),
        ]
    out = list(before)
    for branch, negate in ((stmt.then_case, False), (stmt.else_case, True)):
        if branch is None:
            continue
        mask = _array(state, "taken", "bool", [])
        out.append(T.AllocBuffer(mask))
        out.append(_store_all(state, mask, T.Not(cond) if negate else cond, masked_default=True))
        state.masks.append(mask)
        out.extend(_lower(state, branch))
        state.masks.pop()
    return out


def _store_all(state: _Split, target: ir.Var, value: Any, masked_default: bool = False) -> T.Stmt:
    """``target[t] = value`` for every thread; where a thread is masked off, False."""
    t = T.Var("t", "int32")
    result = _at_thread(state, value, t)
    store: T.Stmt = T.BufferStore(target, result, [t])
    if state.masks:
        other = T.BufferStore(target, T.const(False, "bool"), [t]) if masked_default else None
        store = T.IfThenElse(state.masks[-1][t], store, other)
    return T.For(t, 0, state.count, T.ForKind.SERIAL, store)


def _is_uniform(state: _Split, expr: Any) -> bool:
    """Whether an expression names nothing that may differ between threads."""
    differs: list[Any] = []
    varying = [*state.thread_vars, *state.binds]

    def on_var(var: ir.Var) -> None:
        if any(var.same_as(v) for v in varying):
            differs.append(var)

    def on_call(call: ir.Call) -> None:
        if lane_intrinsic(call) is not None:
            differs.append(call)

    structural_walk(expr, [(ir.TensorLoad, differs.append), (ir.Var, on_var), (ir.Call, on_call)])
    return not differs


def _exchanges(state: _Split, stmt: Any) -> list[T.Stmt]:
    """A plain statement with votes or shuffles in it: they run before it, over all threads."""
    holder: list[Any] = []
    before: list[T.Stmt] = []

    def on_call(call: ir.Call) -> Any:
        if not is_collective_call(call):
            return call
        holder.append(call)
        return _run_exchange(state, call, before)

    rewritten = structural_map(stmt, (ir.Call, on_call))
    declared = _declare_temporaries(state, rewritten)
    return [*before, *declared, _thread_loop(state, rewritten)]


def _hoist_exchanges(
    state: _Split, exprs: list[Any], span: ir.Span | None
) -> tuple[list[T.Stmt], list[Any]]:
    before: list[T.Stmt] = []

    def on_call(call: ir.Call) -> Any:
        return _run_exchange(state, call, before) if is_collective_call(call) else call

    return before, [structural_map(expr, (ir.Call, on_call)) for expr in exprs]


def _run_exchange(state: _Split, call: ir.Call, before: list[T.Stmt]) -> ir.Expr:
    """Emit the collective into ``before``; its value for the current thread stands for the call."""
    name = lane_intrinsic(call)
    assert name is not None
    operands: list[ir.Var] = []
    for position, arg in enumerate(call.args):
        operand = _array(state, f"{name}_{position}", dtype_of(arg), [])
        before.append(T.AllocBuffer(operand))
        before.append(_store_all(state, operand, arg))
        operands.append(operand)
    result = _array(state, name, dtype_of(call), [])
    before.append(T.AllocBuffer(result))
    mask = state.masks[-1] if state.masks else None
    active: Callable[[Any], ir.Expr] = (
        (lambda t: mask[t]) if mask is not None else (lambda t: T.const(True, "bool"))
    )
    before.append(
        collective(Exchange(name, tuple(operands), result, state.count, active, call.span))
    )
    return T.BufferLoad(result, [_linear_thread(state)])


# --- one thread -------------------------------------------------------------------------------


def _linear_thread(state: _Split) -> ir.Expr:
    """The block-linear thread number in terms of the thread variables, x fastest."""
    by_axis = {str(loop.thread_binding.thread_tag)[-1]: loop for loop in state.loops}
    total: ir.Expr | None = None
    for axis in "zyx":
        if axis in by_axis:
            loop = by_axis[axis]
            total = loop.loop_var if total is None else total * loop.extent + loop.loop_var
    assert total is not None
    return total


def _thread_loop(state: _Split, body: Any) -> T.Stmt:
    t = T.Var("t", "int32")
    inner = _at_thread(state, body, t)
    if state.masks:
        inner = T.IfThenElse(state.masks[-1][t], inner, None)
    return T.For(t, 0, state.count, T.ForKind.SERIAL, inner)


def _at_thread(state: _Split, node: Any, t: ir.Expr) -> Any:
    """``node`` as thread ``t`` runs it: indices, temporaries and per-thread storage."""
    indices = _thread_indices(state, t)

    def on_var(var: ir.Var) -> Any:
        if var in indices:
            return indices[var]
        if var in state.binds:
            return T.BufferLoad(state.binds[var], [t])
        return var

    def on_bind(stmt: T.Bind, mutator: Any) -> Any:
        target = state.binds.get(stmt.var)
        value = mutator.mutate(stmt.value)
        return (
            T.Bind(stmt.var, value, stmt.span)
            if target is None
            else T.BufferStore(target, value, [t], stmt.span)
        )

    return _Rewriter(state, t, on_var, on_bind).run(node)


def _thread_indices(state: _Split, t: ir.Expr) -> dict[ir.Var, ir.Expr]:
    """Thread variable to its value for block-linear thread ``t``."""
    by_axis = {str(loop.thread_binding.thread_tag)[-1]: loop for loop in state.loops}
    rest, result = t, {}
    present = [axis for axis in "xyz" if axis in by_axis]
    for position, axis in enumerate(present):
        loop = by_axis[axis]
        extent = const_int(loop.extent) or 1
        last = position == len(present) - 1
        if extent == 1:
            result[loop.loop_var] = T.const(0, dtype_of(loop.loop_var))
            continue
        only = all((const_int(by_axis[a].extent) or 1) == 1 for a in present[position + 1 :])
        index = rest if last or only else T.floormod(rest, T.const(extent, "int32"))
        rest = T.floordiv(rest, T.const(extent, "int32"))
        result[loop.loop_var] = (
            index if dtype_of(loop.loop_var) == "int32" else index.astype(dtype_of(loop.loop_var))
        )
    return result


@dataclass
class _Rewriter:
    """Rewrites storage and indices of one thread."""

    state: _Split
    t: ir.Expr
    on_var: Callable[[ir.Var], Any]
    on_bind: Callable[[T.Bind, Any], Any]

    def run(self, node: Any) -> Any:
        return structural_mutate(
            node,
            [
                (T.Bind, self.on_bind),
                (T.AllocBuffer, self._alloc),
                (T.BufferStore, self._store),
                (ir.TensorLoad, self._load),
                (ir.TensorRegion, self._region),
                (ir.Call, self._call),
                (ir.Var, lambda var, mutator: self.on_var(var)),
            ],
        )

    def _alloc(self, stmt: T.AllocBuffer, mutator: Any) -> Any:
        return T.Evaluate(0) if stmt.buffer in self.state.expanded else stmt

    def _store(self, stmt: T.BufferStore, mutator: Any) -> Any:
        indices = [mutator.mutate(index) for index in stmt.indices]
        value = mutator.mutate(stmt.value)
        target = self.state.expanded.get(stmt.buffer)
        if target is None:
            return T.BufferStore(stmt.buffer, value, indices, stmt.span)
        return T.BufferStore(target, value, [self.t, *indices], stmt.span)

    def _load(self, load: ir.TensorLoad, mutator: Any) -> Any:
        indices = [mutator.mutate(index) for index in load.indices]
        source = self.state.expanded.get(load.source)
        if source is None:
            return T.BufferLoad(load.source, indices, load.span)
        return T.BufferLoad(source, [self.t, *indices], load.span)

    def _region(self, region: ir.TensorRegion, mutator: Any) -> Any:
        ranges = [
            ir.Range.from_min_extent(mutator.mutate(r.min), mutator.mutate(r.extent))
            for r in region.region
        ]
        source = self.state.expanded.get(region.source)
        if source is None:
            return T.BufferRegion(region.source, ranges)
        return T.BufferRegion(
            source, [ir.Range.from_min_extent(self.t, T.const(1, "int32")), *ranges]
        )

    def _call(self, call: ir.Call, mutator: Any) -> Any:
        tile = TileCall.of(call)
        if tile is not None:
            return self._tile_op(tile, call, mutator)
        name = lane_intrinsic(call)
        if name in INDEX_CALLS:
            return _index_value(
                name, [mutator.mutate(arg) for arg in call.args], self.t, self.state.count
            )
        if any(is_buffer(arg) and arg in self.state.expanded for arg in call.args):
            raise UnsupportedError(
                f"the address of a per-thread buffer in {call.op.name} does not run on the CPU in a thread program",
                call.span,
            )
        shown = call.args[1] if len(call.args) > 1 else None
        if isinstance(shown, ir.TensorRegion) and shown.source in self.state.expanded:
            args = [mutator.mutate(arg) for arg in call.args]
            return ir.Call(call.op, args, attrs={"lead": 1}, ret_ty="void", span=call.span)
        return mutator.default_mutate(call)

    def _tile_op(self, tile: TileCall, call: ir.Call, mutator: Any) -> Any:
        """A tile op on per-thread storage works behind the new leading dimension."""
        source = tile.get("src")
        moved = (
            source is not None
            and source.source in self.state.expanded
            and hasattr(call.attrs, "dim")
        )
        attrs = replace(call.attrs, dim=call.attrs.dim + 1) if moved else call.attrs
        args = [mutator.mutate(arg) for arg in call.args]
        return ir.Call(call.op, args, attrs=attrs, ret_ty="void", span=call.span)


def _index_value(name: str, args: list[Any], t: ir.Expr, count: int) -> ir.Expr:
    size = args[0] if args else T.const(WARP_SIZE, "int32")
    if name == "get_lane_idx":
        return T.floormod(t, size)
    if name == "shuffle_elect":
        extent = const_int(args[0])
        return T.EQ(T.floormod(t, T.const(extent or count, "int32")), T.const(0, "int32"))
    warp = T.floordiv(t, size)
    if name == "get_warp_group_idx":
        return T.floordiv(warp, args[1] if len(args) > 1 else T.const(4, "int32"))
    return warp
