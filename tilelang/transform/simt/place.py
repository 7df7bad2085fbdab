"""The last steps of lowering: shared memory is laid out, threads are ordered, buffers made flat."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_walk

from tilelang.ir.expr import const_int, dtype_of, is_buffer
from tilelang.ir.intrin import simt
from tilelang.transform.flatten import flatten_buffers
from tilelang.transform.simt.barriers import place_barriers
from tilelang.transform.simt.defaults import dtype_bits
from tilelang.transform.simt.launch import launch_of
from tilelang.transform.simt.memory import is_shared
from tilelang.transform.simt.shared_memory import plan_shared_memory

__all__ = ["place_memory"]


def place_memory(func: T.PrimFunc, limit: int, *, merge: bool = True) -> T.PrimFunc:
    """Plan shared memory, insert barriers, and flatten every buffer.

    Sets ``tl.dyn_smem``, the bytes of the arena. Shared buffers become declarations at an offset
    of it (``T.shared_arena(offset)``).

    Raises
    ------
    LoweringError
        If shared memory does not suffice, or a barrier has no legal place.
    """
    attrs = func.attrs or {}
    layouts: dict[ir.Var, Any] = {pair[0]: pair[1] for pair in attrs.get("tl.storage_layouts", [])}
    launch = launch_of(func)
    plan = plan_shared_memory(launch.body, layouts, limit, merge=merge)
    func = place_barriers(func, plan.places, launch.threads)
    offsets = {buffer: offset for buffer, (offset, _) in plan.places.items()}

    def declare(stmt: T.AllocBuffer) -> T.Stmt:
        if not is_shared(stmt.buffer):
            return stmt
        pointer = simt.expression(
            "shared_arena", offsets.get(stmt.buffer, 0), result=stmt.buffer.data.ty
        )
        return T.DeclBuffer(stmt.buffer, data=pointer, span=stmt.span)

    func = func.with_body(structural_map(func.body, (T.AllocBuffer, declare)))
    alignment = _parameter_alignment(func)
    func, flat = flatten_buffers(func, layouts, None)
    params = [flat[p] if is_buffer(p) else p for p in func.params]
    kept = {key: value for key, value in attrs.items() if key != "tl.storage_layouts"}
    result = T.PrimFunc(
        params, func.body, ret_type=func.ret_type, attrs=ir.make_node("ir.DictAttrs", **kept)
        if kept else None, span=func.span,
    )  # fmt: skip
    return result.with_attr("tl.dyn_smem", plan.total).with_attr("tl.param_align", alignment)


def _parameter_alignment(func: T.PrimFunc) -> dict[str, int]:
    """Bytes that the wide accesses of a kernel need its tensors to be aligned to."""
    needed: dict[str, int] = {}

    def on_call(call: ir.Call) -> None:
        name = call.op.name if isinstance(call.op, ir.Op) else ""
        if name not in ("tl.vec_copy", "tl.cp_async", "tl.atomic_add_vec"):
            return
        size = const_int(call.args[2]) or 1
        if name == "tl.atomic_add_vec":  # counts elements
            size = min(16, size * dtype_bits(dtype_of(call.args[0].args[0])) // 8)
        for pointer in call.args[:2]:
            buffer = pointer.args[0].source
            if str(buffer.scope()) == "global":
                key = str(buffer.name)
                needed[key] = max(needed.get(key, 1), size)

    structural_walk(func.body, (ir.Call, on_call))
    return needed
