"""Layout inference: which thread holds which element of every tile, and runs which iteration.

Constraints are followed in the order strict (the user's annotations, operands of matrix
instructions), common (what a known tile implies for its neighbours) and free (coalesced copies
first). A tile whose uses cannot agree moves to shared memory, where any thread may read any
element; inference then starts again without it. The result is checked: every access finds its
element in the thread that makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import ir, sym

from tilelang.errors import LayoutError
from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.op import TileCall
from tilelang.ir.region import is_full_region
from tilelang.layout import Fragment
from tilelang.layout.distribution import COPY, Distribution, Part, from_fragment
from tilelang.transform.simt.access_map import AccessMap, map_access
from tilelang.transform.simt.agreement import check_agreement
from tilelang.transform.simt.defaults import default_distribution, dtype_bits, spread
from tilelang.transform.simt.inference_state import InferenceState, Inferred, MatrixRule, regions_of
from tilelang.transform.simt.nest import Access, Nest, accesses_of
from tilelang.transform.simt.reduced import reduced, reduced_tile, same_shape
from tilelang.transform.simt.reducer_sites import of_all_threads, readable_reducers
from tilelang.transform.simt.sites import Sites, in_registers, is_fragment, nest_fragments

__all__ = ["infer_layouts"]

_SMALL = 64
_NO_INSTRUCTION = "no matrix instruction fits the product it takes part in"


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
        state = InferenceState(sites, threads, rule, layouts, analyzer, spilled=dict(spilled))
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
        for name, region in regions_of(call).items():
            if call.name not in ("gemm", "reduce", "reducer_init", "finalize_reducer"):
                add(region.source, f"T.{call.name} works on shared memory")
            elif not is_full_region(region):
                add(region.source, f"T.{call.name} uses a part of it as {name}")
            elif any(const_int(e) is None for e in region.source.shape):
                add(region.source, "its shape is not constant")
    return found


def _solve(state: InferenceState) -> bool:
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
        check_agreement(state)
    return len(state.spilled) == before


def _strict(state: InferenceState) -> None:
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
        for name, region in regions_of(call).items():
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


def _in_product(state: InferenceState, buffer: ir.Var, name: str, wanted: Distribution) -> str:
    if state.is_given(buffer):
        return f"as {name} of T.gemm it must be {wanted.fragment()}"
    return "two matrix products want it in different registers"


def _propagate(state: InferenceState) -> None:
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


def _through_nest(state: InferenceState, number: int, nest: Nest) -> bool:
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
    state: InferenceState, nest: Nest, pairs: list[tuple[Access, AccessMap | None]]
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


def _through_reduce(state: InferenceState, call: TileCall) -> bool:
    dst = call.operand("dst").source
    if not state.is_tile(dst) or dst in state.tiles:
        return False
    tile = reduced_tile(state, call)
    if tile is None:
        return False
    state.tiles[dst] = reduced(tile, call.attrs.dim, [int(e) for e in dst.shape])
    return True


def _through_finalize(state: InferenceState, call: TileCall) -> bool:
    """The result lies where the contributions are: every thread that made some gets the total."""
    reducer, dst = call.operand("reducer").source, call.get("dst")
    if dst is None or not state.is_tile(reducer) or not state.is_tile(dst.source):
        return False
    tile = state.known(reducer)
    if tile is None or dst.source in state.tiles or not same_shape(reducer, dst.source):
        return False
    state.tiles[dst.source] = tile
    return True


def _choose(state: InferenceState) -> bool:
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
        for region in regions_of(call).values():
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


def _plain(state: InferenceState, access: Access) -> None:
    """Outside of nests every thread touches the element, so every thread must hold it."""
    tile = state.known(access.buffer)
    if tile is not None and state.is_tile(access.buffer) and not tile.is_replicated(state.threads):
        state.spill(access.buffer, "every thread touches one of its elements", access.span)
