"""Decide where tiles live: on the stack of the worker, or in its scratch arena.

LLVM turns small tiles into registers only on the stack. There, however, TVM aligns nothing beyond
16 bytes, and vectors of large tiles would cross cache lines.
"""

from __future__ import annotations

from typing import Any

from tvm import DataType, ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_walk

from tilelang.errors import LoweringError
from tilelang.ir.expr import const_int, dtype_of
from tilelang.transform.flatten import TILE_ALIGNMENT

__all__ = ["ARENA_LIMIT", "ARENA_SIZE", "STACK_LIMIT", "plan_storage"]

STACK_LIMIT = 256 * 1024
"""Bytes of tiles kept on the stack; what does not fit goes to the arena, largest first."""
ARENA_SIZE = 4096
"""Bytes of a tile that goes to the arena in any case, where it starts on a cache line."""
ARENA_LIMIT = 2**31
"""Bytes of tiles a block may have: positions in tiles are 32-bit, and every thread has an arena."""


def _bytes(buffer: ir.Var) -> int:
    size = const_int(buffer.shape[0])
    assert size is not None, f"{buffer.name} has no constant size"
    return -(-size * DataType(dtype_of(buffer)).bits // 8)


def plan_storage(func: T.PrimFunc) -> T.PrimFunc:
    """Move large tiles, and tiles beyond the stack limit, to the arena.

    Sets the attributes ``tl.scratch`` (the arena's pointer variable, a new last parameter) and
    ``tl.scratch_bytes``.

    Before: ``S = T.alloc_buffer((1048576,), scope="shared")``. After:
    ``S = T.decl_buffer((1048576,), data=scratch + 0)``.

    Raises
    ------
    LoweringError
        If the tiles of a block take more than :data:`ARENA_LIMIT`.
    """
    allocs: list[T.AllocBuffer] = []
    structural_walk(func.body, (T.AllocBuffer, allocs.append))
    buffers = {stmt.buffer: _bytes(stmt.buffer) for stmt in allocs}
    total = sum(buffers.values())
    if total > ARENA_LIMIT:
        largest = max(buffers, key=lambda buffer: buffers[buffer])
        raise LoweringError(
            f"the tiles of one block take {total / 2**30:.1f} GiB, '{largest.name}' alone "
            f"{buffers[largest] / 2**30:.1f} GiB; at most {ARENA_LIMIT / 2**30:.0f} GiB are "
            "possible. Loop over smaller tiles, or use T.alloc_global for a workspace",
            largest.span,
        )
    offsets: dict[ir.Var, int] = {}
    used = 0
    for buffer, size in sorted(buffers.items(), key=lambda item: -item[1]):
        if size < ARENA_SIZE and total <= STACK_LIMIT:
            break
        offsets[buffer] = used
        used += -(-size // TILE_ALIGNMENT) * TILE_ALIGNMENT
        total -= size
    scratch = T.Var("scratch", "handle")

    def on_alloc(stmt: T.AllocBuffer) -> Any:
        offset = offsets.get(stmt.buffer)
        if offset is None:
            return stmt
        pointer = ir.Call(
            ir.Op.get("tirx.handle_add_byte_offset"),
            [scratch, T.const(offset, "int64")],
            ret_ty="handle",
        )
        return T.DeclBuffer(stmt.buffer, data=pointer, span=stmt.span)

    body = structural_map(func.body, (T.AllocBuffer, on_alloc)) if offsets else func.body
    params = [*func.params, scratch]
    result = T.PrimFunc(params, body, ret_type=func.ret_type, attrs=func.attrs, span=func.span)
    return result.with_attr("tl.scratch_bytes", used)
