"""Inverses of layouts in closed form, proved by enumeration.

Two families cover the layouts of tiles: sums of index digits times strides, with any extents and
gaps, and maps that are linear over bits (XOR swizzles), with power-of-two extents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilelang.errors import LayoutError
from tilelang.layout.check import require_injective
from tilelang.layout.digits import Digit, split_digits
from tilelang.layout.index_expr import IntArray
from tilelang.layout.layout import Layout

__all__ = ["invert"]

_Inverse = Callable[..., list[Any]]


def invert(layout: Layout) -> Layout:
    """The layout that maps physical to logical indices; see :meth:`Layout.inverse`.

    Raises
    ------
    LayoutError
        If ``layout`` is not injective or belongs to neither family.
    """
    require_injective(layout, "inverse")
    table, shape = layout.table(), layout.get_input_shape()
    physical = layout.get_output_shape()
    for family in (_digit_inverse, _bit_inverse):
        forward = family(table, shape)
        if forward is None:
            continue
        inverse = Layout(physical, forward)
        if _undoes(inverse, layout):
            return inverse
    raise LayoutError(f"no closed form of the inverse of {layout} is known")


def _undoes(inverse: Layout, layout: Layout) -> bool:
    places = np.ravel_multi_index(tuple(layout.table()), inverse.get_input_shape())
    back = inverse.table().reshape(len(inverse.forward_index), -1)[:, places]
    return np.array_equal(back, np.indices(layout.get_input_shape()))


def _digit_inverse(table: IntArray, shape: Sequence[int]) -> _Inverse | None:
    """Invert ``sum of digit * stride``: each digit is read back where its stride stands."""
    if table.reshape(len(table), -1)[:, 0].any():
        return None
    digits = [digit for axis in range(len(shape)) for digit in split_digits(table, axis)]
    places: list[tuple[int, int]] = []
    for digit in digits:
        stride = _image(table, digit)
        rows = np.flatnonzero(stride)
        if len(rows) != 1 or stride[rows[0]] < 0:
            return None
        places.append((int(rows[0]), int(stride[rows[0]])))

    merged = _merged(digits, places)

    def forward(*physical: Any) -> list[Any]:
        logical: list[Any] = [0] * len(shape)
        for digit, (row, stride) in merged:
            value = physical[row]
            above = [s for _, (r, s) in merged if r == row and s > stride]
            if above:  # gaps between strides (padding) hold no element
                value = value % min(above)
            if stride > 1:
                value = value // stride
            logical[digit.axis] = logical[digit.axis] + value * digit.divisor
        return logical

    return forward


def _merged(
    digits: Sequence[Digit], places: Sequence[tuple[int, int]]
) -> list[tuple[Digit, tuple[int, int]]]:
    """Join neighbouring digits of an axis that also are neighbours in the physical index."""
    merged: list[tuple[Digit, tuple[int, int]]] = []
    for digit, (row, stride) in zip(digits, places, strict=True):
        if merged:
            low, (low_row, low_stride) = merged[-1]
            follows = low.axis == digit.axis and low.divisor * low.extent == digit.divisor
            if follows and low_row == row and low_stride * low.extent == stride:
                joined = Digit(low.axis, low.divisor, low.extent * digit.extent)
                merged[-1] = (joined, (row, low_stride))
                continue
        merged.append((digit, (row, stride)))
    return merged


def _image(table: IntArray, digit: Digit) -> IntArray:
    """What the map gives for the logical index in which only ``digit`` is 1, the others 0."""
    column = np.moveaxis(table, digit.axis + 1, 1).reshape(
        len(table), table.shape[digit.axis + 1], -1
    )
    image: IntArray = column[:, digit.divisor, 0]
    return image


def _bit_inverse(table: IntArray, shape: Sequence[int]) -> _Inverse | None:
    """Invert a map whose output bits are XORs of input bits, by elimination over GF(2)."""
    if any(extent & (extent - 1) for extent in shape) or table.reshape(len(table), -1)[:, 0].any():
        return None
    inputs = [digit for axis in range(len(shape)) for digit in split_digits(table, axis)]
    widths = [int(row.max()).bit_length() for row in table]
    columns = [_pack(_image(table, digit), widths) for digit in inputs]
    solved = _solve(columns, sum(widths))
    if solved is None:
        return None
    sources = [(row, bit) for row, width in enumerate(widths) for bit in range(width)]

    def forward(*physical: Any) -> list[Any]:
        logical: list[Any] = [0] * len(shape)
        for (axis, row, shift), mask in _shifted_terms(inputs, sources, solved).items():
            value = physical[row] & mask
            value = value << shift if shift > 0 else value >> -shift if shift < 0 else value
            logical[axis] = value if isinstance(logical[axis], int) else logical[axis] ^ value
        return logical

    return forward


def _pack(values: IntArray, widths: Sequence[int]) -> int:
    """Concatenate the bits of all physical indices, the first index lowest."""
    packed, offset = 0, 0
    for value, width in zip(values, widths, strict=True):
        packed |= int(value) << offset
        offset += width
    return packed


def _solve(columns: Sequence[int], outputs: int) -> list[int] | None:
    """For each input bit the set of output bits (as a mask) whose XOR gives it back.

    ``columns[k]`` is the output of input bit ``k``. Gauss-Jordan elimination of the transposed
    system: rows are output bits, each tagged with the output bits it was combined from.
    """
    rows = [
        (sum(((column >> out) & 1) << k for k, column in enumerate(columns)), 1 << out)
        for out in range(outputs)
    ]
    solution: list[int] = []
    for k in range(len(columns)):
        pivot = next((r for r in range(k, len(rows)) if rows[r][0] >> k & 1), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for r, (bits, origin) in enumerate(rows):
            if r != k and bits >> k & 1:
                rows[r] = (bits ^ rows[k][0], origin ^ rows[k][1])
    for k in range(len(columns)):
        solution.append(rows[k][1])
    return solution


def _shifted_terms(
    inputs: Sequence[Digit], sources: Sequence[tuple[int, int]], solved: Sequence[int]
) -> dict[tuple[int, int, int], int]:
    """Collect single-bit moves with one distance into ``(axis, row, shift) -> mask`` terms."""
    terms: dict[tuple[int, int, int], int] = {}
    for digit, mask in zip(inputs, solved, strict=True):
        target = digit.divisor.bit_length() - 1
        for position, (row, bit) in enumerate(sources):
            if mask >> position & 1:
                key = (digit.axis, row, target - bit)
                terms[key] = terms.get(key, 0) | 1 << bit
    return terms
