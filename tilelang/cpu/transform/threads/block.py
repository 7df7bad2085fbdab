"""The state of a block whose threads become loops, and small pieces of its code."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.ir.expr import const_int, dtype_of

__all__ = ["Block", "LoopFrame", "flag", "for_threads", "thread_indices"]

_ALIGNMENT = 64


@dataclass(frozen=True)
class LoopFrame:
    """A loop that threads leave one by one.

    ``run`` says which threads are still in it, ``iteration`` (at position ``depth`` of the masks)
    which of them have not left the present iteration.
    """

    depth: int
    run: ir.Var
    iteration: ir.Var


@dataclass
class Block:
    """One launch: its thread loops, its per-thread storage, and who executes what is lowered.

    Parameters
    ----------
    loops, extents
        The thread loops of the launch and their constant extents.
    lower : callable
        ``lower(block, stmt)``: the statements that run ``stmt`` for all threads.
    expanded : dict
        Per-thread buffer to its array with a leading thread dimension.
    binds : dict
        Temporary to the array of its values, one a thread; a pointer's values are addresses.
    uniform : set
        Temporaries that have the same value in all threads.
    addresses : dict
        View at an address that depends on the thread, to the array of addresses.
    masks : list
        Arrays of bool, one a nested divergence; the last one says which threads execute.
    frames : list
        Loops around, innermost last; None for one that all threads leave together.
    """

    loops: list[T.For]
    extents: list[int]
    lower: Callable[[Block, Any], list[T.Stmt]]
    expanded: dict[ir.Var, ir.Var] = field(default_factory=dict)
    binds: dict[ir.Var, ir.Var] = field(default_factory=dict)
    uniform: set[ir.Var] = field(default_factory=set)
    addresses: dict[ir.Var, ir.Var] = field(default_factory=dict)
    masks: list[ir.Var] = field(default_factory=list)
    frames: list[LoopFrame | None] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Threads of the block."""
        return math.prod(self.extents)

    @property
    def thread_vars(self) -> list[ir.Var]:
        """The variables of the thread loops."""
        return [loop.loop_var for loop in self.loops]

    def array(self, name: str, dtype: str, shape: list[Any] | None = None) -> ir.Var:
        """Declare storage with one ``shape`` a thread."""
        return T.decl_buffer(
            [self.count, *(shape or [])],
            dtype,
            name,
            scope="local",
            layout=None,
            data_alignment=_ALIGNMENT,
        )

    def active(self, t: ir.Expr) -> ir.Expr:
        """Whether thread ``t`` executes what is lowered now."""
        return self.masks[-1][t] if self.masks else T.const(True, "bool")

    def linear_thread(self) -> ir.Expr:
        """The block-linear thread number in terms of the thread variables, x fastest."""
        by_axis = _by_axis(self)
        total: ir.Expr | None = None
        for axis in "zyx":
            if axis in by_axis:
                loop = by_axis[axis]
                total = loop.loop_var if total is None else total * loop.extent + loop.loop_var
        assert total is not None
        return total


def _by_axis(block: Block) -> dict[str, T.For]:
    return {str(loop.thread_binding.thread_tag)[-1]: loop for loop in block.loops}


def thread_indices(block: Block, t: ir.Expr) -> dict[ir.Var, ir.Expr]:
    """Thread variable to its value for block-linear thread ``t``."""
    by_axis = _by_axis(block)
    rest, result = t, {}
    present = [axis for axis in "xyz" if axis in by_axis]
    for position, axis in enumerate(present):
        loop = by_axis[axis]
        extent, dtype = const_int(loop.extent) or 1, dtype_of(loop.loop_var)
        if extent == 1:
            result[loop.loop_var] = T.const(0, dtype)
            continue
        later = (const_int(by_axis[a].extent) or 1 for a in present[position + 1 :])
        last = all(other == 1 for other in later)
        index = rest if last else T.floormod(rest, T.const(extent, "int32"))
        rest = T.floordiv(rest, T.const(extent, "int32"))
        result[loop.loop_var] = index if dtype == "int32" else index.astype(dtype)
    return result


def for_threads(block: Block, body: Callable[[ir.Var], T.Stmt], masked: bool = False) -> T.Stmt:
    """A loop over the threads; with ``masked`` over those that execute."""
    t = T.Var("t", "int32")
    inner = body(t)
    if masked and block.masks:
        inner = T.IfThenElse(block.masks[-1][t], inner, None)
    return T.For(t, 0, block.count, T.ForKind.SERIAL, inner)


def flag(name: str, dtype: str = "bool") -> ir.Var:
    """Declare one value for the whole block."""
    return T.decl_buffer((1,), dtype, name, scope="local", layout=None)
