"""Launches: the blocks of a grid, one after another, and their threads if the kernel names them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm_ffi import VisitInterrupt, structural_walk

from tilelang.errors import ArgumentValueError
from tilelang.interpreter.domain import Domain
from tilelang.interpreter.machine import Machine
from tilelang.interpreter.nodes import Fn
from tilelang.ir import intrin

__all__ = ["Launch", "launch", "uses_threads"]


@dataclass(frozen=True)
class Launch:
    """The binding loops of one launch. Axes are numbered x, y, z."""

    blocks: dict[int, tuple[ir.Var, ir.Expr]] = field(default_factory=dict)
    threads: dict[int, tuple[ir.Var, ir.Expr]] = field(default_factory=dict)
    body: T.Stmt | None = None

    @staticmethod
    def of(c: Any, loop: T.For) -> Launch:
        """Decode the nest of thread-binding loops that starts at ``loop``."""
        blocks: dict[int, tuple[ir.Var, ir.Expr]] = {}
        threads: dict[int, tuple[ir.Var, ir.Expr]] = {}
        stmt: Any = loop
        while isinstance(stmt, T.For) and stmt.kind == T.ForKind.THREAD_BINDING:
            tag = str(stmt.thread_binding.thread_tag)
            axes = threads if tag.startswith("threadIdx") else blocks
            if tag.startswith(("threadIdx", "blockIdx")):
                axes["xyz".index(tag[-1])] = (c.var(stmt.loop_var), stmt.extent)
            stmt = stmt.body
        return Launch(blocks, threads, stmt)


def uses_threads(found: Launch) -> bool:
    """Whether the kernel names its threads, by index or by a construct that gives them values.

    If not, all threads do the same and are not told apart.
    """
    indices = {var for var, _ in found.threads.values()}

    def on_var(var: ir.Var) -> VisitInterrupt | None:
        return VisitInterrupt(var) if var in indices else None

    def on_call(call: ir.Call) -> VisitInterrupt | None:
        record = intrin.find(call)
        speaks = record is not None and record.lanes and record.result != "void"
        return VisitInterrupt(call) if speaks else None

    return structural_walk(found.body, [(ir.Var, on_var), (ir.Call, on_call)]) is not None


def launch(c: Any, loop: T.For) -> Fn:
    """The function of a launch: runs all blocks of the grid."""
    found = Launch.of(c, loop)
    grid = {axis: c.index(extent) for axis, (_, extent) in found.blocks.items()}
    block = {axis: c.index(extent) for axis, (_, extent) in found.threads.items()}
    c.index_vars.update(var for var, _ in (*found.blocks.values(), *found.threads.values()))
    c.thread_vars.update(var for var, _ in found.threads.values())
    body, threaded, span = c.stmt(found.body), uses_threads(found), loop.span

    def run(m: Machine) -> None:
        sizes = [int(grid[axis](m)) if axis in grid else 1 for axis in range(3)]
        extents = [int(block[axis](m)) if axis in block else 1 for axis in range(3)]
        if min(sizes) < 0 or min(extents) < 1:
            raise ArgumentValueError(f"a launch of grid {sizes} with {extents} threads", span)
        threads = math.prod(extents)
        shape = (threads,) if threaded else ()
        saved, host = m.block, m.domain
        for position in _positions(m, sizes):
            if grid:
                m.block = position[: max(grid) + 1]
            domain = Domain("threads" if threaded else "block", shape, host)
            m.returned = np.False_
            with m.within(domain):
                for axis, (var, _) in found.blocks.items():
                    m.assign(var, position[axis])
                linear = np.arange(threads)
                for axis, (var, _) in found.threads.items():
                    before = math.prod(extents[:axis])
                    m.assign(var, linear // before % extents[axis] if threaded else 0)
                body(m)
        m.block = saved

    return run


def _positions(m: Machine, sizes: list[int]) -> Iterator[tuple[int, ...]]:
    """The blocks, x fastest, in the order of the options."""
    order = m.options.block_order
    if order == "random":
        numbers = np.random.default_rng(m.options.seed).permutation(math.prod(sizes))
        for number in numbers.tolist():
            yield number % sizes[0], number // sizes[0] % sizes[1], number // sizes[0] // sizes[1]
        return
    ranges = [range(size) for size in reversed(sizes)]
    if order == "reverse":
        ranges = [r[::-1] for r in ranges]
    for position in itertools.product(*ranges):
        yield position[::-1]
