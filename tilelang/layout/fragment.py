"""Fragments: layouts of tiles that live in the registers of a block's threads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import ir
from tvm import tirx as T
from tvm_ffi.dataclasses import field, py_class

from tilelang.errors import LayoutError
from tilelang.layout.digits import digit_runs, flatten, unused_digits
from tilelang.layout.index_expr import (
    IntArray,
    as_index,
    as_indices,
    evaluate,
    simplify,
)
from tilelang.layout.layout import (
    Layout,
    apply_map,
    checked_shape,
    grid,
    index_vars,
)
from tilelang.layout.reshape import Reshape

__all__ = ["Fragment"]


@py_class("tl.Fragment", frozen=True, init=False, repr=False)
class Fragment(Layout):
    """A map from the logical index of a tile to a thread and a slot in its registers.

    With ``replicate > 1`` every element has that many copies, and the thread map takes the number
    of the copy as a last variable. Without an index map the slot is derived: the digits of the
    logical index that the thread map does not look at, in row-major order.

    Parameters
    ----------
    shape : sequence of int
        Extents of the logical tile.
    forward_fn : callable, optional
        Returns the pair (thread, slot or slots); takes the indices, and the copy if replicated.
    forward_thread_fn : callable, optional
        Returns the thread; used when ``forward_fn`` is not given.
    replicate : int
        Number of copies.
    forward_index_fn : callable, optional
        Returns the slot or slots; takes the indices only.

    Raises
    ------
    LayoutError
        If no thread map is given, or the slot depends on the copy.

    Examples
    --------
    >>> rows = Fragment([32, 4], forward_thread_fn=lambda i, j: i)
    >>> rows.get_thread_size(), rows(3, 2), rows.map_forward_thread([3, 2])
    (32, [2], 3)
    """

    replicate_size: int
    replicate_var: ir.Var = field(structural_eq="def-pattern")
    forward_thread: ir.Expr

    def __init__(
        self,
        shape: Sequence[Any],
        forward_fn: Callable[..., Any] | None = None,
        forward_thread_fn: Callable[..., Any] | None = None,
        replicate: int = 1,
        forward_index_fn: Callable[..., Any] | None = None,
    ) -> None:
        extents = checked_shape(shape)
        if not isinstance(replicate, (int, np.integer)) or replicate < 1:
            raise LayoutError(f"replicate must be a positive integer, found {replicate!r}")
        variables, copy = index_vars(len(extents)), T.Var("rep", "int32")
        arguments = [*variables, copy] if replicate > 1 else variables
        if forward_fn is not None:
            thread, index = forward_fn(*arguments)
        elif forward_thread_fn is not None:
            thread = forward_thread_fn(*arguments)
            index = forward_index_fn(*variables) if forward_index_fn is not None else None
        else:
            raise LayoutError("a fragment needs forward_fn or forward_thread_fn")
        owner = as_index(thread)
        self._require_closed([owner], [*variables, copy])
        if index is None:
            table = _tabulate_threads(owner, extents, int(replicate), variables, copy)
            index = _derived_slot(table, variables, extents)
        slots = as_indices(index)
        self._require_closed(slots, variables)
        self.__ffi_init__(extents, variables, slots, int(replicate), copy, owner)

    # -- the thread map ------------------------------------------------------------------------
    @property
    def thread(self) -> ir.Expr:
        """The owning thread as an expression of :meth:`get_forward_vars`."""
        return self.forward_thread

    def get_forward_vars(self) -> list[ir.Var]:
        """The logical index variables, then the copy's variable if there are several."""
        copies = [self.replicate_var] if self.replicate_size > 1 else []
        return [*self.forward_vars, *copies]

    def get_thread_size(self) -> int:
        """One more than the largest owning thread."""
        return int(self.thread_table().max()) + 1

    def thread_table(self) -> IntArray:
        """The owning threads as a read-only int64 array ``(replicate, *shape)``."""
        return _thread_table(self)

    def map_forward_thread(self, indices: Sequence[Any]) -> Any:
        """The owner of an element; a replicated fragment takes the copy as the last index."""
        return apply_map([self.forward_thread], self.get_forward_vars(), indices)[0]

    def is_completely_replicated(self) -> bool:
        """Whether every thread holds every element in the same slot."""
        owners = self.thread_table().reshape(self.replicate_size, -1)
        everywhere = np.arange(self.get_thread_size())[:, None]
        return owners.shape[0] == len(everywhere) and bool((np.sort(owners, 0) == everywhere).all())

    def _same_tables(self, other: Layout) -> bool:
        assert isinstance(other, Fragment)
        return (
            self.replicate_size == other.replicate_size
            and np.array_equal(self.thread_table(), other.thread_table())
            and np.array_equal(self.table(), other.table())
        )

    # -- algebra -------------------------------------------------------------------------------
    def repeat(  # type: ignore[override]  # a fragment repeats along every dimension at once
        self, repeats: Sequence[int], repeat_on_thread: bool = False, lower_dim_first: bool = True
    ) -> Fragment:
        """Tile the fragment over a larger tile.

        Parameters
        ----------
        repeats : sequence of int
            How often along each dimension.
        repeat_on_thread : bool
            Whether the copies go to further threads (True) or to further slots of the same ones.
        lower_dim_first : bool
            Whether copies are numbered with the last dimension fastest, or the first.
        """
        counts = checked_shape(repeats)
        old = self.get_input_shape()
        if len(counts) != len(old):
            raise LayoutError(f"repeat: {len(counts)} factors for a fragment of rank {len(old)}")
        threads, slots = self.get_thread_size(), self.get_output_shape()[0]

        def forward(*indices: ir.Var) -> tuple[ir.Expr, list[ir.Expr]]:
            inner = [index % extent for index, extent in zip(indices, old, strict=False)]
            tiles = [
                (index // extent, count)
                for index, extent, count in zip(indices, old, counts, strict=False)
            ]
            number = flatten(tiles if lower_dim_first else reversed(tiles))
            owner = self.map_forward_thread([*inner, *indices[len(old) :]])
            slot = self.map_forward_index(inner)
            if repeat_on_thread:
                owner = owner + number * threads
            else:
                slot[0] = slot[0] + number * slots
            return owner, slot

        shape = [extent * count for extent, count in zip(old, counts, strict=True)]
        return self._simplified(shape, forward, self.replicate_size)

    def replicate(self, replicate: int) -> Fragment:
        """Give every element ``replicate`` times as many copies, on further threads."""
        if not isinstance(replicate, int) or replicate < 1:
            raise LayoutError(f"replicate must be a positive integer, found {replicate!r}")
        threads, copies, rank = self.get_thread_size(), self.replicate_size, len(self.input_shape)

        def forward(*indices: ir.Var) -> tuple[ir.Expr, list[ir.Expr]]:
            logical, copy = indices[:rank], as_index(indices[rank] if len(indices) > rank else 0)
            inner = [copy % copies] if copies > 1 else []
            owner = self.map_forward_thread([*logical, *inner]) + copy // copies * threads
            return owner, self.map_forward_index(logical)

        return self._simplified(self.get_input_shape(), forward, copies * replicate)

    def condense_rep_var(self) -> Fragment:
        """Drop copies that fall on the same thread as another copy of the same element."""
        table = self.thread_table().reshape(self.replicate_size, -1).T
        used = [digit for digit, is_used in digit_runs(table, 0) if is_used]
        copies = int(np.prod([digit.extent for digit in used], dtype=np.int64))
        if copies == self.replicate_size:
            return self
        rank = len(self.input_shape)

        def forward(*indices: ir.Var) -> tuple[ir.Expr, list[ir.Expr]]:
            rest: Any = indices[rank] if len(indices) > rank else 0
            old: Any = 0
            for digit in used:
                old = old + rest % digit.extent * digit.divisor
                rest = rest // digit.extent
            logical = indices[:rank]
            return self.map_forward_thread([*logical, old]), self.map_forward_index(logical)

        return self._simplified(self.get_input_shape(), forward, copies)

    def expand(self, leading_shape: Sequence[int]) -> Fragment:
        """Add leading dimensions that are slots of their own in every owning thread."""
        count = len(checked_shape(leading_shape, allow_empty=True))
        rank = len(self.input_shape)

        def forward(*indices: ir.Var) -> tuple[ir.Expr, list[ir.Expr]]:
            inner, copy = indices[count : count + rank], indices[count + rank :]
            slots = [*indices[:count], *self.map_forward_index(inner)]
            return self.map_forward_thread([*inner, *copy]), slots

        return Fragment(
            [*leading_shape, *self.get_input_shape()], forward, None, self.replicate_size
        )

    def reshape(self, shape: Sequence[Any], rescale_num: int = 1, rescale_den: int = 1) -> Fragment:
        """See the same elements under another logical shape; see :meth:`Layout.reshape`.

        Raises
        ------
        LayoutError
            Also if elements to be joined have different owners.
        """
        new = checked_shape(shape)
        view = Reshape(tuple(self.input_shape), tuple(new), rescale_num, rescale_den)
        view.require_side_by_side(self.table())
        view.require_same_owner(self.thread_table())
        rank = len(new)

        def forward(*indices: ir.Var) -> tuple[ir.Expr, list[ir.Expr]]:
            source = view.source(indices[:rank])
            slots = view.rescaled(self.map_forward_index(source), indices[:rank])
            return self.map_forward_thread([*source, *indices[rank:]]), slots

        return self._simplified(new, forward, self.replicate_size)

    def inverse(self) -> Layout:
        """The map from (slots..., thread) to the logical index, and the copy if replicated.

        Raises
        ------
        LayoutError
            If two elements share a slot of a thread, or no closed form is known.
        """
        copies = [self.replicate_size] if self.replicate_size > 1 else []
        rank = len(self.input_shape)
        full = Layout(
            [*self.get_input_shape(), *copies],
            lambda *indices: [
                *self.map_forward_index(indices[:rank]),
                self.map_forward_thread(indices),
            ],
        )
        return full.inverse()

    @staticmethod
    def _simplified(
        shape: Sequence[int],
        forward: Callable[..., tuple[ir.Expr, list[ir.Expr]]],
        copies: int,
    ) -> Fragment:
        def simple(*indices: ir.Var) -> tuple[ir.Expr, list[ir.Expr]]:
            extents = dict(zip(indices, [*shape, copies], strict=False))
            owner, slots = forward(*indices)
            return simplify(as_index(owner), extents), [
                simplify(as_index(slot), extents) for slot in slots
            ]

        return Fragment(shape, simple, None, copies)

    def __repr__(self) -> str:
        names = ", ".join(var.name for var in self.get_forward_vars())
        index = ", ".join(map(str, self.forward_index))
        copies = f", replicate={self.replicate_size}" if self.replicate_size > 1 else ""
        return (
            f"Fragment({self.get_input_shape()}, ({names}) -> thread {self.forward_thread}, "
            f"index [{index}]{copies})"
        )


def _tabulate_threads(
    thread: ir.Expr, shape: Sequence[int], copies: int, variables: Sequence[ir.Var], copy: ir.Var
) -> IntArray:
    values = grid([copies, *shape], [copy, *variables])
    return np.broadcast_to(evaluate(thread, values), (copies, *shape))


@functools.lru_cache(maxsize=64)
def _thread_table(fragment: Fragment) -> IntArray:
    table = _tabulate_threads(
        fragment.forward_thread,
        fragment.get_input_shape(),
        fragment.replicate_size,
        fragment.forward_vars,
        fragment.replicate_var,
    )
    table.flags.writeable = False
    return table


def _derived_slot(threads: IntArray, variables: Sequence[ir.Var], shape: Sequence[int]) -> Any:
    """Number the elements of each thread by the digits its map does not look at."""
    digits = unused_digits(threads)
    return flatten((digit.of(variables, shape), digit.extent) for digit in digits)
