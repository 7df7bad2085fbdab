"""Building blocks of tile-op bodies: loop nests, element accesses, temporaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import ir
from tvm import tirx as T

from tilelang.ir.expr import const_int, dtype_of
from tilelang.ir.region import region_extents, region_mins, squeezed_dims

__all__ = [
    "accumulator_dtype",
    "alloc",
    "load",
    "moving_extents",
    "nest",
    "serial",
    "store",
    "vectorized",
]

Body = Callable[[list[ir.Expr]], T.Stmt]


def accumulator_dtype(dtype: str) -> str:
    """The dtype in which values of ``dtype`` are summed: narrow floats use float32."""
    narrow = dtype.startswith(("float8_", "float4_", "float6_", "bfloat16")) or dtype == "float16"
    return "float32" if narrow else dtype


def alloc(name: str, shape: Sequence[int], dtype: str) -> ir.Var:
    """Declare a temporary of the op body; emit it with ``T.AllocBuffer``."""
    return T.decl_buffer(list(shape), dtype, name, scope="local", layout=None, data_alignment=64)


def serial(extent: Any, body: Callable[[ir.Var], T.Stmt], name: str = "k") -> T.Stmt:
    """One sequential loop from 0."""
    var = T.Var(name, "int32")
    return T.For(var, 0, extent, T.ForKind.SERIAL, body(var))


def vectorized(extent: int, body: Callable[[Any], T.Stmt], name: str = "v") -> T.Stmt:
    """One vector loop of constant extent from 0; a single element needs no loop."""
    if extent == 1:  # TVM does not vectorise it
        return body(T.const(0, "int32"))
    var = T.Var(name, "int32")
    return T.For(var, 0, extent, T.ForKind.VECTORIZED, body(var))


def nest(extents: Sequence[Any], body: Body, span: ir.Span | None, parallel: bool = True) -> T.Stmt:
    """A loop nest over ``extents``; dimensions of extent 1 get the index 0 and no loop.

    A parallel nest may be executed in any order; a sequential one runs as written. Both are
    marked as the root of a tile op, where bounds checks may be hoisted to.
    """
    loops: list[tuple[ir.Var, Any]] = []
    indices: list[ir.Expr] = []
    for position, extent in enumerate(extents):
        if const_int(extent) == 1:
            indices.append(T.const(0, "int32"))
            continue
        dtype = "int32" if const_int(extent) is not None else dtype_of(extent)
        var = T.Var("ijklmnop"[position % 8], dtype)
        loops.append((var, extent))
        indices.append(var)
    stmt = body(indices)
    kind = T.ForKind.PARALLEL if parallel else T.ForKind.SERIAL
    for position in range(len(loops) - 1, -1, -1):
        var, extent = loops[position]
        notes = {"tl.parallel": len(loops)} if position == 0 else None
        stmt = T.For(var, 0, extent, kind, stmt, annotations=notes, span=span)
    return stmt


def _indices(region: ir.TensorRegion, offsets: Sequence[ir.Expr]) -> list[ir.Expr]:
    mins = region_mins(region)
    if len(offsets) == len(mins):
        return [m + o for m, o in zip(mins, offsets, strict=True)]
    dims = squeezed_dims(region)
    moving = (
        [o for o in offsets if const_int(o) != 0] if len(offsets) != len(dims) else list(offsets)
    )
    assert len(moving) == len(dims), "offsets do not fit the region"
    by_dim = dict(zip(dims, moving, strict=True))
    return [m + by_dim[d] if d in by_dim else m for d, m in enumerate(mins)]


def load(region: ir.TensorRegion, offsets: Sequence[ir.Expr], dtype: str | None = None) -> ir.Expr:
    """Element of ``region`` at ``offsets``, one a dimension or one a non-unit dimension."""
    value = T.BufferLoad(region.source, _indices(region, offsets))
    return value if dtype in (None, dtype_of(value)) else value.astype(dtype)


def store(
    region: ir.TensorRegion, offsets: Sequence[ir.Expr], value: ir.Expr, span: ir.Span | None = None
) -> T.Stmt:
    """Store ``value``, cast to the region's dtype, at ``offsets``; see :func:`load`."""
    dtype = dtype_of(region)
    value = value if dtype_of(value) == dtype else value.astype(dtype)
    return T.BufferStore(region.source, value, _indices(region, offsets), span)


def moving_extents(region: ir.TensorRegion) -> list[Any]:
    """The extents that are not the constant 1."""
    extents = region_extents(region)
    return [extents[d] for d in squeezed_dims(region)]
