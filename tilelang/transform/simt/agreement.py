"""The check of layout inference: every access finds its element in the thread that makes it."""

from __future__ import annotations

from tvm import ir

from tilelang.ir.op import TileCall
from tilelang.layout.distribution import Distribution
from tilelang.transform.simt.access_map import AccessMap
from tilelang.transform.simt.effects import binds_an_effect
from tilelang.transform.simt.inference_state import InferenceState
from tilelang.transform.simt.nest import Access
from tilelang.transform.simt.reduced import reduced, reduced_tile, same_shape

__all__ = ["check_agreement"]


def check_agreement(state: InferenceState) -> None:
    """Move the first tile whose threads do not hold what they read, or miss what is written."""
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


def _why(state: InferenceState, number: int, access: Access, moved: ir.Var) -> str:
    verb = "written" if access.is_write else "read"
    if not state.is_given(moved):
        return f"it is {verb} by threads that do not hold it"
    others = [a.buffer for a, _ in state.fragments[number] if not a.buffer.same_as(access.buffer)]
    fixed = next((f"{b.name}, {state.sites.given[b]}" for b in others if state.is_given(b)), None)
    beside = f" of the loop that follows the layout of {fixed}" if fixed else ""
    return f"{access.buffer.name} is {verb} by threads{beside} that do not hold its elements"


def _weaker(state: InferenceState, number: int, buffer: ir.Var) -> ir.Var:
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


def _check_finalize(state: InferenceState, call: TileCall) -> bool:
    reducer, dst = call.operand("reducer").source, call.get("dst")
    if dst is None or not state.is_tile(reducer) or not state.is_tile(dst.source):
        return True
    tile = state.tiles[reducer]
    if same_shape(reducer, dst.source) and state.tiles[dst.source].written_by(tile):
        return True
    return not state.spill(reducer, "its result is needed in other threads")


def _check_reduce(state: InferenceState, call: TileCall) -> bool:
    src, dst = call.operand("src").source, call.operand("dst").source
    tile = reduced_tile(state, call)
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
