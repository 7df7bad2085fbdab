"""Which backend has which operation, as data, and the one refusal made from it.

Scalar intrinsics carry their backends in their record (:mod:`tilelang.ir.intrin`); tile operations
have a row below. :func:`check_support` is the first thing a pipeline runs; the tables of the
documentation come from :func:`support_table`. A backend lists an operation as soon as it is planned
there: until its code generator exists its pipeline refuses every program anyway.
"""

from __future__ import annotations

from typing import Any

from tvm import ir, tirx
from tvm_ffi import structural_walk

from tilelang.errors import UnsupportedError
from tilelang.ir.intrin import ALL, find, intrinsics
from tilelang.ir.op.base import TileCall, tile_ops

__all__ = ["TILE_OPS", "TILE_OPTIONS", "backends_of", "check_support", "support_table"]

_COLLECTIVE = frozenset({"cpu", "cuda", "cutedsl", "rocm"})

#: Backends of each tile operation; one not listed is available everywhere.
TILE_OPS: dict[str, frozenset[str]] = {
    "atomic": _COLLECTIVE,
    "copy": ALL,
    "fill": ALL,
    "finalize_reducer": _COLLECTIVE,
    "gemm": ALL - {"webgpu"},
    "gemm_sp": frozenset({"cpu", "cuda", "cutedsl"}),
    "im2col": ALL,
    "logical": frozenset({"cpu", "cuda", "rocm"}),
    "reduce": _COLLECTIVE,
    "reducer_init": _COLLECTIVE,
    "scan": _COLLECTIVE,
    "transpose": ALL,
}

#: Backends of options that make a tile operation another one where they are set.
TILE_OPTIONS: dict[tuple[str, str], frozenset[str]] = {
    ("atomic", "use_tma"): frozenset({"cuda", "cutedsl"}),
}


def backends_of(name: str) -> frozenset[str]:
    """The backends that have the tile operation or intrinsic ``name``.

    Raises
    ------
    KeyError
        If there is no such operation.
    """
    if name in {op.name for op in tile_ops()}:
        return TILE_OPS.get(name, ALL)
    record = find(name)
    if record is None:
        raise KeyError(name)
    return record.backends


def check_support(func: tirx.PrimFunc, backend: str) -> tirx.PrimFunc:
    """Refuse a program with an operation that ``backend`` does not have; else return it.

    Parameters
    ----------
    func : tvm.tirx.PrimFunc
        A traced program, with tile operations.
    backend : str
        Name of the manifest, such as ``"cpu"``.

    Raises
    ------
    UnsupportedError
        Names the first such operation, its line, and the backends that have it.
    """
    problems: list[UnsupportedError] = []

    def visit(node: Any) -> None:
        if problems:
            return
        name, backends = _operation(node)
        if name is not None and backend not in backends:
            problems.append(
                UnsupportedError.on_backend(f"T.{name}", backend, sorted(backends), node.span)
            )

    structural_walk(func.body, (ir.Call, visit))
    if problems:
        raise problems[0]
    return func


def _operation(call: ir.Call) -> tuple[str | None, frozenset[str]]:
    tile = TileCall.of(call)
    if tile is not None:
        for (name, option), backends in TILE_OPTIONS.items():
            if tile.name == name and getattr(tile.attrs, option):
                return f"{name} with {option}=True", backends
        return tile.name, TILE_OPS.get(tile.name, ALL)
    record = find(call)
    return (record.name, record.backends) if record is not None else (None, ALL)


def support_table() -> dict[str, frozenset[str]]:
    """Backends by operation, tile operations first."""
    table = {op.name: TILE_OPS.get(op.name, ALL) for op in tile_ops()}
    table.update({record.name: record.backends for record in intrinsics()})
    return table
