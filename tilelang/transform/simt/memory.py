"""What a statement of a thread program reads and writes in memory that threads share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_mutate

from tilelang.ir.expr import is_buffer

__all__ = ["Touch", "is_shared", "touches_of"]

_POINTER_MODES = {
    "tl.vec_copy": ("w", "r"),
    "tl.vec_zero": ("w",),
    "tl.atomic_add_vec": ("a", "r"),
    "tl.cp_async": ("w", "r"),
    "tl.ldmatrix": ("w", "r"),
    "tl.mma": ("", "rw", "r", "r"),
}
_ATOMIC = ("tl.atomic", "tl.reducer_update")


@dataclass(frozen=True)
class Touch:
    """One access: the buffer, ``"r"``, ``"w"`` or ``"a"`` (atomic), and the indices.

    ``indices`` is None where they are not known. ``place`` are the indices as they are written, for
    accesses in the code of single threads.
    """

    buffer: ir.Var
    mode: str
    indices: tuple[ir.Expr, ...] | None
    span: ir.Span | None = None
    place: tuple[ir.Expr, ...] | None = None

    def conflicts(self, other: Touch) -> bool:
        """Whether the order of the two matters, if they meet in one place."""
        return not (self.mode == other.mode and self.mode in "ra")


def is_shared(buffer: ir.Var) -> bool:
    """Whether ``buffer`` lies in shared memory."""
    return str(buffer.scope()).startswith("shared")


def touches_of(root: Any) -> list[Touch]:
    """Accesses to shared and global memory below ``root``."""
    found: list[Touch] = []

    def add(buffer: Any, mode: str, indices: Any, span: Any) -> None:
        if is_buffer(buffer) and (is_shared(buffer) or str(buffer.scope()) == "global"):
            for one in mode:
                found.append(Touch(buffer, one, indices, span))

    def on_load(load: ir.TensorLoad, mutator: Any) -> Any:
        add(load.source, "r", tuple(load.indices), load.span)
        return mutator.default_mutate(load)

    def on_store(store: T.BufferStore, mutator: Any) -> Any:
        add(store.buffer, "w", tuple(store.indices), store.span)
        return mutator.default_mutate(store)

    def on_call(call: ir.Call, mutator: Any) -> Any:
        name = call.op.name if isinstance(call.op, ir.Op) else ""
        if name in _ATOMIC:
            target = call.args[0]
            add(target.source, "a", tuple(target.indices), call.span)
            for value in (*target.indices, *call.args[1:]):
                mutator.mutate(value)
            return call
        if name in _POINTER_MODES:
            for arg, mode in zip(
                call.args, _pad(_POINTER_MODES[name], len(call.args)), strict=True
            ):
                pointed = _pointed(arg)
                if pointed is None or not mode:
                    mutator.mutate(arg)
                else:
                    add(pointed[0], mode, pointed[1], call.span)
                    for index in pointed[1] or ():
                        mutator.mutate(index)
            return call
        pointed = _pointed(call)
        if pointed is not None:  # an address may be used in any way
            add(pointed[0], "rw", None, call.span)
            return call
        return mutator.default_mutate(call)

    structural_mutate(
        root, [(ir.TensorLoad, on_load), (T.BufferStore, on_store), (ir.Call, on_call)]
    )
    return found


def _pad(modes: Iterable[str], count: int) -> list[str]:
    given = list(modes)
    return given + [""] * (count - len(given))


def _pointed(arg: Any) -> tuple[ir.Var, tuple[ir.Expr, ...] | None] | None:
    """The buffer and indices that an address expression points to."""
    if not isinstance(arg, ir.Call) or not isinstance(arg.op, ir.Op):
        return None
    if arg.op.name == "tirx.address_of":
        target = arg.args[0]
        if isinstance(target, ir.TensorLoad):
            return target.source, tuple(target.indices)
        return (target, None) if is_buffer(target) else None
    if arg.op.name == "tirx.buffer_data":
        return arg.args[0], None
    return None
