"""Layout inference: which thread holds which element of every tile, and runs which iteration.

Constraints are followed in the order strict (the user's annotations, operands of matrix
instructions), common (what a known tile implies for its neighbours) and free (coalesced copies
first). A tile whose uses cannot agree moves to shared memory, where any thread may read any
element; inference then starts again without it. The result is checked: every access finds its
element in the thread that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tvm import ir, sym

from tilelang.errors import LayoutError
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.op import TileCall
from tilelang.ir.region import is_full_region, region_extents
from tilelang.layout import Fragment
from tilelang.layout.distribution import COPY, Distribution, Part, from_fragment
from tilelang.transform.simt.access_map import AccessMap, map_access
from tilelang.transform.simt.defaults import default_distribution, dtype_bits, spread
from tilelang.transform.simt.effects import binds_an_effect
from tilelang.transform.simt.nest import Access, Nest, accesses_of
from tilelang.transform.simt.reducer_sites import of_all_threads, readable_reducers
from tilelang.transform.simt.sites import Sites, in_registers, is_fragment, nest_fragments

__all__ = ["Inferred", "MatrixRule", "infer_layouts"]

_SMALL = 64
_NO_INSTRUCTION = "no matrix instruction fits the product it takes part in"


class MatrixRule(Protocol):
    """What inference asks a backend about its matrix instructions."""

    def operands(self, call: TileCall) -> Mapping[str, Distribution] | None:
        """The distribution each fragment operand of a GEMM must have; None for no demand."""


@dataclass
class Inferred:
    """The decisions for one kernel.

    Parameters
    ----------
    tiles : dict of buffer to Distribution
    nests : list of Distribution or None
        One for every nest in program order; None where the nest touches no tile.
    spilled : dict of buffer to str
        Tiles that live in shared memory instead, with the reason.
    """

    tiles: dict[ir.Var, Distribution] = field(default_factory=dict)
    nests: list[Distribution | None] = field(default_factory=list)
    spilled: dict[ir.Var, str] = field(default_factory=dict)


@dataclass
class _State:
    sites: Sites
    threads: int
    rule: MatrixRule | None
    layouts: Callable[[ir.Var], Any]
    analyzer: sym.Analyzer
    tiles: dict[ir.Var, Distribution] = field(default_factory=dict)
    loops: dict[int, Distribution] = field(default_factory=dict)
    strict: set[ir.Var] = field(default_factory=set)
    spilled: dict[ir.Var, str] = field(default_factory=dict)
    fragments: dict[int, list[tuple[Access, AccessMap | None]]] = field(default_factory=dict)

    def known(self, buffer: ir.Var) -> Distribution | None:
        return self.tiles.get(buffer)

    def is_tile(self, buffer: ir.Var) -> bool:
        return in_registers(buffer) and buffer not in self.spilled

    def is_given(self, buffer: ir.Var) -> bool:
        """Whether the user fixed the distribution of ``buffer``."""
        return isinstance(self.sites.given.get(buffer), Fragment)

    def spill(self, buffer: ir.Var, reason: str, span: ir.Span | None = None) -> bool:
        """Move a tile to shared memory; True so that callers can start again.

        Raises
        ------
        LayoutError
            If the user fixed where its elements are.
        """
        if self.is_given(buffer):
            raise LayoutError(
                f"{buffer.name} cannot have the layout {self.sites.given[buffer]} that "
                f"T.annotate_layout gives it: {reason}",
                span or buffer.span,
            )
        self.spilled[buffer] = reason
        return True


def infer_layouts(
    sites: Sites,
    threads: int,
    rule: MatrixRule | None,
    layouts: Callable[[ir.Var], Any],
    analyzer: sym.Analyzer,
) -> Inferred:
    """Decide the distribution of every fragment and of every nest that touches one.

    Parameters
    ----------
    sites : Sites
    threads : int
        Threads of a block.
    rule : MatrixRule, optional
        The backend's matrix instructions.
    layouts : callable
        The layout of a shared buffer, or None for row-major order.
    analyzer : sym.Analyzer
        Knows the ranges of the variables around the nests.

    Raises
    ------
    LayoutError
        If the user fixed a layout that the kernel contradicts.
    """
    spilled = _born_in_memory(sites)
    while True:
        state = _State(sites, threads, rule, layouts, analyzer, spilled=dict(spilled))
        if _solve(state):
            break
        if len(state.spilled) == len(spilled):
            raise LayoutError("layout inference made no progress")
        spilled = state.spilled
    return Inferred(
        state.tiles, [state.loops.get(k) for k in range(len(sites.nests))], dict(spilled)
    )


def _born_in_memory(sites: Sites) -> dict[ir.Var, str]:
    """Tiles that cannot live in registers, whatever else happens to them."""
    found: dict[ir.Var, str] = {}
    for view, source in sites.views:
        if in_registers(source):
            found[source] = "another name is given to its storage"
            found[view] = "it is another name of a tile"

    def add(buffer: ir.Var, reason: str) -> None:
        if in_registers(buffer):
            found.setdefault(buffer, reason)

    for reducer in readable_reducers(sites):
        add(reducer, "its elements are read")
    for nest in sites.nests:
        for access in nest_fragments(nest):
            if nest.shape is None:
                add(access.buffer, "a loop over it has no constant extent")
    for call in sites.calls:
        for name, region in _regions(call).items():
            if call.name not in ("gemm", "reduce", "reducer_init", "finalize_reducer"):
                add(region.source, f"T.{call.name} works on shared memory")
            elif not is_full_region(region):
                add(region.source, f"T.{call.name} uses a part of it as {name}")
            elif any(const_int(e) is None for e in region.source.shape):
                add(region.source, "its shape is not constant")
    return found


def _regions(call: TileCall) -> dict[str, ir.TensorRegion]:
    return {k: v for k, v in call.operands.items() if isinstance(v, ir.TensorRegion)}


def _solve(state: _State) -> bool:
    """One round; False if a tile was spilled and everything must start again."""
    before = len(state.spilled)
    for number, nest in enumerate(state.sites.nests):
        pairs = [(a, map_access(a, nest)) for a in nest_fragments(nest) if state.is_tile(a.buffer)]
        state.fragments[number] = pairs
    _strict(state)
    while True:
        _propagate(state)
        if not _choose(state):
            break
    for access in state.sites.plain:
        _plain(state, access)
    if len(state.spilled) == before:
        _check(state)
    return len(state.spilled) == before


def _strict(state: _State) -> None:
    for buffer, layout in state.sites.given.items():
        if isinstance(layout, Fragment) and state.is_tile(buffer):
            state.tiles[buffer] = _given_tile(buffer, layout, state.threads)
            state.strict.add(buffer)
    if state.rule is None:
        return
    for call in state.sites.calls:
        if call.name != "gemm":
            continue
        wanted = state.rule.operands(call)
        for name, region in _regions(call).items():
            buffer = region.source
            if not state.is_tile(buffer):
                continue
            if wanted is None:
                state.spill(buffer, _NO_INSTRUCTION, call.span)
            elif buffer not in state.tiles:
                state.tiles[buffer] = wanted[name]
                state.strict.add(buffer)
            elif not state.tiles[buffer].same_as(wanted[name]):
                state.spill(buffer, _in_product(state, buffer, name, wanted[name]), call.span)


def _given_tile(buffer: ir.Var, layout: Fragment, threads: int) -> Distribution:
    try:
        tile = from_fragment(layout)
    except LayoutError as error:
        raise LayoutError(f"the layout given to {buffer.name}: {error}", buffer.span) from error
    if tile.num_threads > threads:
        raise LayoutError(
            f"the layout given to {buffer.name} spreads it over {tile.num_threads} threads, and a "
            f"block has {threads}: {layout}",
            buffer.span,
        )
    return tile


def _in_product(state: _State, buffer: ir.Var, name: str, wanted: Distribution) -> str:
    if state.is_given(buffer):
        return f"as {name} of T.gemm it must be {wanted.fragment()}"
    return "two matrix products want it in different registers"


def _propagate(state: _State) -> None:
    changed = True
    while changed:
        changed = False
        for number, nest in enumerate(state.sites.nests):
            changed |= _through_nest(state, number, nest)
        for call in state.sites.calls:
            if call.name == "reduce":
                changed |= _through_reduce(state, call)
            elif call.name == "finalize_reducer":
                changed |= _through_finalize(state, call)


def _through_nest(state: _State, number: int, nest: Nest) -> bool:
    pairs = state.fragments[number]
    if not pairs:
        return False
    changed = False
    if number not in state.loops:
        loop = _given_loop(nest) or _loop_from_tiles(state, nest, pairs)
        if loop is None:
            return False
        state.loops[number] = loop
        changed = True
    loop = state.loops[number]
    for access, mapping in pairs:
        if access.buffer in state.tiles or mapping is None:
            continue
        tile = mapping.tile_of(loop)
        if tile is not None and not is_fragment(access.buffer):
            tile = of_all_threads(tile, state.threads)
        if tile is not None:
            state.tiles[access.buffer] = tile
            changed = True
    return changed


def _given_loop(nest: Nest) -> Distribution | None:
    layout = nest.note("loop_layout")
    return from_fragment(layout) if isinstance(layout, Fragment) else None


def _loop_from_tiles(
    state: _State, nest: Nest, pairs: list[tuple[Access, AccessMap | None]]
) -> Distribution | None:
    """The nest's distribution from the best known tile in it: written and complete ones first."""
    extents = nest.shape
    assert extents is not None, "nests over tiles have constant extents"
    moving = sum(1 for e in extents if e > 1)
    best: tuple[tuple[Any, ...], Distribution] | None = None
    for access, mapping in pairs:
        tile = state.known(access.buffer)
        if tile is None or mapping is None or not is_fragment(access.buffer):
            continue
        complete = sum(1 for a in mapping.axes if extents[a] > 1) == moving
        owners = sum(1 for p in tile.threads if p.axis != COPY)
        loop = mapping.loop_of(tile, extents)
        if loop is None:
            continue
        rank = (complete, access.is_write, access.buffer in state.strict, owners)
        if best is None or rank > best[0]:
            best = (rank, loop)
    return None if best is None else best[1]


def _through_reduce(state: _State, call: TileCall) -> bool:
    dst = call.operand("dst").source
    if not state.is_tile(dst) or dst in state.tiles:
        return False
    tile = _reduced_tile(state, call)
    if tile is None:
        return False
    state.tiles[dst] = reduced(tile, call.attrs.dim, [int(e) for e in dst.shape])
    return True


def _reduced_tile(state: _State, call: TileCall) -> Distribution | None:
    """The distribution of what a reduction reads: the tile's, or how memory is dealt."""
    src = call.operand("src")
    if state.is_tile(src.source):
        return state.known(src.source)
    return dealt([const_int(e) or 0 for e in region_extents(src)], state.threads)


def dealt(shape: Sequence[int], threads: int) -> Distribution:
    """How threads share the elements of a reduction's source in memory."""
    return spread(shape, threads, 1)


def _through_finalize(state: _State, call: TileCall) -> bool:
    """The result lies where the contributions are: every thread that made some gets the total."""
    reducer, dst = call.operand("reducer").source, call.get("dst")
    if dst is None or not state.is_tile(reducer) or not state.is_tile(dst.source):
        return False
    tile = state.known(reducer)
    if tile is None or dst.source in state.tiles or not _same_shape(reducer, dst.source):
        return False
    state.tiles[dst.source] = tile
    return True


def _same_shape(a: ir.Var, b: ir.Var) -> bool:
    return [const_int(e) for e in a.shape] == [const_int(e) for e in b.shape]


def reduced(tile: Distribution, dim: int, shape: list[int]) -> Distribution:
    """The distribution of a reduction's result: the threads that shared an element all hold it."""
    keeps = len(shape) == len(tile.shape)
    axes = {a: a if keeps or a < dim else a - 1 for a in range(len(tile.shape)) if a != dim}
    if not shape or len(tile.shape) == 1:
        axes = {}
    return tile.onto(axes, shape)


def _choose(state: _State) -> bool:
    """Fix one thing that nothing has decided; False when nothing is left."""
    open_nests = [
        (not _touches_memory(nest), -_volume(nest), number)
        for number, nest in enumerate(state.sites.nests)
        if state.fragments[number] and number not in state.loops
    ]
    if open_nests:
        number = min(open_nests)[2]
        nest = state.sites.nests[number]
        state.loops[number] = default_distribution(
            nest, state.threads, state.layouts, state.analyzer
        )
        return True
    for call in state.sites.calls:
        for region in _regions(call).values():
            buffer = region.source
            if state.is_tile(buffer) and buffer not in state.tiles:
                state.tiles[buffer] = spread([int(e) for e in buffer.shape], state.threads, 1)
                return True
    for access in state.sites.plain:
        if state.is_tile(access.buffer) and access.buffer not in state.tiles:
            everywhere = _everywhere(access.buffer, state.threads)
            if everywhere is None:
                state.spill(access.buffer, "it is read by every thread")
            else:
                state.tiles[access.buffer] = everywhere
            return True
    return False


def _touches_memory(nest: Nest) -> bool:
    return any(a.scope in ("global", "shared", "shared.dyn") for a in accesses_of(nest.body))


def _volume(nest: Nest) -> int:
    volume = 1
    for extent in nest.extents:
        volume *= extent or 1
    return volume


def _everywhere(buffer: ir.Var, threads: int) -> Distribution | None:
    """Each thread holds a small tile whole; None for a large one."""
    shape = [const_int(e) for e in buffer.shape]
    total = 1
    for extent in shape:
        if extent is None:
            return None
        total *= extent
    if total * dtype_bits(dtype_of(buffer)) > _SMALL * 32:
        return None
    slots, stride = [], 1
    for axis in range(len(shape) - 1, -1, -1):
        extent = int(shape[axis] or 1)
        if extent > 1:
            slots.append(Part(axis, 1, extent, stride))
            stride *= extent
    copies = (Part(COPY, 1, threads, 1),) if threads > 1 else ()
    return Distribution(tuple(int(e or 0) for e in shape), copies, tuple(slots))


def _plain(state: _State, access: Access) -> None:
    """Outside of nests every thread touches the element, so every thread must hold it."""
    tile = state.known(access.buffer)
    if tile is not None and state.is_tile(access.buffer) and not tile.is_replicated(state.threads):
        state.spill(access.buffer, "every thread touches one of its elements", access.span)


def _check(state: _State) -> None:
    for number in range(len(state.sites.nests)):
        loop = state.loops.get(number)
        for access, mapping in state.fragments[number]:
            tile = state.known(access.buffer)
            assert loop is not None and tile is not None, "inference decided everything"
            if loop.copies and access.is_write and binds_an_effect(state.sites.nests[number].body):
                state.spill(access.buffer, "one thread alone gets the result of an effect")
                return
            if not _agrees(tile, loop, access, mapping, state.threads):
                moved = _weaker(state, number, access.buffer)
                state.spill(moved, _why(state, number, access, moved), access.span)
                return
    for call in state.sites.calls:
        if call.name == "reduce" and not _check_reduce(state, call):
            return
        if call.name == "finalize_reducer" and not _check_finalize(state, call):
            return


def _agrees(
    tile: Distribution, loop: Distribution, access: Access, mapping: AccessMap | None, threads: int
) -> bool:
    if mapping is None:
        return not access.is_write and tile.is_replicated(threads)
    mine = mapping.tile_of(loop)
    if mine is None:
        return False
    return tile.written_by(mine) if access.is_write else tile.holds_for(mine)


def _why(state: _State, number: int, access: Access, moved: ir.Var) -> str:
    verb = "written" if access.is_write else "read"
    if not state.is_given(moved):
        return f"it is {verb} by threads that do not hold it"
    others = [a.buffer for a, _ in state.fragments[number] if not a.buffer.same_as(access.buffer)]
    fixed = next((f"{b.name}, {state.sites.given[b]}" for b in others if state.is_given(b)), None)
    beside = f" of the loop that follows the layout of {fixed}" if fixed else ""
    return f"{access.buffer.name} is {verb} by threads{beside} that do not hold its elements"


def _weaker(state: _State, number: int, buffer: ir.Var) -> ir.Var:
    """Which of the tiles that disagree in a nest moves.

    No operand of a product if another can, and none that the user placed.
    """
    if buffer not in state.strict:
        return buffer
    others = [a.buffer for a, _ in state.fragments[number] if a.buffer not in state.strict]
    if others:
        return min(others, key=_size)
    placed = [a.buffer for a, _ in state.fragments[number] if not state.is_given(a.buffer)]
    return min(placed, key=_size) if state.is_given(buffer) and placed else buffer


def _size(buffer: ir.Var) -> int:
    total = 1
    for extent in buffer.shape:
        total *= int(extent)
    return total


def _check_finalize(state: _State, call: TileCall) -> bool:
    reducer, dst = call.operand("reducer").source, call.get("dst")
    if dst is None or not state.is_tile(reducer) or not state.is_tile(dst.source):
        return True
    tile = state.tiles[reducer]
    if _same_shape(reducer, dst.source) and state.tiles[dst.source].written_by(tile):
        return True
    return not state.spill(reducer, "its result is needed in other threads")


def _check_reduce(state: _State, call: TileCall) -> bool:
    src, dst = call.operand("src").source, call.operand("dst").source
    tile = _reduced_tile(state, call)
    if not state.is_tile(dst) or tile is None:
        return True
    wanted = reduced(tile, call.attrs.dim, [int(e) for e in dst.shape])
    if state.tiles[dst].written_by(wanted):
        return True
    movable = state.is_tile(src) and src not in state.strict
    state.spill(
        src if dst in state.strict and movable else dst,
        "the result of T.reduce is needed in other threads",
        call.span,
    )
    return False
