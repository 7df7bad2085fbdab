"""Parallel nests: the loops of one ``T.Parallel`` or element-wise op, and what they access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_walk

from tilelang.ir.expr import const_int

__all__ = ["Access", "Nest", "accesses_of", "index_axes", "nest_of"]

_PARALLEL = "tl.parallel"


@dataclass(frozen=True)
class Access:
    """One load or store of a buffer."""

    buffer: ir.Var
    indices: tuple[ir.Expr, ...]
    is_write: bool
    span: ir.Span | None = None

    @property
    def scope(self) -> str:
        """Storage scope of the buffer."""
        return str(self.buffer.scope())


@dataclass(frozen=True)
class Nest:
    """A parallel nest: its loops, outermost first, and the statement they run.

    Iterations may run in any order and at once.
    """

    root: T.For
    loops: tuple[T.For, ...]
    body: T.Stmt

    @property
    def variables(self) -> list[ir.Var]:
        """Loop variables, outermost first."""
        return [loop.loop_var for loop in self.loops]

    @property
    def extents(self) -> list[int | None]:
        """Extents, None where one is no constant."""
        return [const_int(loop.extent) for loop in self.loops]

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Extents if all are constant."""
        extents = self.extents
        return None if any(e is None for e in extents) else tuple(e or 0 for e in extents)

    def note(self, key: str) -> Any:
        """An annotation of the nest, or None."""
        return self.root.annotations.get(key)


def nest_of(stmt: Any) -> Nest | None:
    """The nest that ``stmt`` is the root of, or None."""
    if not isinstance(stmt, T.For) or _PARALLEL not in stmt.annotations:
        return None
    loops = [stmt]
    for _ in range(int(stmt.annotations[_PARALLEL]) - 1):
        loops.append(loops[-1].body)
    return Nest(stmt, tuple(loops), loops[-1].body)


def accesses_of(root: Any) -> list[Access]:
    """Every load and store below ``root``, in the order of a walk."""
    found: list[Access] = []

    def on_load(load: ir.TensorLoad) -> None:
        found.append(Access(load.source, tuple(load.indices), False, load.span))

    def on_store(store: T.BufferStore) -> None:
        found.append(Access(store.buffer, tuple(store.indices), True, store.span))

    structural_walk(root, [(ir.TensorLoad, on_load), (T.BufferStore, on_store)])
    return found


def index_axes(indices: Sequence[ir.Expr], variables: Sequence[ir.Var]) -> dict[int, int] | None:
    """Which dimension each loop variable indexes alone: ``{axis of the nest: dimension}``.

    None if an index is neither one of ``variables`` nor the constant 0, or one appears twice.
    """
    axes: dict[int, int] = {}
    for dim, index in enumerate(indices):
        if const_int(index) == 0:
            continue
        for axis, var in enumerate(variables):
            if isinstance(index, ir.Var) and index.same_as(var):
                if axis in axes:
                    return None
                axes[axis] = dim
                break
        else:
            return None
    return axes
