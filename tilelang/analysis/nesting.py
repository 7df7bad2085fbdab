"""Rules on how constructs may be nested, and on what a parallel iteration may touch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_visit, structural_walk

from tilelang.errors import SemanticError
from tilelang.ir.expr import const_int
from tilelang.ir.op import TileCall

__all__ = ["check_nesting"]


@dataclass
class _State:
    parallel: list[T.For] = field(default_factory=list)
    variables: list[ir.Var] = field(default_factory=list)


def check_nesting(func: T.PrimFunc) -> None:
    """Check how parallel loops, pipelined loops and tile ops are nested.

    Raises
    ------
    SemanticError
        For a tile op, a pipelined loop or a loop over threads inside ``T.Parallel``; a
        ``T.Parallel`` that is not directly nested in another; a per-thread buffer indexed by a
        parallel variable; a fragment indexed by a parallel variable of run-time range.
    """
    state = _State()
    structural_visit(
        func.body,
        [
            (T.For, lambda loop, visitor: _on_for(state, loop, visitor)),
            (T.Evaluate, lambda stmt, visitor: _on_evaluate(state, stmt, visitor)),
            (
                T.BufferStore,
                lambda stmt, visitor: _on_access(state, stmt.buffer, stmt.indices, stmt, visitor),
            ),
            (
                ir.TensorLoad,
                lambda load, visitor: _on_access(state, load.source, load.indices, load, visitor),
            ),
        ],
    )


def _on_for(state: _State, loop: T.For, visitor: Any) -> None:
    if loop.kind == T.ForKind.PARALLEL:
        if state.parallel and not _directly_nested(state.parallel[-1], loop):
            raise SemanticError(
                "T.Parallel inside another T.Parallel must be its only statement; "
                "use one T.Parallel over all dimensions, or T.serial for the inner loop",
                loop.span,
            )
        state.parallel.append(loop)
        visitor.default_visit(loop)
        state.parallel.pop()
        return
    if state.parallel and "num_stages" in loop.annotations:
        raise SemanticError(
            "T.Pipelined cannot stand inside T.Parallel; put the parallel loop inside the "
            "pipelined one",
            loop.span,
        )
    visitor.default_visit(loop)


def _directly_nested(outer: T.For, inner: T.For) -> bool:
    return isinstance(outer.body, T.For) and outer.body.same_as(inner)


def _on_evaluate(state: _State, stmt: T.Evaluate, visitor: Any) -> None:
    call = TileCall.of(stmt)
    if call is not None and state.parallel:
        raise SemanticError(
            f"the tile op T.{call.name} cannot stand inside T.Parallel: it works on whole tiles. "
            "Move it out, or write the elementwise expression",
            call.span,
        )
    visitor.default_visit(stmt)


def _on_access(state: _State, buffer: ir.Var, indices: Any, node: Any, visitor: Any) -> None:
    scope = buffer.scope()
    if state.parallel and scope in ("local", "local.fragment"):
        used = _used(indices)
        for loop in state.parallel:
            if not any(var.same_as(loop.loop_var) for var in used):
                continue
            span = node.span or loop.span
            if scope == "local":
                raise SemanticError(
                    f"{buffer.name} is a per-thread buffer (T.alloc_local) and cannot be indexed "
                    f"by the parallel variable {loop.loop_var.name}; use T.alloc_fragment",
                    span,
                )
            if const_int(loop.extent) is None:
                raise SemanticError(
                    f"the fragment {buffer.name} is indexed by {loop.loop_var.name}, whose range "
                    f"{loop.extent} is known only at run time; loop over the fragment's extent and "
                    "guard "
                    "the iteration",
                    span,
                )
    visitor.default_visit(node)


def _used(indices: Any) -> list[ir.Var]:
    found: list[ir.Var] = []
    for index in indices:
        structural_walk(index, (ir.Var, found.append))
    return found
