"""Equality of layouts and fragments."""

import pytest

from tilelang.layout import Fragment, Layout


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (lambda i, j: i * 16 + j, lambda row, column: row * 16 + column, True),
        (lambda i, j: i * 16 + j, lambda i, j: j + 16 * i, True),
        (lambda i, j: i * 16 + j, lambda i, j: i * 8 + j, False),
        (lambda i, j: i * 16 + j, lambda i, j: j * 16 + i, False),
        (lambda i, j: [i, j], lambda a, b: [a, b], True),
        (lambda i, j: [i, j], lambda i, j: [j, i], False),
        (lambda i, j: i * 16 + j, lambda i, j: [i, j], False),
        (lambda i, j: 0, lambda i, j: 0, True),
        (lambda i, j: 0, lambda i, j: i, False),
        (lambda i, j: 0, lambda i, j: 1, False),
    ],
)
def test_layouts_are_equal_when_their_maps_are(one, other, equal):
    found = Layout((16, 16), one).is_equal(Layout((16, 16), other))
    assert isinstance(found, bool) and found is equal


def test_layouts_of_different_shapes_differ():
    assert not Layout((16, 16), lambda i, j: i).is_equal(Layout((16, 8), lambda i, j: i))
    assert not Layout((16,), lambda i: i).is_equal(Layout((4, 4), lambda i, j: i * 4 + j))


def by_thread(thread, index=None, replicate=1, shape=(32, 4)):
    return Fragment(shape, forward_thread_fn=thread, forward_index_fn=index, replicate=replicate)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ((lambda i, j: i,), (lambda a, b: a,), True),
        ((lambda i, j: i,), (lambda i, j: j,), False),
        ((lambda i, j: i, lambda i, j: j), (lambda i, j: i, lambda r, c: c), True),
        ((lambda i, j: i, lambda i, j: j), (lambda i, j: i, lambda i, j: 3 - j), False),
        ((lambda i, j: i + j, lambda i, j: j), (lambda i, j: j + i, lambda i, j: j), True),
    ],
)
def test_fragments_are_equal_when_threads_and_indices_are(one, other, equal):
    assert by_thread(*one).is_equal(by_thread(*other)) is equal


def test_replication_counts():
    def twice(i, j, rep):
        return i + rep * 32

    one = by_thread(twice, lambda i, j: j, replicate=2)
    assert one.is_equal(by_thread(twice, lambda i, j: j, replicate=2))
    assert not one.is_equal(by_thread(lambda i, j: i, lambda i, j: j))
    assert not one.is_equal(by_thread(twice, lambda i, j: j, replicate=4))


def test_forward_fn_returns_thread_and_index():
    pair = Fragment((32, 4), forward_fn=lambda i, j: (i, j))
    assert pair.is_equal(by_thread(lambda i, j: i, lambda i, j: j))
    assert not pair.is_equal(Fragment((32, 4), forward_fn=lambda i, j: (i, 3 - j)))
    assert pair.map_forward_thread((5, 2)) is not None and pair.get_thread_size() == 32


def test_a_fragment_needs_a_map():
    with pytest.raises((TypeError, ValueError)):
        Fragment((32, 4))
