"""Which reducers may be private registers until they are finalised."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_mutate

from tilelang.errors import LayoutError
from tilelang.ir.op import REDUCER_UPDATE
from tilelang.layout.distribution import COPY, Distribution, dense
from tilelang.transform.simt.sites import Sites, in_registers, is_fragment

__all__ = ["of_all_threads", "readable_reducers"]


def readable_reducers(sites: Sites) -> list[ir.Var]:
    """Reducers that are used in another way than by updates in nests and a finalised result.

    Their elements are read or written one by one, or they are updated in code of the block.
    """
    found: list[ir.Var] = []

    def check(buffer: Any) -> None:
        if in_registers(buffer) and not is_fragment(buffer):
            found.append(buffer)

    def on_call(call: ir.Call, mutator: Any) -> Any:
        if not call.op.same_as(REDUCER_UPDATE):
            return mutator.default_mutate(call)
        target, value = call.args
        for part in (*target.indices, value):
            mutator.mutate(part)
        return call

    def on_load(load: ir.TensorLoad, mutator: Any) -> Any:
        check(load.source)
        return mutator.default_mutate(load)

    def on_store(store: T.BufferStore, mutator: Any) -> Any:
        check(store.buffer)
        return mutator.default_mutate(store)

    handlers = [(ir.Call, on_call), (ir.TensorLoad, on_load), (T.BufferStore, on_store)]
    for nest in sites.nests:
        structural_mutate(nest.root, handlers)
    for access in sites.plain:
        check(access.buffer)
    for call in sites.calls:
        for region in (*call.regions("r"), *call.regions("w")):
            known = call.name == "reducer_init" or (
                call.name == "finalize_reducer" and call.get("dst") is not None
            )
            if not known:
                check(region.source)
    return found


def of_all_threads(tile: Distribution, threads: int) -> Distribution | None:
    """``tile`` with the remaining threads as further copies; None if they do not fit."""
    rest, left = divmod(threads, tile.num_threads)
    if left:
        return None
    parts = [(p.axis, p.divisor, p.extent) for p in tile.threads]
    if rest > 1:
        parts.append((COPY, 1, rest))
    try:
        return Distribution(tile.shape, dense(parts), tile.slots)
    except LayoutError:
        return None
