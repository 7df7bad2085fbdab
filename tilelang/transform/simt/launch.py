"""The launch around a kernel: its block and thread loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.errors import LoweringError
from tilelang.ir.expr import const_int

__all__ = ["Launch", "launch_of"]

_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Launch:
    """The thread-bound loops around a kernel, outermost first, and what they enclose.

    Parameters
    ----------
    loops : tuple of For
    body : Stmt
    block : tuple of int
        Threads along x, y and z.
    thread : Expr
        The number of the thread in its block.
    """

    loops: tuple[T.For, ...]
    body: T.Stmt
    block: tuple[int, int, int]
    thread: ir.Expr

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    def around(self, body: T.Stmt) -> T.Stmt:
        """The same launch with another body."""
        for loop in reversed(self.loops):
            body = T.For(
                loop.loop_var, loop.min, loop.extent, loop.kind, body, loop.thread_binding,
                loop.annotations, loop.step, loop.span,
            )  # fmt: skip
        return body

    def variables(self, tag: str) -> list[ir.Var]:
        """The loop variables bound to ``blockIdx`` or ``threadIdx``."""
        return [
            loop.loop_var
            for loop in self.loops
            if str(loop.thread_binding.thread_tag).startswith(tag)
        ]


def launch_of(func: T.PrimFunc) -> Launch:
    """The launch of a device function.

    Raises
    ------
    LoweringError
        If a thread extent is no positive constant.
    """
    loops: list[T.For] = []
    body: Any = func.body
    while isinstance(body, T.For) and body.kind == T.ForKind.THREAD_BINDING:
        loops.append(body)
        body = body.body
    extents = dict.fromkeys(_AXES, 1)
    variables: dict[str, ir.Var] = {}
    for loop in loops:
        tag = str(loop.thread_binding.thread_tag)
        if not tag.startswith("threadIdx."):
            continue
        extent = const_int(loop.extent)
        if extent is None or extent < 1:
            raise LoweringError(
                f"the number of threads along {tag[-1]} must be a positive constant, found "
                f"{loop.extent}",
                loop.span,
            )
        extents[tag[-1]], variables[tag[-1]] = extent, loop.loop_var
    thread: Any = T.const(0, "int32")
    stride = 1
    for axis in _AXES:
        if extents[axis] > 1:
            term = variables[axis] * stride if stride > 1 else variables[axis]
            thread = term if stride == 1 else thread + term
        stride *= extents[axis]
    return Launch(tuple(loops), body, (extents["x"], extents["y"], extents["z"]), thread)
