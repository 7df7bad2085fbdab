"""What a launch does with each tensor: reads, writes, both, or neither."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_walk

from tilelang.ir.expr import const_int, is_buffer
from tilelang.ir.op import ELEMENT_ATOMIC, REDUCER_UPDATE, TileCall

__all__ = ["record_accesses", "view_source"]

_ACCESS_MODES: dict[int | None, str] = {1: "r", 2: "w", 3: "rw"}
_Touch = Callable[[Any, str], None]


def view_source(data: Any) -> ir.Var | None:
    """The buffer or pointer whose storage an address lies in; None for a computed address."""
    if isinstance(data, ir.Var):
        return data
    name = data.op.name if isinstance(data, ir.Call) and isinstance(data.op, ir.Op) else ""
    if name == "tirx.address_of":
        return view_source(data.args[0].source)
    if name in ("tirx.buffer_data", "tirx.handle_add_byte_offset", "tirx.reinterpret"):
        return view_source(data.args[0])
    return None


def record_accesses(
    body: Any, sources: Mapping[ir.Var, ir.Var | None], found: dict[ir.Var, set[str]]
) -> None:
    """Add the modes (``"r"``, ``"w"``) in which ``body`` touches each buffer to ``found``.

    Parameters
    ----------
    sources : mapping
        Views declared outside of ``body`` and what they view; an access to a view counts for its
        source.
    """
    aliases: dict[ir.Var | None, ir.Var | None] = dict(sources)

    def on_view(view: T.DeclBuffer) -> None:
        aliases[view.buffer] = view_source(view.data)

    structural_walk(body, (T.DeclBuffer, on_view))

    def touch(buffer: ir.Var | None, mode: str) -> None:
        while buffer in aliases:
            buffer = aliases[buffer]
        if buffer is not None:
            found.setdefault(buffer, set()).update(mode)

    structural_walk(
        body,
        [
            (T.Evaluate, lambda stmt: _on_evaluate(stmt, touch)),
            (T.BufferStore, lambda stmt: touch(stmt.buffer, "w")),
            (ir.TensorLoad, lambda load: touch(load.source, "r")),
            (ir.Call, lambda call: _on_call(call, touch)),
        ],
    )


def _on_evaluate(stmt: T.Evaluate, touch: _Touch) -> None:
    call = TileCall.of(stmt)
    if call is not None:
        for mode in "rw":
            for region in call.regions(mode):
                touch(region.source, mode)


def _on_call(call: ir.Call, touch: _Touch) -> None:
    if call.op.same_as(ELEMENT_ATOMIC) or call.op.same_as(REDUCER_UPDATE):
        touch(call.args[0].source, "r" if call.attrs.kind == "load" else "rw")
        return
    name = call.op.name if isinstance(call.op, ir.Op) else ""
    if name == "tl.access_ptr":
        touch(call.args[0].source, _ACCESS_MODES.get(const_int(call.args[3]), "rw"))
    elif name != "tirx.buffer_data":  # a view, resolved through its declaration
        printed = TileCall.of(call) is None
        for arg in call.args:
            _on_argument(arg, name, printed, touch)


def _on_argument(arg: Any, name: str, printed: bool, touch: _Touch) -> None:
    if is_buffer(arg):
        touch(arg, "rw")
    elif isinstance(arg, ir.TensorLoad) and name == "tirx.address_of":
        touch(arg.source, "rw")
    elif isinstance(arg, ir.TensorRegion) and printed:
        touch(arg.source, "r")
