"""What a launch must be made with, from its annotations and from what its kernel does."""

from __future__ import annotations

from tvm import tirx as T
from tvm_ffi import structural_walk

from tilelang.cuda.access import operations
from tilelang.errors import LoweringError
from tilelang.ir.expr import const_int
from tilelang.transform.simt.launch import launch_of
from tilelang.transform.simt.notes import with_notes

__all__ = ["record_launch_facts"]

_CLUSTER_ARCH = 90
_MAX_CLUSTER = 16
_GRID_BARRIERS = {"tl.sync_grid", "tl.sync_global"}


def record_launch_facts(func: T.PrimFunc, arch: int) -> T.PrimFunc:
    """Set what the attributes of a kernel say of its launch and its parameters.

    They are ``tl.launch_flags``, ``tl.cluster``, ``tl.min_blocks``, and ``tl.may_alias``: names of
    the parameters that overlap others.

    A barrier of the grid needs a cooperative launch. A kernel that waits for the one ahead of it
    (``T.pdl_sync``) may start before that one has ended; one that only lets the next start may not.

    Raises
    ------
    LoweringError
        If the architecture has no clusters, or none of that size.
    """
    launch = launch_of(func)
    found = operations(func)
    flags = ["cooperative"] if found & _GRID_BARRIERS else []
    if "tl.pdl_sync" in found:
        flags.append("pdl")
    if flags:
        func = func.with_attr("tl.launch_flags", flags)
    notes = launch.loops[0].annotations if launch.loops else {}
    if names := _annotated(func, "tl.may_alias"):
        func = func.with_attr("tl.may_alias", names)
    if ratios := _annotated(func, "tl.l2_hit_ratio"):
        func = with_notes(
            func, [f"T.annotate_l2_hit_ratio has no effect on {', '.join(ratios)}: it is a hint"]
        )
    if (blocks := const_int(notes.get("tl.min_blocks_per_sm"))) is not None:
        func = func.with_attr("tl.min_blocks", blocks)
    if "tl.cluster" not in notes:
        return func
    x, y, z = (int(extent) for extent in notes["tl.cluster"])
    if arch < _CLUSTER_ARCH:
        raise LoweringError(
            f"a cluster of {(x, y, z)} blocks; devices have clusters from sm_{_CLUSTER_ARCH} on, "
            f"the target is sm_{arch}",
            launch.loops[0].span,
        )
    if x * y * z > _MAX_CLUSTER:
        raise LoweringError(
            f"a cluster of {(x, y, z)} is {x * y * z} blocks; at most {_MAX_CLUSTER} are possible",
            launch.loops[0].span,
        )
    return func.with_attr("tl.cluster", [x, y, z])


def _annotated(func: T.PrimFunc, key: str) -> list[str]:
    """Names of the buffers with an annotation."""
    found: dict[str, None] = {}

    def on_attr(attr: T.AttrStmt) -> None:
        if attr.attr_key == key:
            found[str(attr.node.name)] = None

    structural_walk(func.body, (T.AttrStmt, on_attr))
    return list(found)
