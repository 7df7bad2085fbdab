"""Layouts: finite functions from the logical index of a tile to its place in storage."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm_ffi
from tvm import ir
from tvm import tirx as T
from tvm_ffi.dataclasses import field, py_class

from tilelang.errors import LayoutError
from tilelang.layout.digits import flatten
from tilelang.layout.index_expr import (
    IntArray,
    as_index,
    as_indices,
    evaluate,
    simplify,
    substitute,
)
from tilelang.layout.reshape import Reshape

__all__ = [
    "Layout",
    "apply_map",
    "checked_shape",
    "grid",
    "index_vars",
]

_MAX_ELEMENTS = 1 << 24


@py_class("tl.Layout", frozen=True, init=False, repr=False)
class Layout(tvm_ffi.Object):
    """A map from logical to physical indices of a tile with a constant shape.

    The map is kept as expressions, for lowering, and is a finite function: whatever must be known
    about it (equality, injectivity, extents) is found by enumeration. Layouts are immutable IR
    objects: they ride in annotations, compare structurally and survive a JSON round trip.

    Parameters
    ----------
    shape : sequence of int
        Extents of the logical tile.
    forward_fn : callable
        Takes one int32 index variable per dimension, returns one index or a sequence of them.

    Raises
    ------
    LayoutError
        If a dimension is not a positive constant.
    TraceTypeError
        If ``forward_fn`` returns something that is no integer expression.

    Examples
    --------
    >>> padded = Layout([8, 32], lambda i, j: i * 40 + j)
    >>> padded.get_output_shape()
    [312]
    >>> padded(1, 2)
    [42]
    """

    input_shape: tuple[int, ...]
    forward_vars: tuple[ir.Var, ...] = field(structural_eq="def-pattern")
    forward_index: tuple[ir.Expr, ...]

    def __init__(self, shape: Sequence[Any], forward_fn: Callable[..., Any]) -> None:
        extents = checked_shape(shape)
        variables = index_vars(len(extents))
        self.__ffi_init__(extents, variables, as_indices(forward_fn(*variables)))
        self._require_closed(self.forward_index, self.forward_vars)

    @staticmethod
    def _require_closed(exprs: Sequence[ir.Expr], variables: Sequence[ir.Var]) -> None:
        """Refuse expressions that use other variables or operations than layouts may."""
        origin = dict.fromkeys(variables, np.zeros((), dtype=np.int64))
        for expr in exprs:
            evaluate(expr, origin)

    # -- the map as expressions ----------------------------------------------------------------
    @property
    def index(self) -> list[ir.Expr]:
        """The physical indices as expressions of :meth:`get_forward_vars`."""
        return list(self.forward_index)

    def get_forward_index(self) -> list[ir.Expr]:
        """The physical indices as expressions of :meth:`get_forward_vars`."""
        return self.index

    def get_forward_vars(self) -> list[ir.Var]:
        """The logical index variables."""
        return list(self.forward_vars)

    def get_linearized_forward_index(self) -> ir.Expr:
        """The physical indices as one row-major offset within :meth:`get_output_shape`."""
        return as_index(flatten(zip(self.index, self.get_output_shape(), strict=True)))

    def map_forward_index(self, indices: Sequence[Any]) -> list[Any]:
        """Apply the map; integers give integers, expressions give expressions.

        Raises
        ------
        LayoutError
            If the number of indices is not the number of dimensions.
        """
        return apply_map(self.forward_index, self.forward_vars, indices)

    def __call__(self, *indices: Any) -> list[Any]:
        """Apply the map to ``indices``; see :meth:`map_forward_index`."""
        return self.map_forward_index(indices)

    # -- the map as a finite function ----------------------------------------------------------
    def table(self) -> IntArray:
        """The map as a read-only int64 array ``(physical dimensions, *shape)``."""
        return _index_table(self)

    def get_input_shape(self) -> list[int]:
        """Extents of the logical tile."""
        return [int(extent) for extent in self.input_shape]

    def get_output_shape(self) -> list[int]:
        """Smallest extents that hold every physical index."""
        return [int(row.max()) + 1 for row in self.table()]

    def is_equal(self, other: Layout) -> bool:
        """Whether both are the same function on the same shape, however it is written."""
        if type(self) is not type(other):
            return False
        if self.get_input_shape() != other.get_input_shape():
            return False
        if tvm_ffi.structural_equal(self, other):
            return True
        return self._same_tables(other)

    def _same_tables(self, other: Layout) -> bool:
        return np.array_equal(self.table(), other.table())

    # -- algebra -------------------------------------------------------------------------------
    def repeat(self, dim: int, factor: int) -> Layout:
        """Tile the layout along one dimension; the copy's number is a new first physical index.

        ``L.repeat(0, f)(i, j) = [i // n, *L(i % n, j)]`` with ``n`` the old extent.
        """
        rank = len(self.input_shape)
        if not isinstance(dim, int) or not -rank <= dim < rank:
            raise LayoutError(f"repeat: dim must be in [{-rank}, {rank}), found {dim!r}")
        if not isinstance(factor, int) or factor < 1:
            raise LayoutError(f"repeat: factor must be a positive integer, found {factor!r}")
        if factor == 1:
            return self
        dim %= rank
        shape = self.get_input_shape()
        extent = shape[dim]
        shape[dim] *= factor

        def forward(*indices: ir.Var) -> list[ir.Expr]:
            inner = [*indices]
            inner[dim] = indices[dim] % extent
            return [indices[dim] // extent, *self.map_forward_index(inner)]

        return Layout(shape, forward)

    def expand(self, leading_shape: Sequence[int]) -> Layout:
        """Add leading dimensions that are physical indices of their own."""
        leading = checked_shape(leading_shape, allow_empty=True)
        count = len(leading)
        return Layout(
            [*leading, *self.get_input_shape()],
            lambda *indices: [*indices[:count], *self.map_forward_index(indices[count:])],
        )

    def inverse(self) -> Layout:
        """The map from physical to logical indices.

        Found in closed form for maps of index digits and for XOR swizzles, then checked element
        by element. What a place without element maps to is arbitrary.

        Raises
        ------
        LayoutError
            If two elements share a place, or no closed form is known.
        """
        from tilelang.layout.inverse import invert  # uses Layout itself

        return invert(self)

    def reshape(self, shape: Sequence[Any], rescale_num: int = 1, rescale_den: int = 1) -> Layout:
        """See the same elements under another logical shape, in row-major order.

        With ``rescale_num / rescale_den`` other than 1 the new tile has that many times the old
        number of elements, as when a float32 tile is viewed as float16 (2 / 1): the last physical
        index is rescaled with it.

        Raises
        ------
        LayoutError
            If the number of elements does not fit, or narrower elements are joined that do not
            lie next to each other.
        """
        new = checked_shape(shape)
        view = Reshape(tuple(self.input_shape), tuple(new), rescale_num, rescale_den)
        view.require_side_by_side(self.table())

        def forward(*indices: ir.Var) -> list[ir.Expr]:
            extents = dict(zip(indices, new, strict=True))
            physical = self.map_forward_index(view.source(indices))
            return [simplify(as_index(i), extents) for i in view.rescaled(physical, indices)]

        return Layout(new, forward)

    def __repr__(self) -> str:
        index = ", ".join(map(str, self.forward_index))
        names = ", ".join(var.name for var in self.forward_vars)
        return f"Layout({self.get_input_shape()}, ({names}) -> [{index}])"


@functools.lru_cache(maxsize=64)
def _index_table(layout: Layout) -> IntArray:
    values = grid(layout.get_input_shape(), layout.forward_vars)
    shape = layout.get_input_shape()
    rows = [np.broadcast_to(evaluate(expr, values), shape) for expr in layout.forward_index]
    table = np.stack(rows) if rows else np.zeros((0, *shape), dtype=np.int64)
    table.flags.writeable = False
    return table


def grid(shape: Sequence[int], variables: Sequence[ir.Var]) -> dict[ir.Var, IntArray]:
    """Open index grids of ``shape``, one per variable, that broadcast against each other."""
    axes = np.ogrid[tuple(slice(0, extent) for extent in shape)]
    return dict(zip(variables, axes, strict=True))


def index_vars(count: int) -> list[ir.Var]:
    """Fresh int32 index variables ``i0, i1, ...``."""
    return [T.Var(f"i{axis}", "int32") for axis in range(count)]


def checked_shape(shape: Any, allow_empty: bool = False) -> list[int]:
    """Turn a layout's shape into integers.

    Raises
    ------
    LayoutError
        If it is empty, too large to enumerate, or an extent is not a positive constant.
    """
    try:
        dims = list(shape)
    except TypeError:
        raise LayoutError(f"a layout's shape is a sequence of integers, found {shape!r}") from None
    extents: list[int] = []
    for axis, dim in enumerate(dims):
        value = int(dim.value) if isinstance(dim, T.IntImm) else dim
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise LayoutError(
                f"dimension {axis} of a layout must be a positive constant, found {dim}"
            )
        extents.append(int(value))
    if not extents and not allow_empty:
        raise LayoutError("a layout needs at least one dimension")
    if int(np.prod(extents, dtype=object)) > _MAX_ELEMENTS:
        raise LayoutError(f"a layout of shape {extents} is too large to enumerate")
    return extents


def apply_map(exprs: Sequence[ir.Expr], variables: Sequence[ir.Var], indices: Any) -> list[Any]:
    """Substitute ``indices``, integers or expressions, for ``variables`` in ``exprs``."""
    given = list(indices)
    if len(given) != len(variables):
        raise LayoutError(f"a layout of rank {len(variables)} got {len(given)} indices")
    if all(isinstance(value, (int, np.integer)) for value in given):
        point = {v: np.asarray(x, dtype=np.int64) for v, x in zip(variables, given, strict=True)}
        return [int(evaluate(expr, point)) for expr in exprs]
    values = {v: as_index(x) for v, x in zip(variables, given, strict=True)}
    return [substitute(expr, values) for expr in exprs]
