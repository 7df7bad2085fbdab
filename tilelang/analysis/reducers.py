"""The lifetime of a reducer: init, updates inside ``T.Parallel``, finalize, in one scope.

The older style (``replication=``) opens an epoch with ``T.clear`` or ``T.fill``, updates with plain
assignments and finalises in place. A handle finalised without a destination is taken as such.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_visit, structural_walk

from tilelang.errors import SemanticError
from tilelang.ir.op import REDUCER_UPDATE, TileCall
from tilelang.ir.op.reducer import SCOPE_PREFIX

__all__ = ["check_reducers"]


@dataclass
class _Epoch:
    """One reducer while the program is walked in order."""

    open: bool = False
    scope: tuple[int, ...] = ()
    init_span: Any = None
    ever_opened: bool = False


@dataclass
class _State:
    legacy: set[ir.Var]
    epochs: dict[ir.Var, _Epoch] = field(default_factory=dict)
    path: list[int] = field(default_factory=list)
    loops: list[bool] = field(default_factory=list)
    counter: int = 0
    parallel: int = 0


def check_reducers(func: T.PrimFunc) -> None:
    """Check every reducer's epochs.

    Raises
    ------
    SemanticError
        For an update before init or outside ``T.Parallel``, a second init, a missing finalize, a
        finalize in another scope, and any ordinary read or write of the handle.
    """
    state = _State(_legacy_reducers(func))
    structural_visit(
        func.body,
        [
            (T.For, lambda s, v: _on_scope(state, s, v)),
            (T.While, lambda s, v: _on_scope(state, s, v)),
            (T.IfThenElse, lambda s, v: _on_if(state, s, v)),
            (T.AllocBuffer, lambda s, v: _on_alloc(state, s, v)),
            (T.Evaluate, lambda s, v: _on_evaluate(state, s, v)),
            (T.BufferStore, lambda s, v: _on_store(state, s, v)),
            (ir.TensorLoad, lambda e, v: _on_load(state, e, v)),
        ],
    )
    for reducer, epoch in state.epochs.items():
        if epoch.open:
            raise SemanticError(
                f"reducer {reducer.name} is initialised but never finalized; "
                "add T.finalize_reducer",
                epoch.init_span,
            )


def _is_reducer(buffer: Any) -> bool:
    return isinstance(buffer, ir.Var) and buffer.scope().startswith(SCOPE_PREFIX)


def _legacy_reducers(func: T.PrimFunc) -> set[ir.Var]:
    found: set[ir.Var] = set()

    def on_evaluate(stmt: T.Evaluate) -> None:
        call = TileCall.of(stmt)
        if call is not None and call.name == "finalize_reducer" and call.get("dst") is None:
            found.add(call.operand("reducer").source)

    structural_walk(func.body, (T.Evaluate, on_evaluate))
    return found


def _scoped(state: _State, run: Any) -> None:
    state.counter += 1
    state.path.append(state.counter)
    run()
    state.path.pop()


def _on_scope(state: _State, stmt: Any, visitor: Any) -> None:
    parallel = isinstance(stmt, T.For) and stmt.kind == T.ForKind.PARALLEL
    launch = isinstance(stmt, T.For) and stmt.kind == T.ForKind.THREAD_BINDING
    state.parallel += parallel
    if launch:
        visitor.default_visit(stmt)
    else:
        _scoped(state, lambda: visitor.default_visit(stmt))
    state.parallel -= parallel


def _on_if(state: _State, stmt: T.IfThenElse, visitor: Any) -> None:
    # A block-uniform branch may finalise what was opened outside it, so branches open no scope for
    # finalize; an epoch opened inside a branch must close there.
    visitor.visit(stmt.condition)
    for branch in (stmt.then_case, stmt.else_case):
        if branch is None:
            continue
        before = {reducer: epoch.open for reducer, epoch in state.epochs.items()}
        visitor.visit(branch)
        for reducer, epoch in state.epochs.items():
            if epoch.open and not before.get(reducer, False):
                raise SemanticError(
                    f"reducer {reducer.name} is initialised in a branch but never finalized in it",
                    epoch.init_span,
                )


def _on_alloc(state: _State, stmt: T.AllocBuffer, visitor: Any) -> None:
    if _is_reducer(stmt.buffer):
        state.epochs[stmt.buffer] = _Epoch()


def _on_evaluate(state: _State, stmt: T.Evaluate, visitor: Any) -> None:
    call = TileCall.of(stmt)
    if call is not None:
        _on_tile_op(state, call)
        return
    if isinstance(stmt.value, ir.Call) and stmt.value.op.same_as(REDUCER_UPDATE):
        target = stmt.value.args[0].source
        epoch = state.epochs[target]
        if not epoch.open and target not in state.legacy:
            raise SemanticError(f"update of reducer {target.name} before T.reducer_init", stmt.span)
        if not state.parallel:
            raise SemanticError(
                f"update of reducer {target.name} outside any T.Parallel; every logical iteration "
                "contributes once",
                stmt.span,
            )
        for arg in [*stmt.value.args[0].indices, stmt.value.args[1]]:
            visitor.visit(arg)
        return
    visitor.default_visit(stmt)


def _on_tile_op(state: _State, call: TileCall) -> None:
    if call.name == "reducer_init":
        _open(state, call)
    elif call.name == "finalize_reducer":
        _close(state, call)
    else:
        for region in [*call.regions("r"), *call.regions("w")]:
            if _is_reducer(region.source) and region.source not in state.legacy:
                verb = "store to" if region in call.regions("w") else "read of"
                raise SemanticError(
                    f"illegal {verb} reducer {region.source.name} by T.{call.name}; only "
                    "T.reducer_init, "
                    "T.reducer_update and T.finalize_reducer may touch it",
                    call.span,
                )


def _open(state: _State, call: TileCall) -> None:
    reducer = call.operand("reducer").source
    epoch = state.epochs[reducer]
    if epoch.open:
        raise SemanticError(
            f"double T.reducer_init of {reducer.name} without T.finalize_reducer between", call.span
        )
    epoch.open, epoch.ever_opened = True, True
    epoch.scope, epoch.init_span = tuple(state.path), call.span


def _close(state: _State, call: TileCall) -> None:
    reducer = call.operand("reducer").source
    epoch = state.epochs[reducer]
    if reducer in state.legacy:
        return
    if not epoch.open:
        raise SemanticError(
            f"T.finalize_reducer of {reducer.name} before T.reducer_init", call.span
        )
    if tuple(state.path) != epoch.scope:
        raise SemanticError(
            f"T.finalize_reducer of {reducer.name} is not in the scope of its T.reducer_init; "
            "both must stand in the same loop body",
            call.span,
        )
    epoch.open = False


def _on_store(state: _State, stmt: T.BufferStore, visitor: Any) -> None:
    if _is_reducer(stmt.buffer) and stmt.buffer not in state.legacy:
        raise SemanticError(
            f"illegal store to reducer {stmt.buffer.name}; contribute with T.reducer_update",
            stmt.span,
        )
    visitor.default_visit(stmt)


def _on_load(state: _State, load: ir.TensorLoad, visitor: Any) -> None:
    if _is_reducer(load.source) and load.source not in state.legacy:
        raise SemanticError(
            f"illegal read of reducer {load.source.name}; "
            "read the destination of T.finalize_reducer",
            load.span,
        )
    visitor.default_visit(load)
