"""Layout: maps, shapes, algebra, and how layouts behave as IR objects."""

from __future__ import annotations

import numpy as np
import pytest
import tvm_ffi
from tvm import ir
from tvm import tirx as T

from tilelang.errors import LayoutError, TraceTypeError
from tilelang.layout import Layout
from tilelang.layout.index_expr import evaluate

LINEAR = Layout([8, 64], lambda i, j: i * 64 + j)


def test_integers_map_to_integers_and_expressions_to_expressions():
    assert LINEAR(2, 3) == [131]
    assert LINEAR.map_forward_index([0, 1]) == [1]
    n = T.Var("n", "int32")
    (index,) = LINEAR(n, 0)
    assert isinstance(index, ir.Expr)
    assert evaluate(index, {n: np.asarray(3)}) == 192


def test_shapes_and_parts():
    padded = Layout([8, 32], lambda i, j: i * 40 + j)
    assert padded.get_input_shape() == [8, 32]
    assert padded.get_output_shape() == [7 * 40 + 32]
    assert len(padded.get_forward_vars()) == 2
    assert padded.get_forward_index() == padded.index
    assert padded.table().shape == (1, 8, 32)


def test_linearized_index_counts_in_row_major_order():
    layout = Layout([4, 6], lambda i, j: [j, i])
    index = layout.get_linearized_forward_index()
    i, j = layout.get_forward_vars()
    assert evaluate(index, {i: np.asarray(2), j: np.asarray(3)}) == 3 * 4 + 2


@pytest.mark.parametrize(
    "forward",
    [
        lambda i, j: T.if_then_else(i < j, i, j),
        lambda i, j: T.Select(i == j, 1, 0),
        lambda i, j: T.min(i, j) + T.max(i, 3),
        lambda i, j: (i ^ j) & 5 | (j << 1) >> 1,
        lambda i, j: T.truncdiv(i - j, 2) + T.truncmod(i - 3, 2) + 9,
        lambda i, j: i % 3 - j // 2,
    ],
)
def test_tables_agree_with_pointwise_evaluation(forward):
    layout = Layout([5, 7], forward)
    for i, j in np.ndindex(5, 7):
        assert layout(i, j) == [int(layout.table()[0, i, j])]


def test_repeat_along_each_dimension():
    first = LINEAR.repeat(dim=0, factor=2)
    assert first.is_equal(Layout([16, 64], lambda i, j: [i // 8, i % 8 * 64 + j]))
    assert first.get_output_shape() == [2, 512]
    second = LINEAR.repeat(dim=-1, factor=3)
    assert second.is_equal(Layout([8, 192], lambda i, j: [j // 64, i * 64 + j % 64]))


def test_repeat_once_is_the_same_object():
    assert LINEAR.repeat(dim=0, factor=1) is LINEAR


def test_expand_adds_leading_dimensions():
    expanded = LINEAR.expand([3, 2])
    assert expanded.is_equal(Layout([3, 2, 8, 64], lambda a, b, i, j: [a, b, i * 64 + j]))
    assert LINEAR.expand([]).is_equal(LINEAR)


def test_reshape_keeps_row_major_order():
    transposed = Layout([8, 64], lambda i, j: [j, i])
    flat = transposed.reshape([512])
    assert flat.is_equal(Layout([512], lambda k: [k % 64, k // 64]))


def test_reshape_to_other_element_sizes():
    swapped = Layout([2, 4], lambda i, j: [j // 2, i * 2 + j % 2])
    narrow = swapped.reshape([2, 8], 2, 1)
    assert narrow.is_equal(Layout([2, 8], lambda i, j: [j // 4, i * 4 + j % 4]))
    assert narrow.reshape([2, 4], 1, 2).is_equal(swapped)


@pytest.mark.parametrize(
    "layout",
    [
        LINEAR,
        Layout([8, 32], lambda i, j: i * 40 + j),
        Layout([6, 10], lambda i, j: [j // 5, i * 5 + j % 5]),
        Layout([12, 4], lambda i, j: j * 12 + i),
        Layout([8, 64], lambda i, j: [i, ((j // 8) ^ i) * 8 + j % 8]),
        Layout([4, 4], lambda i, j: [i ^ j, i ^ (j * 2) & 3]),
        Layout([1, 5], lambda i, j: i + j),
    ],
)
def test_inverse_undoes_the_map(layout):
    inverse = layout.inverse()
    assert inverse.get_input_shape() == layout.get_output_shape()
    for index in np.ndindex(*layout.get_input_shape()):
        assert tuple(inverse(*layout(*index))) == index


def test_equality_is_of_functions():
    same = Layout([8, 64], lambda x, y: y + 64 * x)
    assert LINEAR.is_equal(same)
    assert Layout([8], lambda i: (i * 2) // 2).is_equal(Layout([8], lambda i: i))
    assert not LINEAR.is_equal(Layout([64, 8], lambda i, j: i * 8 + j))
    assert not LINEAR.is_equal(Layout([8, 64], lambda i, j: [i, j]))
    assert not LINEAR.is_equal(Layout([8, 64], lambda i, j: i + j * 8))


def test_constant_maps():
    zero = Layout([4, 4], lambda i, j: T.const(0, "int32"))
    assert zero.is_equal(Layout([4, 4], lambda i, j: 0))
    assert not zero.is_equal(Layout([4, 4], lambda i, j: i))


def test_layouts_ride_in_the_ir():
    other = Layout([8, 64], lambda a, b: a * 64 + b)
    assert tvm_ffi.structural_equal(LINEAR, other)
    assert tvm_ffi.structural_hash(LINEAR) == tvm_ffi.structural_hash(other)
    loop = T.For(T.Var("i", "int32"), 0, 4, 0, T.Evaluate(0), annotations={"layout": LINEAR})
    found = loop.annotations["layout"]
    assert isinstance(found, Layout)
    assert found.is_equal(LINEAR)


def test_layouts_survive_json():
    loaded = ir.load_json(ir.save_json(LINEAR))
    assert isinstance(loaded, Layout)
    assert loaded.is_equal(LINEAR)
    assert loaded(1, 1) == [65]


def test_layouts_are_immutable():
    with pytest.raises(AttributeError):
        LINEAR.input_shape = [1]
    with pytest.raises(ValueError, match="read-only"):
        LINEAR.table()[0, 0, 0] = 5


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([], "at least one dimension"),
        ([4, 0], "dimension 1 of a layout must be a positive constant, found 0"),
        ([4, -1], "found -1"),
        ([T.Var("n", "int32")], "must be a positive constant, found n"),
        ([True], "found True"),
        (8, "sequence of integers, found 8"),
        ([1 << 15, 1 << 15], "too large to enumerate"),
    ],
)
def test_bad_shapes(shape, message):
    with pytest.raises(LayoutError, match=message):
        Layout(shape, lambda *indices: 0)


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (lambda i: "x", "integer expressions, found str"),
        (lambda i: i * 1.5, "found a float32 expression"),
        (lambda i: i + T.Var("n", "int32"), "depends on 'n'"),
        (lambda i: T.call_extern("int32", "f", i), "cannot use the operation"),
        (lambda i: None, "found NoneType"),
    ],
)
def test_bad_maps(forward, message):
    with pytest.raises(TraceTypeError, match=message):
        Layout([4], forward)


def test_bad_arguments_of_the_algebra():
    with pytest.raises(LayoutError, match="rank 2 got 1 indices"):
        LINEAR(1)
    with pytest.raises(LayoutError, match=r"dim must be in \[-2, 2\), found 2"):
        LINEAR.repeat(2, 2)
    with pytest.raises(LayoutError, match="positive integer, found 0"):
        LINEAR.repeat(0, 0)
    with pytest.raises(LayoutError, match="512 elements"):
        LINEAR.reshape([7, 7])
    with pytest.raises(LayoutError, match="not a ratio"):
        LINEAR.reshape([8, 96], 3, 2)
    with pytest.raises(LayoutError, match="side by side"):
        Layout([8, 8], lambda i, j: [j, i]).reshape([8, 4], 1, 2)


def test_inverse_of_a_map_that_is_not_injective():
    with pytest.raises(LayoutError, match=r"elements \(0, 1\) and \(1, 0\) share place \(1,\)"):
        Layout([4, 4], lambda i, j: i + j).inverse()


def test_inverse_without_closed_form():
    with pytest.raises(LayoutError, match="no closed form"):
        Layout([8, 8], lambda i, j: [i, (i + j) % 8]).inverse()
