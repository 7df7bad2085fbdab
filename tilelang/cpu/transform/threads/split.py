"""Split a thread program into loops over threads between the points where threads meet."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_walk

from tilelang.cpu.transform.threads.block import Block
from tilelang.cpu.transform.threads.classify import PER_THREAD, mentions
from tilelang.cpu.transform.threads.statements import lower_statement
from tilelang.errors import UnsupportedError
from tilelang.ir.expr import const_int, dtype_of
from tilelang.transform.thread_use import BARRIERS, lane_intrinsic, needs_threads

__all__ = ["split_thread_program"]


def split_thread_program(func: T.PrimFunc) -> T.PrimFunc:
    """Run the threads of a block in loops; a program that never tells threads apart needs none.

    Before: ``for tx in thread_binding(128): S[tx] = A[tx]; sync(); B[tx] = S[127 - tx]``. After:
    ``for t in range(128): S[t] = A[t]`` then ``for t in range(128): B[t] = S[127 - t]``.

    Raises
    ------
    UnsupportedError
        For a number of threads known only at run time, and lane intrinsics without a CPU form.
    SemanticError
        For a tile construct that names the thread.
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
    if not needs_threads(loop, [axis.loop_var for axis in loops]):
        return _without_barriers(stmt)
    if any(extent is None for extent in extents):
        raise UnsupportedError(
            "a thread program on the CPU needs a constant number of threads", loop.span
        )
    sizes = [extent for extent in extents if extent is not None]
    block = Block(loops, sizes, lower_statement)
    _expand_storage(block, stmt)
    return T.stmt_seq(*block.lower(block, stmt))


def _without_barriers(body: Any) -> Any:
    """Barriers order threads; one thread needs none."""

    def on_evaluate(stmt: T.Evaluate) -> T.Stmt:
        return T.Evaluate(0) if lane_intrinsic(stmt.value) in BARRIERS else stmt

    return structural_map(body, (T.Evaluate, on_evaluate))


def _expand_storage(block: Block, body: Any) -> None:
    """Give per-thread buffers, views of them, and temporaries a leading thread dimension."""

    def expand(buffer: ir.Var) -> None:
        shape = list(buffer.shape)
        block.expanded[buffer] = block.array(buffer.name, dtype_of(buffer), shape)

    def on_alloc(stmt: T.AllocBuffer) -> None:
        if stmt.buffer.scope() in PER_THREAD:
            expand(stmt.buffer)

    def on_view(stmt: T.DeclBuffer) -> None:
        called = isinstance(stmt.data, ir.Call) and isinstance(stmt.data.op, ir.Op)
        if called and stmt.data.op.name == "tirx.buffer_data":
            if stmt.data.args[0] in block.expanded:
                expand(stmt.buffer)
        elif mentions(stmt.data, [*block.thread_vars, *block.binds, *block.expanded]):
            addresses = block.array(f"{stmt.buffer.name}_at", "uint64")
            block.addresses[stmt.buffer] = addresses

    def on_bind(stmt: T.Bind) -> None:
        pointer = isinstance(stmt.var.ty, ir.PointerType)
        dtype = "uint64" if pointer else dtype_of(stmt.var)
        block.binds[stmt.var] = block.array(stmt.var.name, dtype)

    rules = [(T.AllocBuffer, on_alloc), (T.DeclBuffer, on_view), (T.Bind, on_bind)]
    structural_walk(body, rules)
