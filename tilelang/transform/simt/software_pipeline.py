"""Software pipelining: copies from global to shared memory run ahead of the computation.

A loop with ``n`` stages keeps ``n`` versions of every tile it loads. Iteration ``k`` first waits
for its own tiles, then starts the copies of iteration ``k + n - 1``, then computes. The version
that those copies overwrite was read in iteration ``k - 1``, and the barrier behind the wait orders
the two. Any trip count is right: a copy ahead of the end is not started, and its group is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_mutate, structural_walk

from tilelang.ir import intrin
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.intrin import simt
from tilelang.ir.op import TileCall
from tilelang.layout import Fragment
from tilelang.transform.simt.access_map import mentions
from tilelang.transform.simt.expand import with_annotations
from tilelang.transform.simt.memory import is_shared, touches_of
from tilelang.transform.simt.nest import nest_of
from tilelang.transform.simt.sites import view_of

__all__ = ["ASYNC_GROUPED", "pipeline_loops"]

#: Value of the note ``tl.async`` of a copy whose group is closed by someone else.
ASYNC_GROUPED = 2


def pipeline_loops(func: T.PrimFunc) -> T.PrimFunc:
    """Pipeline every loop that asks for at least two stages and loads tiles at its top level.

    Before::

        for k in range(n):
            S[...] = A[k]       # a copy
            compute(S)

    After, for two stages::

        S'[0] = A[0]; commit
        for k in range(n):
            wait(0); barrier
            if k + 1 < n: S'[(k + 1) % 2] = A[k + 1]
            commit
            compute(S'[k % 2])
    """
    state = _State(func)
    body = structural_mutate(func.body, [(T.For, lambda s, m: _on_for(state, s, m))])
    if not state.versions:
        return func
    renamed = {old: new for old, (new, _) in state.versions.items()}

    def on_alloc(stmt: T.AllocBuffer) -> T.Stmt:
        new = renamed.get(stmt.buffer)
        return stmt if new is None else T.AllocBuffer(new, span=stmt.span)

    def on_attr(stmt: T.AttrStmt) -> T.Stmt:
        if stmt.attr_key != "tl.layout" or stmt.node[0] not in renamed:
            return stmt
        buffer, layout = stmt.node
        stages = const_int(renamed[buffer].shape[0]) or 1
        expanded = layout if isinstance(layout, Fragment) else layout.expand([stages])
        return T.AttrStmt(
            [renamed[buffer], expanded], stmt.attr_key, stmt.value, stmt.body, stmt.span
        )

    return func.with_body(structural_map(body, [(T.AllocBuffer, on_alloc), (T.AttrStmt, on_attr)]))


@dataclass
class _State:
    func: T.PrimFunc
    versions: dict[ir.Var, tuple[ir.Var, Any]] = field(default_factory=dict)
    viewed: list[ir.Var] = field(default_factory=list)
    uses: dict[ir.Var, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        def on_view(stmt: T.DeclBuffer) -> None:
            source = view_of(stmt)
            if source is not None:
                self.viewed += [source, stmt.buffer]

        structural_walk(self.func.body, (T.DeclBuffer, on_view))
        self.uses = _uses(self.func.body)


def _uses(root: Any) -> dict[ir.Var, int]:
    """How often every shared buffer is touched, by accesses and by operands of tile ops."""
    counts: dict[ir.Var, int] = {}

    def add(buffer: ir.Var) -> None:
        if is_shared(buffer):
            counts[buffer] = counts.get(buffer, 0) + 1

    structural_walk(
        root,
        [
            (ir.TensorLoad, lambda e: add(e.source)),
            (T.BufferStore, lambda s: add(s.buffer)),
            (ir.TensorRegion, lambda r: add(r.source)),
        ],
    )
    return counts


@dataclass(frozen=True)
class _Parts:
    """A loop body taken apart: what runs ahead, and the rest. ``binds`` are needed by both."""

    copies: tuple[T.For, ...]
    binds: tuple[T.Bind, ...]
    rest: tuple[T.Stmt, ...]
    tiles: tuple[ir.Var, ...]


def _on_for(state: _State, loop: T.For, mutator: Any) -> Any:
    inner = mutator.default_mutate(loop)
    stages = _stages(inner)
    if stages < 2 or _leaves(inner.body):
        return inner
    parts = _take_apart(state, inner)
    if not parts.copies:
        return inner
    return _pipelined(state, inner, parts, stages)


def _stages(loop: T.For) -> int:
    if loop.kind != T.ForKind.SERIAL or (loop.step is not None and const_int(loop.step) != 1):
        return 0
    stages = const_int(loop.annotations.get("num_stages"))
    explicit = loop.annotations.get("tl_pipeline_stage")
    if not stages and explicit is not None:
        stages = max((int(s) for s in explicit), default=0) + 1
    return stages or 0


def _leaves(body: Any) -> bool:
    found: list[Any] = []
    structural_walk(body, [(T.Break, found.append), (T.Continue, found.append)])
    return bool(found)


def _statements(body: T.Stmt) -> list[T.Stmt]:
    if isinstance(body, T.SeqStmt):
        return [s for child in body.seq for s in _statements(child)]
    return [body]


def _take_apart(state: _State, loop: T.For) -> _Parts:
    """Find the copies that may run ahead.

    A copy may if it fills a whole shared tile from global memory that the loop does not write, and
    nothing else writes the tile or reads it before, or outside of the loop.
    """
    statements = _statements(loop.body)
    written = {t.buffer for s in statements for t in touches_of(s) if t.mode != "r"}
    written |= _written_by_ops(loop.body)
    inside = _uses(loop.body)
    binds = [s for s in statements if isinstance(s, T.Bind)]
    movable = _movable_binds(binds, written)
    copies: list[T.For] = []
    tiles: list[ir.Var] = []
    seen: set[ir.Var] = set()
    for statement in statements:
        tile = _filled_tile(statement, written, movable, binds)
        alone = (
            tile is not None
            and tile not in seen
            and tile not in state.versions
            and not any(tile.same_as(v) for v in state.viewed)
            and inside.get(tile) == state.uses.get(tile)
            and _writes_of(loop.body, tile) == 1
        )
        if tile is not None and alone and isinstance(statement, T.For):
            copies.append(statement)
            tiles.append(tile)
        seen.update(t.buffer for t in touches_of(statement))
        seen.update(_operands(statement))
    needed = [b for b in binds if b in movable and _needed(b, copies, movable)]
    rest = [s for s in statements if not any(s.same_as(c) for c in copies)]
    return _Parts(tuple(copies), tuple(needed), tuple(rest), tuple(tiles))


def _needed(bind: T.Bind, copies: list[T.For], movable: list[T.Bind]) -> bool:
    users = [*copies, *[b.value for b in movable]]
    return any(mentions(user, [bind.var]) for user in users)


def _written_by_ops(root: Any) -> set[ir.Var]:
    found: set[ir.Var] = set()

    def on_evaluate(stmt: T.Evaluate) -> None:
        call = TileCall.of(stmt)
        if call is not None:
            found.update(region.source for region in call.regions("w"))

    structural_walk(root, (T.Evaluate, on_evaluate))
    return found


def _operands(root: Any) -> set[ir.Var]:
    found: set[ir.Var] = set()
    structural_walk(root, (ir.TensorRegion, lambda r: found.add(r.source)))
    return found


def _writes_of(root: Any, tile: ir.Var) -> int:
    count = sum(1 for t in touches_of(root) if t.mode != "r" and t.buffer.same_as(tile))
    return count + sum(1 for buffer in _written_by_ops(root) if buffer.same_as(tile))


def _movable_binds(binds: list[T.Bind], written: set[ir.Var]) -> list[T.Bind]:
    """Bindings that depend on the loop variable and unwritten global memory alone."""
    kept: list[T.Bind] = []
    for bind in binds:
        others = [b.var for b in binds if not any(b.same_as(k) for k in kept)]
        pure = _reads_only_global(bind.value, written) and not mentions(bind.value, others)
        if pure and not _has_effect(bind.value):
            kept.append(bind)
    return kept


def _has_effect(value: Any) -> bool:
    found: list[Any] = []

    def on_call(call: ir.Call) -> None:
        name = call.op.name if isinstance(call.op, ir.Op) else ""
        if not name.startswith("prim.") and name not in _PURE_CALLS:
            found.append(call)

    structural_walk(value, (ir.Call, on_call))
    return bool(found)


_PURE_CALLS = ("tirx.reinterpret", "tirx.floor", "tirx.trunc")


def _reads_only_global(root: Any, written: set[ir.Var]) -> bool:
    bad: list[Any] = []

    def on_load(load: ir.TensorLoad) -> None:
        if str(load.source.scope()) != "global" or load.source in written:
            bad.append(load)

    structural_walk(root, (ir.TensorLoad, on_load))
    return not bad


def _filled_tile(
    statement: Any, written: set[ir.Var], movable: list[T.Bind], binds: list[T.Bind]
) -> ir.Var | None:
    """The shared tile that a copy nest fills whole from global memory, or None."""
    nest = nest_of(statement)
    if nest is None or nest.note("tl.copy") is None or const_int(nest.note("tl.async")):
        return None
    store = nest.body
    if not isinstance(store, T.BufferStore) or not is_shared(store.buffer):
        return None
    stuck = [b.var for b in binds if not any(b.same_as(m) for m in movable)]
    if mentions(statement, stuck) or not _reads_only_global(store, written - {store.buffer}):
        return None
    if not any(True for t in touches_of(store.value)):
        return None
    for index, size in zip(store.indices, store.buffer.shape, strict=True):
        extent = const_int(size)
        if extent == 1 and const_int(index) == 0:
            continue
        loop = next((x for x in nest.loops if x.loop_var.same_as(index)), None)
        whole = loop is not None and const_int(loop.extent) == extent and const_int(loop.min) == 0
        if not whole:
            return None
    return store.buffer


def _pipelined(state: _State, loop: T.For, parts: _Parts, stages: int) -> T.Stmt:
    k, dtype = loop.loop_var, dtype_of(loop.loop_var)
    versions: dict[ir.Var, ir.Var] = {}
    for tile in parts.tiles:
        versions[tile] = T.decl_buffer(
            [stages, *tile.shape], tile.ty.dtype, str(tile.name), scope=str(tile.scope()),
            layout=None, data_alignment=tile.ty.data_alignment, span=tile.span,
        )  # fmt: skip
        state.versions[tile] = (versions[tile], stages)

    def number(step: Any) -> ir.Expr:
        """The version of iteration ``step``, counted from the loop's start."""
        relative = step if const_int(loop.min) == 0 else step - loop.min
        return T.floormod(relative, T.const(stages, dtype))

    def copies_of(step: Any, version: Any) -> list[T.Stmt]:
        result: list[T.Stmt] = []
        fresh: dict[ir.Var, Any] = {k: step}
        for bind in parts.binds:
            var = T.Var(f"{bind.var.name}_next", bind.var.ty)
            result.append(T.Bind(var, _replace(bind.value, fresh), bind.span))
            fresh[bind.var] = var
        for copy in parts.copies:
            moved = _with_versions(_fresh_loops(_replace(copy, fresh)), versions, version)
            notes = {**moved.annotations, "tl.async": ASYNC_GROUPED}
            result.append(with_annotations(moved, notes))
        return result

    end = loop.min + loop.extent
    prologue: list[T.Stmt] = []
    for ahead in range(stages - 1):
        step = loop.min + ahead
        group = T.stmt_seq(*copies_of(step, T.const(ahead, dtype)))
        extent = const_int(loop.extent)
        if extent is None or ahead >= extent:
            group = T.IfThenElse(T.LT(step, end), group, None, loop.span)
        prologue += [group, simt.call("cp_async_commit", span=loop.span)]
    ahead = k + (stages - 1)
    sync = intrin.get("sync_threads")
    body: list[T.Stmt] = [
        simt.call("cp_async_wait", stages - 2, span=loop.span),
        T.Evaluate(ir.Call(sync.op, [], ret_ty="void", span=loop.span), loop.span),
        T.IfThenElse(
            T.LT(ahead, end), T.stmt_seq(*copies_of(ahead, number(ahead))), None, loop.span
        ),
        simt.call("cp_async_commit", span=loop.span),
    ]
    body += [_with_versions(s, versions, number(k)) for s in parts.rest]
    notes = {key: v for key, v in loop.annotations.items() if not _is_pipeline_note(str(key))}
    main = T.For(
        k, loop.min, loop.extent, loop.kind, T.stmt_seq(*body), None, notes, loop.step, loop.span
    )
    return T.stmt_seq(*prologue, main)


def _is_pipeline_note(key: str) -> bool:
    return key == "num_stages" or key.startswith("tl_pipeline_")


def _replace(node: Any, values: Mapping[ir.Var, Any]) -> Any:
    return structural_map(node, (ir.Var, lambda v: values.get(v, v)))


def _fresh_loops(nest: T.For) -> T.For:
    """The nest with loop variables of its own: the same copy stands in several places."""
    fresh: dict[ir.Var, ir.Var] = {}

    def on_for(loop: T.For) -> None:
        fresh[loop.loop_var] = T.Var(str(loop.loop_var.name), loop.loop_var.ty)

    structural_walk(nest, (T.For, on_for))
    return structural_map(nest, (ir.Var, lambda v: fresh.get(v, v)))


def _with_versions(root: Any, versions: Mapping[ir.Var, ir.Var], version: Any) -> Any:
    """Let every access and operand of a versioned tile name its version."""

    def on_load(load: ir.TensorLoad) -> Any:
        new = versions.get(load.source)
        return load if new is None else T.BufferLoad(new, [version, *load.indices], load.span)

    def on_store(store: T.BufferStore) -> Any:
        new = versions.get(store.buffer)
        if new is None:
            return store
        return T.BufferStore(new, store.value, [version, *store.indices], store.span)

    def on_region(region: ir.TensorRegion) -> Any:
        new = versions.get(region.source)
        if new is None:
            return region
        one = ir.Range.from_min_extent(version, T.const(1, dtype_of(version)))
        return T.BufferRegion(new, [one, *region.region])

    return structural_map(
        root, [(ir.TensorLoad, on_load), (T.BufferStore, on_store), (ir.TensorRegion, on_region)]
    )
