"""What each level of IR promises, as code; run between passes whenever tests run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm_ffi
from tvm import ir
from tvm import tirx as T
from tvm.ir import IRModule
from tvm.target import Target

from tilelang.backend.pass_pipeline import IRLevel, PassObserver, PassStep
from tilelang.errors import TileLangError

__all__ = ["LEVEL_CHECKS", "BrokenInvariant", "LevelObserver", "check_level"]

_TILE_OP = "tl.tileop."


@tvm_ffi.register_error
class BrokenInvariant(AssertionError):
    """A pass left a module that its level does not allow; a bug of the compiler."""


def _fail(message: str, node: Any) -> None:
    text = str(node)
    raise BrokenInvariant(f"{message}: {text if len(text) < 400 else text[:400] + ' ...'}")


def _functions(mod: IRModule) -> list[T.PrimFunc]:
    return [func for func in mod.functions.values() if isinstance(func, T.PrimFunc)]


def check_well_formed(mod: IRModule) -> None:
    """Every variable is defined once, before its uses."""
    for func in _functions(mod):
        try:
            T.analysis.verify_well_formed(func)
        except TileLangError:
            raise
        except Exception as error:
            raise BrokenInvariant(f"not well formed: {error}") from error


def check_traced(mod: IRModule) -> None:
    """Buffers have no TVM layout, thread-bound loops name their axis."""

    def on_buffer(buffer_type: T.BufferType) -> None:
        if buffer_type.layout is not None:
            _fail("a buffer has a TVM layout", buffer_type)

    def on_loop(loop: T.For) -> None:
        if loop.kind == T.ForKind.THREAD_BINDING and loop.thread_binding is None:
            _fail("a thread-bound loop names no axis", loop.loop_var)

    for func in _functions(mod):
        tvm_ffi.structural_walk(func, [(T.BufferType, on_buffer), (T.For, on_loop)])


def check_loops(mod: IRModule) -> None:
    """No tile operation and no region is left."""

    def on_call(call: ir.Call) -> None:
        if isinstance(call.op, ir.Op) and call.op.name.startswith(_TILE_OP):
            _fail("a tile operation is left", call)

    for func in _functions(mod):
        tvm_ffi.structural_walk(func.body, [(ir.Call, on_call)])


def check_storage(mod: IRModule) -> None:
    """Every access has one index."""

    def on_load(load: ir.TensorLoad) -> None:
        if len(load.indices) != 1:
            _fail("a load is not flat", load)

    def on_store(store: T.BufferStore) -> None:
        if len(store.indices) != 1:
            _fail("a store is not flat", store)

    for func in _functions(mod):
        callbacks = [(ir.TensorLoad, on_load), (T.BufferStore, on_store)]
        tvm_ffi.structural_walk(func.body, callbacks)


def check_codegen(mod: IRModule) -> None:
    """Every function knows its target."""
    for func in _functions(mod):
        if (func.attrs or {}).get("target") is None:
            _fail("a function has no target", func)


LEVEL_CHECKS: dict[IRLevel, tuple[Callable[[IRModule], None], ...]] = {
    IRLevel.TRACED: (check_well_formed, check_traced),
    IRLevel.LOOPS: (check_loops,),
    IRLevel.STORAGE: (check_loops, check_storage),
    IRLevel.CODEGEN: (check_well_formed, check_loops, check_storage, check_codegen),
}


def check_level(mod: IRModule, level: IRLevel) -> None:
    """Check everything that ``level`` promises.

    Raises
    ------
    BrokenInvariant
        Naming the node at fault.
    """
    for check in LEVEL_CHECKS[level]:
        check(mod)


class LevelObserver(PassObserver):
    """Checks the module after every pass against the level reached so far.

    It also checks that no pass edits its argument, and that levels only ever rise.
    """

    def __init__(self) -> None:
        self._level = IRLevel.TRACED
        self._previous: IRModule | None = None
        self._hash = 0

    def before(self, step: PassStep, mod: IRModule, target: Target) -> None:
        if self._previous is None or not mod.same_as(self._previous):
            self._level = IRLevel.TRACED  # another pipeline begins
            self._check(f"the input of pass '{step.name}'", mod)
        self._hash = tvm_ffi.structural_hash(mod)

    def after(
        self, step: PassStep, before: IRModule, after: IRModule, target: Target, seconds: float
    ) -> None:
        if tvm_ffi.structural_hash(before) != self._hash:
            raise BrokenInvariant(f"pass '{step.name}' changed its argument")
        if step.establishes is not None:
            if step.establishes < self._level:
                raise BrokenInvariant(f"pass '{step.name}' establishes a level below the last one")
            self._level = step.establishes
        self._previous = after
        self._check(f"the result of pass '{step.name}'", after)

    def _check(self, what: str, mod: IRModule) -> None:
        try:
            check_level(mod, self._level)
        except BrokenInvariant as error:
            raise BrokenInvariant(f"{what} breaks level {self._level.name}: {error}") from error
