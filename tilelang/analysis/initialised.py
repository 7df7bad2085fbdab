"""Tiles that are read, or accumulated onto, although nothing has been written to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import VisitInterrupt, structural_visit, structural_walk

from tilelang.errors import SemanticError
from tilelang.ir import intrin
from tilelang.ir.expr import is_buffer
from tilelang.ir.op import ELEMENT_ATOMIC, REDUCER_UPDATE, TileCall

__all__ = ["check_initialised"]

_CHECKED = ("shared", "local")
_ACCUMULATING = frozenset({"gemm", "gemm_sp", "reduce", "atomic"})


@dataclass(frozen=True)
class _Read:
    """A tile that is read where nothing has filled it yet."""

    tile: ir.Var
    span: Any


@dataclass
class _State:
    """One walk in the order of execution.

    ``waiting`` holds, for every open loop and branch, the reads that something inside of it may
    still fill: an earlier iteration, or other threads in the other arm. The outermost list holds
    reads under a condition, which anything in the program may have filled.
    """

    tiles: set[ir.Var] = field(default_factory=set)
    roots: dict[ir.Var, ir.Var] = field(default_factory=dict)
    filled: set[ir.Var] = field(default_factory=set)
    waiting: list[list[_Read]] = field(default_factory=lambda: [[]])
    failed: list[_Read] = field(default_factory=list)
    conditional: int = 0

    def root(self, buffer: ir.Var) -> ir.Var:
        """The allocation that a view lies in."""
        while buffer in self.roots:
            buffer = self.roots[buffer]
        return buffer

    def fill(self, buffer: ir.Var) -> None:
        """Something was written."""
        self.filled.add(self.root(buffer))

    def read(self, buffer: ir.Var, span: Any) -> None:
        """Something is read."""
        tile = self.root(buffer)
        if tile not in self.tiles or tile in self.filled:
            return
        if self.conditional:
            self.waiting[0].append(_Read(tile, span))
        else:
            (self.waiting[-1] if len(self.waiting) > 1 else self.failed).append(_Read(tile, span))

    def within(self, run: Callable[[], Any]) -> None:
        """Walk a loop or branch."""
        self.waiting.append([])
        run()
        left = [read for read in self.waiting.pop() if read.tile not in self.filled]
        (self.waiting[-1] if len(self.waiting) > 1 else self.failed).extend(left)


def check_initialised(func: T.PrimFunc) -> None:
    """Check that tiles are filled before they are read.

    A write to any part counts, in any branch, and for a read inside of a loop anywhere in it: the
    interpreter checks element by element as it runs. An update (``x += 1``, an accumulation, an
    atomic) needs an earlier write itself. Where threads work apart on named or asynchronous
    barriers the order is not looked at.

    Raises
    ------
    SemanticError
        At the first read of a tile that nothing has filled.
    """
    state = _State()
    structural_visit(
        func.body,
        [
            (T.AllocBuffer, lambda s, v: _on_alloc(state, s)),
            (T.DeclBuffer, lambda s, v: _on_view(state, s)),
            (T.BufferStore, lambda s, v: _on_store(state, s, v)),
            (T.Evaluate, lambda s, v: _on_evaluate(state, s, v)),
            ((T.For, T.While), lambda s, v: _on_loop(state, s, v)),
            (T.IfThenElse, lambda s, v: _on_if(state, s, v)),
            (ir.TensorLoad, lambda e, v: _on_load(state, e, v)),
            (T.Select, lambda e, v: _on_choice(state, e, v)),
            (ir.Call, lambda e, v: _on_call(state, e, v)),
        ],
    )
    unordered = _works_apart(func.body)
    anywhere = [read for read in state.waiting[0] if read.tile not in state.filled]
    for read in [*state.failed, *anywhere]:
        never = read.tile not in state.filled
        if never or not unordered:
            name = read.tile.name
            how = "nothing ever writes it" if never else "it is written only later"
            raise SemanticError(
                f"{name} (scope {read.tile.scope()}) is read but {how}; "
                f"T.clear({name}), fill it or copy into it first",
                read.span,
            )


def _works_apart(body: Any) -> bool:
    """Whether threads meet at barriers that not all of them reach in the same order."""

    def on_call(call: ir.Call) -> Any:
        record = intrin.find(call)
        named = record is not None and record.name == "sync_threads" and len(call.args) > 0
        apart = named or (record is not None and record.asynchronous)
        return VisitInterrupt(True) if apart else None

    def on_alloc(stmt: T.AllocBuffer) -> Any:
        return VisitInterrupt(True) if stmt.buffer.scope() == "shared.barrier" else None

    return structural_walk(body, [(ir.Call, on_call), (T.AllocBuffer, on_alloc)]) is not None


def _on_alloc(state: _State, stmt: T.AllocBuffer) -> None:
    if stmt.buffer.scope().startswith(_CHECKED):
        state.tiles.add(stmt.buffer)


def _on_view(state: _State, stmt: T.DeclBuffer) -> None:
    data = stmt.data
    named = isinstance(data, ir.Call) and isinstance(data.op, ir.Op)
    if named and data.op.name == "tirx.buffer_data":
        state.roots[stmt.buffer] = data.args[0]
    elif data is not None:  # a computed address may lie in any tile it names
        _address_taken(state, data)


def _address_taken(state: _State, expr: Any) -> None:
    structural_walk(
        expr,
        [
            (ir.TensorLoad, lambda load: state.fill(load.source)),
            (ir.Var, lambda var: state.fill(var) if is_buffer(var) else None),
        ],
    )


def _on_loop(state: _State, stmt: T.For | T.While, visitor: Any) -> None:
    if isinstance(stmt, T.For) and stmt.kind == T.ForKind.THREAD_BINDING:
        visitor.default_visit(stmt)  # a block does not see what another has left in its tiles
    else:
        state.within(lambda: visitor.default_visit(stmt))


def _on_store(state: _State, stmt: T.BufferStore, visitor: Any) -> None:
    visitor.default_visit(stmt)
    own = state.root(stmt.buffer)

    def on_load(load: ir.TensorLoad, visitor: Any) -> Any:
        own_load = state.root(load.source).same_as(own)
        return VisitInterrupt(True) if own_load else visitor.default_visit(load)

    def on_choice(choice: Any, visitor: Any) -> None:
        return None  # one arm need not look at the old value

    rules = [(ir.TensorLoad, on_load), (T.Select, on_choice), (ir.Call, _unless_choice)]
    if structural_visit(stmt.value, rules) is None:
        state.fill(stmt.buffer)


def _is_choice(call: ir.Call) -> bool:
    return isinstance(call.op, ir.Op) and call.op.name == "prim.if_then_else"


def _unless_choice(call: ir.Call, visitor: Any) -> Any:
    return None if _is_choice(call) else visitor.default_visit(call)


def _on_evaluate(state: _State, stmt: T.Evaluate, visitor: Any) -> None:
    call = TileCall.of(stmt)
    if call is None:
        visitor.default_visit(stmt)
        return
    for operand in call.operands.values():
        if not isinstance(operand, ir.TensorRegion):
            visitor.visit(operand)
    filled = _filled(call)
    for region in call.regions("r"):
        if not any(region.same_as(other) for other in filled) or not _overwrites(call):
            state.read(region.source, call.span)
    for region in filled:
        state.fill(region.source)


def _on_if(state: _State, stmt: T.IfThenElse, visitor: Any) -> None:
    visitor.visit(stmt.condition)

    def arms() -> None:
        for arm in (stmt.then_case, stmt.else_case):
            if arm is not None:
                visitor.visit(arm)

    state.within(arms)


def _on_load(state: _State, load: ir.TensorLoad, visitor: Any) -> None:
    for index in load.indices:
        visitor.visit(index)
    state.read(load.source, load.span)


def _on_choice(state: _State, expr: Any, visitor: Any) -> None:
    """Only one arm is evaluated, or used."""
    parts = (
        expr.args
        if isinstance(expr, ir.Call)
        else (expr.condition, expr.true_value, expr.false_value)
    )
    visitor.visit(parts[0])
    state.conditional += 1
    for arm in parts[1:]:
        visitor.visit(arm)
    state.conditional -= 1


def _on_call(state: _State, call: ir.Call, visitor: Any) -> None:
    if _is_choice(call):
        _on_choice(state, call, visitor)
        return
    if call.op.same_as(ELEMENT_ATOMIC) or call.op.same_as(REDUCER_UPDATE):
        target = call.args[0]
        for expr in [*target.indices, *call.args[1:]]:
            visitor.visit(expr)
        if call.attrs.kind == "store":
            state.fill(target.source)
        else:
            state.read(target.source, call.span)
        return
    record = intrin.find(call)
    if record is None or record.name in ("address_of", "access_ptr"):
        _address_taken(state, call)  # what is handed out may be written through
        return
    visitor.default_visit(call)


def _overwrites(call: TileCall) -> bool:
    return any(getattr(call.attrs, flag, False) for flag in ("clear", "clear_accum"))


def _filled(call: TileCall) -> list[ir.TensorRegion]:
    """What a tile operation writes without needing what was there before."""
    written = call.regions("w")
    if _overwrites(call) or call.name not in _ACCUMULATING:
        return written
    held = {region.source for region in call.regions("r")}
    return [region for region in written if region.source not in held]
