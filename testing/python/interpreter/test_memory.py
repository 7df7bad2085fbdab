"""Storages, views and the record of what was written."""

import numpy as np

from tilelang.interpreter.domain import Domain
from tilelang.interpreter.memory import Storage, View, strides_of
from tilelang.interpreter.numbers import dtype_named


def make(name, shape, nbytes, lead=(), storage=None):
    home = Domain("threads", lead) if lead else None
    storage = storage or Storage.allocate("buffer", "shared", nbytes, home, lead)
    return View("view", dtype_named(name), shape, strides_of(shape), 0, storage)


def test_views_of_other_dtypes_see_the_same_bits():
    words = make("float32", (4,), 16)
    halves = make("float16", (8,), 16, storage=words.storage)
    words.scatter((slice(None),), np.float32([1.0, -2.0, 0.5, 3.0]))
    expected = np.float32([1.0, -2.0, 0.5, 3.0]).view(np.float16)
    assert np.array_equal(halves.gather((slice(None),)), expected)


def test_an_element_is_written_only_when_all_its_bytes_are():
    words = make("int32", (2,), 8)
    halves = make("int16", (4,), 8, storage=words.storage)
    halves.scatter((0,), np.int16(1))
    assert words.is_written((slice(None),)).tolist() == [False, False]
    halves.scatter((1,), np.int16(1))
    assert words.is_written((slice(None),)).tolist() == [True, False]


def test_packed_elements_share_a_byte():
    view = make("int4", (4,), 2)
    view.scatter((np.array([0, 1, 3]),), np.int8([-3, 5, 7]))
    assert view.gather((np.array([0, 1, 3]),)).tolist() == [-3, 5, 7]
    assert view.is_written((slice(None),)).tolist() == [True, True, False, True]
    assert view.storage.data.tolist() == [0x5D, 0x70]


def test_packed_views_agree_with_bytes():
    fp4 = make("float4_e2m1fn", (2, 4), 4)
    raw = make("uint8", (2, 2), 4, storage=fp4.storage)
    raw.scatter((slice(None), slice(None)), np.uint8([[0x21, 0x43], [0x65, 0x87]]))
    values = fp4.gather((slice(None), slice(None))).astype(np.float32)
    assert values.tolist() == [[0.5, 1.0, 1.5, 2.0], [3.0, 4.0, 6.0, 0.0]]


def test_per_thread_buffers_have_one_copy_a_thread():
    view = make("int32", (2,), 8, lead=(3,))
    view.scatter((np.arange(3), 1), np.int32([10, 20, 30]))
    assert view.gather((slice(None), 1)).tolist() == [10, 20, 30]
    assert view.is_written((slice(None), slice(None))).tolist() == [[False, True]] * 3


def test_per_thread_packed_buffers():
    view = make("uint4", (2,), 1, lead=(2,))
    view.scatter((np.arange(2), np.array([0, 1])), np.uint8([9, 8]))
    assert view.storage.data.tolist() == [[0x09], [0x80]]


def test_vectors_have_a_lane_axis():
    view = make("float32x2", (3,), 24)
    view.scatter((1,), np.float32([1, 2]))
    assert view.gather((1,)).tolist() == [1, 2]
    assert view.is_written((slice(None),)).tolist() == [False, True, False]


def test_strides_and_offset_count_elements():
    data = np.arange(24, dtype=np.int16)
    storage = Storage("A", "global", data.view(np.uint8), None, None)
    view = View("A", dtype_named("int16"), (2, 3), (-12, 2), 12, storage)
    assert view.gather((slice(None), slice(None))).tolist() == [[12, 14, 16], [0, 2, 4]]
    assert view.element_numbers((0, 0)) == 12 and view.element_numbers((1, 2)) == 4


def test_a_row_may_be_repeated_with_stride_zero():
    data = np.float32([1, 2, 3])
    storage = Storage("A", "global", data.view(np.uint8), None, None)
    view = View("A", dtype_named("float32"), (2, 3), (0, 1), 0, storage)
    assert view.gather((slice(None), 2)).tolist() == [3, 3]


def test_empty_buffers():
    view = make("float32", (0, 4), 0)
    assert view.gather((slice(None), slice(None))).shape == (0, 4)
