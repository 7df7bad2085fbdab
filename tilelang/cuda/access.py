"""Which parameters of a thread program are only read, and which variables it uses at all."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_walk

from tilelang.ir.op.atomic import ELEMENT_ATOMIC

__all__ = [
    "foreign_source",
    "imported_sources",
    "operations",
    "used_variables",
    "written_buffers",
]

# Operations that only read through these of their pointers.
_SOURCES = {
    "tl.vec_copy": (1,),
    "tl.cp_async": (1,),
    "tl.ptx_cp_async": (1,),
    "tl.ldmatrix": (1,),
    "tl.mma": (2, 3),
    "tl.mma_sp": (2, 3, 4),
    "tl.atomic_add_vec": (1,),
    **{f"tl.ldg{bits}": (0,) for bits in (32, 64, 128, 256)},
}


def written_buffers(func: T.PrimFunc) -> set[ir.Var]:
    """The buffers that ``func`` may write; one whose address goes elsewhere counts."""
    written: set[ir.Var] = set()
    read_only: list[Any] = []
    addresses: list[Any] = []

    def on_call(call: ir.Call) -> None:
        name = call.op.name if isinstance(call.op, ir.Op) else ""
        if name == "tirx.address_of":
            addresses.append(call)
        elif name == "tirx.buffer_data":
            written.add(call.args[0])
        elif name in _SOURCES:
            read_only.extend(call.args[i] for i in _SOURCES[name])
        elif call.op.same_as(ELEMENT_ATOMIC) and call.attrs.kind != "load":
            written.add(call.args[0].source)

    def on_store(store: T.BufferStore) -> None:
        written.add(store.buffer)

    structural_walk(func.body, [(T.BufferStore, on_store), (ir.Call, on_call)])
    for call in addresses:
        if not any(call.same_as(source) for source in read_only):
            target = call.args[0]
            written.add(target.source if isinstance(target, ir.TensorLoad) else target)
    return written


def used_variables(func: T.PrimFunc) -> set[ir.Var]:
    """Scalar variables that are read somewhere; a loop does not read its own."""
    used: set[ir.Var] = set()
    bound: dict[ir.Var, int] = {}

    def on_var(var: ir.Var) -> None:
        if isinstance(var.ty, ir.PrimType):
            bound[var] = bound.get(var, 0) + 1

    def on_loop(loop: T.For) -> None:
        bound[loop.loop_var] = bound.get(loop.loop_var, 0) - 1

    structural_walk(func.body, [(ir.Var, on_var), (T.For, on_loop)])
    used.update(var for var, count in bound.items() if count > 0)
    return used


def operations(func: T.PrimFunc) -> set[str]:
    """Names of the IR operators that ``func`` calls."""
    found: set[str] = set()

    def on_call(call: ir.Call) -> None:
        if isinstance(call.op, ir.Op):
            found.add(str(call.op.name))

    structural_walk(func.body, (ir.Call, on_call))
    return found


def imported_sources(func: T.PrimFunc) -> list[str]:
    """Text that ``T.import_source`` and preludes put before the kernel, each once, in order."""
    found: dict[str, None] = {}

    def on_attr(attr: T.AttrStmt) -> None:
        if attr.attr_key == "pragma_import_c":
            found[str(attr.value.value)] = None

    def on_loop(loop: T.For) -> None:
        if "pragma_import_c" in loop.annotations:
            found[str(loop.annotations["pragma_import_c"])] = None

    structural_walk(func.body, [(T.AttrStmt, on_attr), (T.For, on_loop)])
    return list(found)[::-1]


def foreign_source(func: T.PrimFunc) -> str | None:
    """The CUDA text that a launch gives for its kernel."""
    found: list[str] = []

    def on_call(call: ir.Call) -> None:
        if isinstance(call.op, ir.Op) and call.op.name == "tl.CUDASourceCodeKernel":
            found.append(str(call.args[0].value))

    structural_walk(func.body, (ir.Call, on_call))
    return found[0] if found else None
