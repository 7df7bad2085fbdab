"""Checks of the random numbers of a kernel."""

from __future__ import annotations

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_walk

from tilelang.errors import SemanticError
from tilelang.transform.simt.notes import with_notes

__all__ = ["check_random_state"]

_DRAWS = {"tl.rng_rand": "T.rng_rand", "tl.rng_rand_float": "T.rng_rand_float"}
_OWN = "Philox"


def check_random_state(func: T.PrimFunc) -> T.PrimFunc:
    """Refuse numbers that were never started; note generators that Philox stands in for.

    Raises
    ------
    SemanticError
        If a kernel draws random numbers and has no ``T.rng_init``.
    """
    draws: list[ir.Call] = []
    generators: list[str] = []

    def on_call(call: ir.Call) -> None:
        name = call.op.name if isinstance(call.op, ir.Op) else ""
        if name in _DRAWS:
            draws.append(call)
        elif name == "tl.rng_init":
            generators.append(str(call.args[3].value))

    structural_walk(func.body, (ir.Call, on_call))
    if draws and not generators:
        raise SemanticError(
            f"{_DRAWS[draws[0].op.name]} needs T.rng_init in the same kernel before it",
            draws[0].span,
        )
    others = [name for name in dict.fromkeys(generators) if _OWN not in name]
    notes = [f"T.rng_init draws from Philox 4x32-10 in place of {name}" for name in others]
    return with_notes(func, notes)
