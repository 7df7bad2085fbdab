"""Tiles that are read although nothing ever writes them."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_walk

from tilelang.errors import SemanticError
from tilelang.ir.expr import is_buffer
from tilelang.ir.op import ELEMENT_ATOMIC, REDUCER_UPDATE, TileCall

__all__ = ["check_initialised"]

_CHECKED = ("shared", "local")
_ACCUMULATING = frozenset({"gemm", "gemm_sp", "reduce", "atomic"})


def check_initialised(func: T.PrimFunc) -> None:
    """Check that every tile that is read is written somewhere.

    The order is not looked at: the interpreter checks element by element as it runs.

    Raises
    ------
    SemanticError
        At the first read of a tile without any write.
    """
    allocated: set[ir.Var] = set()
    written: set[ir.Var] = set()
    reads: list[tuple[ir.Var, Any]] = []

    def on_evaluate(stmt: T.Evaluate) -> None:
        call = TileCall.of(stmt)
        if call is None:
            return
        written.update(region.source for region in _filled(call))
        reads.extend((region.source, call.span) for region in call.regions("r"))

    def on_call(call: ir.Call) -> None:
        if call.op.same_as(ELEMENT_ATOMIC) or call.op.same_as(REDUCER_UPDATE):
            written.add(call.args[0].source)
            return
        # An address handed out may be written through.
        for arg in call.args:
            if is_buffer(arg):
                written.add(arg)
            elif (
                isinstance(arg, (ir.TensorLoad, ir.TensorRegion))
                and TileCall.of(call) is None
                and _takes_address(call)
            ):
                written.add(arg.source)

    structural_walk(
        func.body,
        [
            (T.AllocBuffer, lambda s: allocated.add(s.buffer)),
            (T.BufferStore, lambda s: written.add(s.buffer)),
            (ir.TensorLoad, lambda load: reads.append((load.source, load.span))),
            (T.Evaluate, on_evaluate),
            (ir.Call, on_call),
        ],
    )
    for buffer, span in reads:
        if buffer in allocated and buffer not in written and buffer.scope().startswith(_CHECKED):
            raise SemanticError(
                f"{buffer.name} (scope {buffer.scope()}) is read but nothing ever writes it; "
                f"T.clear({buffer.name}), fill it or copy into it first",
                span,
            )


def _filled(call: TileCall) -> list[ir.TensorRegion]:
    """What a tile operation writes without needing what was there before."""
    written = call.regions("w")
    overwrites = any(getattr(call.attrs, flag, False) for flag in ("clear", "clear_accum"))
    if overwrites or call.name not in _ACCUMULATING:
        return written
    held = {region.source for region in call.regions("r")}
    return [region for region in written if region.source not in held]


def _takes_address(call: ir.Call) -> bool:
    return isinstance(call.op, ir.Op) and not call.op.name.startswith("prim.if_then_else")
