"""Tile constructs of a thread program: they run once for the block, if any thread gets there."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_walk

from tilelang.cpu.transform.threads.block import Block, flag, for_threads
from tilelang.cpu.transform.threads.classify import mentions
from tilelang.cpu.transform.threads.one_thread import at_thread
from tilelang.errors import KernelAssertionError, SemanticError
from tilelang.ir.expr import dtype_of

__all__ = ["run_once"]


def run_once(block: Block, stmt: Any) -> list[T.Stmt]:
    """Run ``stmt`` as the first thread that gets there; all threads must agree on what it reads.

    Raises
    ------
    SemanticError
        If it names the thread.
    """
    for var in block.thread_vars:
        if mentions(stmt, [var]):
            raise SemanticError(
                f"{var.name} differs between threads, but this statement is run once by all of "
                "them; loop over the tile's own indices, or use T.serial",
                stmt.span,
            )
    values, written = _shared_values(block, stmt), _written(block, stmt)
    if not block.masks:
        leader: ir.Expr = T.const(0, "int32")
        inner = [*_agreement(block, values, leader, stmt.span), at_thread(block, stmt, leader)]
        return [*inner, *_broadcast(block, written, leader)]
    first = flag("leader", "int32")
    find = for_threads(
        block,
        lambda t: T.IfThenElse(
            T.And(block.active(t), T.LT(first[0], T.const(0, "int32"))),
            T.BufferStore(first, t, [0]),
            None,
        ),
    )
    leader = T.BufferLoad(first, [0])
    inner = [*_agreement(block, values, leader, stmt.span), at_thread(block, stmt, leader)]
    inner += _broadcast(block, written, leader)
    reached = T.GE(leader, T.const(0, "int32"))
    return [
        T.AllocBuffer(first),
        T.BufferStore(first, T.const(-1, "int32"), [0]),
        find,
        T.IfThenElse(reached, T.stmt_seq(*inner), None, stmt.span),
    ]


def _shared_values(block: Block, stmt: Any) -> list[tuple[str, ir.Expr]]:
    """Per-thread values that ``stmt`` reads and does not compute itself."""
    inside: set[ir.Var] = set()
    structural_walk(
        stmt,
        [
            (T.For, lambda loop: inside.add(loop.loop_var)),
            (T.Bind, lambda bind: inside.add(bind.var)),
        ],
    )
    written = set(_written(block, stmt))
    found: dict[str, tuple[str, ir.Expr]] = {}

    def on_var(var: ir.Var) -> None:
        if var in block.binds and var not in inside and var not in block.uniform:
            found[str(var.name)] = (str(var.name), var)

    def on_load(load: ir.TensorLoad) -> None:
        own = load.source in block.expanded and load.source not in written
        if own and not mentions(list(load.indices), inside):
            found[str(load)] = (str(load.source.name), load)

    structural_walk(stmt, [(ir.Var, on_var), (ir.TensorLoad, on_load)])
    return list(found.values())


def _written(block: Block, stmt: Any) -> list[ir.Var]:
    found: list[ir.Var] = []

    def on_store(store: T.BufferStore) -> None:
        if store.buffer in block.expanded and store.buffer not in found:
            found.append(store.buffer)

    structural_walk(stmt, (T.BufferStore, on_store))
    return found


def _agreement(
    block: Block, values: list[tuple[str, ir.Expr]], leader: ir.Expr, span: ir.Span | None
) -> list[T.Stmt]:
    """Fail where a thread has another value than the leader."""
    out: list[T.Stmt] = []
    for name, value in values:
        text = f"{name} differs between threads, but this statement is run once by all of them"

        def check(t: ir.Var, value: ir.Expr = value, text: str = text) -> T.Stmt:
            mine, other = at_thread(block, value, t), at_thread(block, value, leader)
            kind = ir.StringImm(KernelAssertionError.__name__)
            return T.AssertStmt(_same(mine, other), kind, [ir.StringImm(text)], span)

        out.append(for_threads(block, check, masked=True))
    return out


def _same(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    equal = T.EQ(a, b)
    if not dtype_of(a).startswith(("float", "bfloat")):
        return equal
    return T.Or(equal, T.And(T.NE(a, a), T.NE(b, b)))  # NaN agrees with NaN


def _broadcast(block: Block, written: list[ir.Var], leader: ir.Expr) -> list[T.Stmt]:
    """Give every thread what the statement wrote to per-thread storage."""
    out: list[T.Stmt] = []
    for buffer in written:
        array = block.expanded[buffer]

        def copy(t: ir.Var, array: ir.Var = array, buffer: ir.Var = buffer) -> T.Stmt:
            variables = [T.Var(f"i{d}", "int32") for d in range(len(buffer.shape))]
            stmt: T.Stmt = T.BufferStore(
                array, T.BufferLoad(array, [leader, *variables]), [t, *variables]
            )
            for var, extent in reversed(list(zip(variables, buffer.shape, strict=True))):
                stmt = T.For(var, 0, extent, T.ForKind.SERIAL, stmt)
            return stmt

        out.append(for_threads(block, copy, masked=True))
    return out
