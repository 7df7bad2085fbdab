"""Which values are the same in all threads of a block."""

from __future__ import annotations

from typing import Any

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_map, structural_walk

from tilelang.transform.simt.launch import launch_of

__all__ = ["Uniformity"]

_PER_THREAD = (
    "tl.get_lane_idx", "tl.get_warp_idx", "tl.get_warp_idx_sync", "tl.get_warp_group_idx",
    "tl.shuffle_elect", "tl.atomic", "tl.activemask",
)  # fmt: skip
#: Calls that give every thread of a block the same value, whatever their arguments.
_AGREED = ("tl.syncthreads_count", "tl.syncthreads_and", "tl.syncthreads_or")


class Uniformity:
    """Answers for one function; what it cannot tell counts as different.

    A value differs between threads if it comes from the thread's number, from registers that got
    such a value, or from memory at such an index.
    """

    def __init__(self, func: T.PrimFunc) -> None:
        self._varying: set[ir.Var] = set(launch_of(func).variables("threadIdx"))
        changed = True
        while changed:
            changed = self._spread(func.body)

    def _spread(self, body: Any) -> bool:
        found: list[ir.Var] = []

        def mark(var: ir.Var) -> None:
            if var not in self._varying:
                found.append(var)

        def on_bind(bind: T.Bind) -> None:
            if not self.is_uniform(bind.value):
                mark(bind.var)

        def on_store(store: T.BufferStore) -> None:
            local = str(store.buffer.scope()).startswith("local")
            if local and not self.is_uniform([store.value, *store.indices]):
                mark(store.buffer)

        def on_branch(branch: T.IfThenElse) -> None:
            if self.is_uniform(branch.condition):
                return
            for case in (branch.then_case, branch.else_case):
                if case is not None:
                    structural_walk(
                        case,
                        (
                            T.BufferStore,
                            lambda s: (
                                mark(s.buffer)
                                if str(s.buffer.scope()).startswith("local")
                                else None
                            ),
                        ),
                    )

        def on_call(call: ir.Call) -> None:
            pointed = _pointed_registers(call)
            if pointed is not None:
                mark(pointed)

        def on_loop(loop: T.For) -> None:
            if not self.is_uniform([loop.min, loop.extent]):
                mark(loop.loop_var)

        structural_walk(
            body,
            [
                (T.Bind, on_bind),
                (T.BufferStore, on_store),
                (T.IfThenElse, on_branch),
                (ir.Call, on_call),
                (T.For, on_loop),
            ],
        )
        self._varying.update(found)
        return bool(found)

    def is_uniform(self, value: Any) -> bool:
        """Whether an expression (or each of a list) has one value in all threads."""
        differs: list[Any] = []

        def on_var(var: ir.Var) -> None:
            if var in self._varying:
                differs.append(var)

        def on_call(call: ir.Call) -> None:
            if isinstance(call.op, ir.Op) and call.op.name in _PER_THREAD:
                differs.append(call)

        agreed: list[ir.Call] = []

        def on_agreement(call: ir.Call) -> Any:
            if not isinstance(call.op, ir.Op) or call.op.name not in _AGREED:
                return call
            agreed.append(call)
            return T.const(0, "int32")

        structural_walk(value, [(ir.Var, on_var), (ir.Call, on_call)])
        if not differs:
            return True
        rest = structural_map(value, (ir.Call, on_agreement))
        return bool(agreed) and self.is_uniform(rest)

    def is_uniform_loop(self, loop: Any) -> bool:
        """Whether all threads run a loop equally often; early exits count."""
        bounds = [loop.condition] if isinstance(loop, T.While) else [loop.min, loop.extent]
        if not self.is_uniform(bounds):
            return False
        return not self._leaves_early(loop.body)

    def _leaves_early(self, body: Any) -> bool:
        """Whether some threads may break out, or skip the rest of an iteration, alone."""
        found: list[Any] = []

        def on_branch(branch: T.IfThenElse) -> None:
            if self.is_uniform(branch.condition):
                return
            structural_walk(branch, [(T.Break, found.append), (T.Continue, found.append)])

        structural_walk(body, (T.IfThenElse, on_branch))
        return bool(found)


def _stored_registers(root: Any) -> list[ir.Var]:
    found: list[ir.Var] = []

    def on_store(store: T.BufferStore) -> None:
        if str(store.buffer.scope()).startswith("local"):
            found.append(store.buffer)

    structural_walk(root, (T.BufferStore, on_store))
    return found


def _pointed_registers(call: ir.Call) -> ir.Var | None:
    """Registers whose address is taken; what is written through it is not looked into."""
    if not isinstance(call.op, ir.Op) or call.op.name != "tirx.address_of":
        return None
    target = call.args[0]
    source = getattr(target, "source", target)
    local = isinstance(source, ir.Var) and str(source.scope()).startswith("local")
    return source if local else None
