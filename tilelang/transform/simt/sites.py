"""The places of a kernel that say something about where tiles live, in program order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_mutate

from tilelang.ir.op import TileCall
from tilelang.ir.op.reducer import SCOPE_PREFIX
from tilelang.layout import Fragment, Layout
from tilelang.transform.simt.nest import Access, Nest, accesses_of, nest_of

__all__ = ["Sites", "collect_sites", "in_registers", "is_fragment"]


def is_fragment(buffer: Any) -> bool:
    """Whether ``buffer`` is a tile that the threads of a block hold together."""
    return str(buffer.scope()) == "local.fragment"


def in_registers(buffer: Any) -> bool:
    """Whether ``buffer`` is distributed over registers: a fragment or a reducer."""
    scope = str(buffer.scope())
    return scope == "local.fragment" or scope.startswith(SCOPE_PREFIX)


@dataclass
class Sites:
    """What inference looks at.

    Parameters
    ----------
    nests : list of Nest
        In the order in which a mutator meets them.
    calls : list of TileCall
        Tile ops other than element-wise ones.
    plain : list of Access
        Accesses of fragments outside of both.
    given : dict of buffer to Layout
        From ``T.annotate_layout``.
    views : list of (view, source)
        Other names of the same storage.
    order : list of Nest or TileCall
    """

    nests: list[Nest] = field(default_factory=list)
    calls: list[TileCall] = field(default_factory=list)
    plain: list[Access] = field(default_factory=list)
    given: dict[ir.Var, Layout] = field(default_factory=dict)
    views: list[tuple[ir.Var, ir.Var]] = field(default_factory=list)
    order: list[Nest | TileCall] = field(default_factory=list)

    def layout_of(self, buffer: ir.Var) -> Layout | None:
        """The user's layout of a buffer that is no fragment."""
        layout = self.given.get(buffer)
        return None if isinstance(layout, Fragment) else layout


def collect_sites(body: T.Stmt) -> Sites:
    """Collect the sites of a kernel."""
    sites = Sites()

    def on_for(loop: T.For, mutator: Any) -> Any:
        nest = nest_of(loop)
        if nest is None:
            return mutator.default_mutate(loop)
        sites.nests.append(nest)
        sites.order.append(nest)
        return loop

    def on_evaluate(stmt: T.Evaluate, mutator: Any) -> Any:
        call = TileCall.of(stmt)
        if call is None:
            return mutator.default_mutate(stmt)
        sites.calls.append(call)
        sites.order.append(call)
        return stmt

    def on_attr(stmt: T.AttrStmt, mutator: Any) -> Any:
        if stmt.attr_key == "tl.layout":
            buffer, layout = stmt.node
            sites.given[buffer] = layout
        return mutator.default_mutate(stmt)

    def on_store(store: T.BufferStore, mutator: Any) -> Any:
        if in_registers(store.buffer):
            sites.plain.append(Access(store.buffer, tuple(store.indices), True, store.span))
        return mutator.default_mutate(store)

    def on_load(load: ir.TensorLoad, mutator: Any) -> Any:
        if in_registers(load.source):
            sites.plain.append(Access(load.source, tuple(load.indices), False, load.span))
        return mutator.default_mutate(load)

    def on_declare(stmt: T.DeclBuffer, mutator: Any) -> Any:
        source = view_of(stmt)
        if source is not None:
            sites.views.append((stmt.buffer, source))
        return mutator.default_mutate(stmt)

    structural_mutate(
        body,
        [
            (T.For, on_for),
            (T.Evaluate, on_evaluate),
            (T.AttrStmt, on_attr),
            (T.BufferStore, on_store),
            (ir.TensorLoad, on_load),
            (T.DeclBuffer, on_declare),
        ],
    )
    return sites


def view_of(stmt: T.DeclBuffer) -> ir.Var | None:
    """The buffer that ``stmt`` gives another name to, or None."""
    data = stmt.data
    if (
        isinstance(data, ir.Call)
        and isinstance(data.op, ir.Op)
        and data.op.name == "tirx.buffer_data"
    ):
        return data.args[0]
    return None


def nest_fragments(nest: Nest) -> list[Access]:
    """Accesses of ``nest`` to distributed tiles."""
    return [a for a in accesses_of(nest.root) if in_registers(a.buffer)]
