"""Distributions of tiles over threads, against the sets of owners that their digits mean."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from owner_sets import distributions, elements, holders

from tilelang.errors import LayoutError
from tilelang.layout import Fragment
from tilelang.layout.distribution import COPY, Distribution, Part, dense, from_fragment

quick = settings(
    max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def slots_of(tile):
    """The digits of every slot number, lowest digit first."""
    return [d[::-1] for d in itertools.product(*(range(p.extent) for p in reversed(tile.slots)))]


@quick
@given(distributions())
def test_every_element_has_one_place(tile):
    """A thread and a slot hold at most one element, and every owner has it in the same slot."""
    held = holders(tile)
    places = {}
    for index in elements(tile.shape):
        slot = tile.slot_of(index)
        assert 0 <= slot < tile.num_slots
        assert tile.thread_of(index) == min(held[index])
        for thread in held[index]:
            assert places.setdefault((thread, slot), index) == index


@quick
@given(distributions())
def test_the_inverse_finds_every_element(tile):
    """From thread and slot back to the index; places without an element lie outside of the tile."""
    held = holders(tile)
    found = {index: set() for index in held}
    for thread in range(tile.num_threads):
        for slot, digits in enumerate(slots_of(tile)):
            index = tuple(tile.indices_of(thread, digits))
            if all(i < e for i, e in zip(index, tile.shape, strict=True)):
                assert tile.slot_of(index) == slot
                found[index].add(thread)
            else:
                assert all(i < tile.covered(a) for a, i in enumerate(index))
    assert found == held


@quick
@given(distributions(rank=2), st.permutations([0, 1, 2]))
def test_onto_renames_axes_and_drops_the_others(tile, order):
    """Of a dropped axis every value's owners hold the rest."""
    for kept in ({0: 0}, {1: 0}, {0: order[0], 1: order[1]}, {}):
        shape = [1] * 3
        for axis, to in kept.items():
            shape[to] = tile.shape[axis]
        if 0 < len(kept) < 2:
            shape = shape[:1]
        result = tile.onto(kept, shape)
        everywhere = {}
        for index, threads in holders(full(tile)).items():
            target = [0] * len(shape)
            for axis, to in kept.items():
                target[to] = index[axis]
            everywhere.setdefault(tuple(target), set()).update(threads)
        assert holders(full(result)) == everywhere


def full(tile):
    """The same digits over all that they reach, padding too."""
    shape = tuple(tile.covered(axis) for axis in range(len(tile.shape)))
    return Distribution(shape, tile.threads, tile.slots)


@st.composite
def pairs(draw):
    """Two distributions of one shape; often they have digits in common."""
    first = draw(distributions())
    if draw(st.booleans()):
        return first, draw(distributions(shape=first.shape))
    moved = list(first.threads)
    for number in range(len(moved)):
        if draw(st.booleans()) and moved[number].axis == COPY:
            moved[number] = Part(COPY, 1, moved[number].extent, moved[number].stride)
    spare = [(COPY, 1, 2)] if draw(st.booleans()) else []
    threads = dense([*[(p.axis, p.divisor, p.extent) for p in moved], *spare])
    return first, Distribution(first.shape, threads, first.slots)


@quick
@given(pairs())
def test_holds_for_is_never_wrong(pair):
    """If it says so, whoever runs an iteration holds the element it reads."""
    tile, loop = pair
    if tile.holds_for(loop):
        held, run = holders(tile), holders(loop)
        assert all(run[index] <= held[index] for index in held)


@quick
@given(pairs())
def test_written_by_is_never_wrong(pair):
    """If it says so, the threads that run an iteration are the owners of what it writes."""
    tile, loop = pair
    if tile.written_by(loop):
        assert holders(tile) == holders(loop)


@quick
@given(distributions(), st.integers(2, 4))
def test_a_distribution_serves_its_own_loop(tile, copies):
    """Reading and writing as distributed is possible, also with the digits split or copied."""
    assert tile.holds_for(tile) and tile.written_by(tile)
    split = []
    for part in tile.threads:
        if part.extent == 4:
            split += [(part.axis, part.divisor, 2), (part.axis, part.divisor * 2, 2)]
        else:
            split.append((part.axis, part.divisor, part.extent))
    same = Distribution(tile.shape, dense(split), tile.slots)
    assert same.owners == tile.owners
    assert tile.holds_for(same) and tile.written_by(same)
    more = Distribution(tile.shape, dense([*split, (COPY, 1, copies)]), tile.slots)
    assert not tile.written_by(more)
    assert not more.written_by(tile)


def test_threads_that_hold_nothing_do_not_run_iterations():
    tile = Distribution((8,), dense([(0, 1, 4)]), dense([(0, 4, 2)]))
    wide = Distribution((8,), dense([(0, 1, 8)]), ())
    assert not tile.holds_for(Distribution((8,), dense([(0, 2, 4)]), dense([(0, 1, 2)])))
    assert not tile.written_by(wide)
    assert not wide.holds_for(tile)


def test_replicated_tiles_are_recognised():
    everywhere = Distribution((5,), dense([(COPY, 1, 32)]), dense([(0, 1, 5)]))
    assert everywhere.is_replicated(32)
    assert not everywhere.is_replicated(33)
    assert not Distribution(
        (4,), dense([(0, 1, 2), (COPY, 1, 16)]), dense([(0, 2, 2)])
    ).is_replicated(32)


@quick
@given(distributions())
def test_fragments_say_the_same_owners(tile):
    """The public form: its table of threads and slots."""
    fragment = tile.fragment()
    threads, slots = fragment.thread_table(), fragment.table()
    assert threads.shape == (fragment.replicate_size, *tile.shape)
    for index, owners in holders(tile).items():
        assert {int(t) for t in threads[(slice(None), *index)]} == set(owners)
        assert int(slots[0][index]) == tile.slot_of(index)


@quick
@given(distributions(rank=2).map(full))
def test_fragments_of_whole_digits_are_read_back(tile):
    """Without padding a fragment tells everything."""
    back = from_fragment(tile.fragment())
    assert back.same_as(tile)
    assert holders(back) == holders(tile)
    assert all(back.slot_of(i) == tile.slot_of(i) for i in elements(tile.shape))


@quick
@given(distributions())
def test_any_fragment_is_read_or_refused(tile):
    """Where the fragment leaves gaps in the thread number, threads in them hold copies."""
    fragment = tile.fragment()
    try:
        back = from_fragment(fragment)
    except LayoutError:
        return
    table = fragment.thread_table()
    for index, threads in holders(back).items():
        given = {int(t) for t in table[(slice(None), *index)]}
        assert given <= threads
        assert min(given) == min(threads)
        assert back.slot_of(index) == fragment.table()[0][index]


@pytest.mark.parametrize(
    ("fragment", "threads", "slots"),
    [
        (Fragment([129], forward_fn=lambda i: (i % 128, i // 128)), 128, 2),
        (Fragment([96], forward_fn=lambda i: (i // 3, i % 3)), 32, 3),
        (Fragment([4, 8], forward_fn=lambda i, j: (i + j // 2 * 4, j % 2)), 16, 2),
        (Fragment([8], forward_fn=lambda i, rep: (i + rep * 8, 0), replicate=4), 32, 1),
        (Fragment([8], forward_fn=lambda i, rep: (i * 6 + rep, 0), replicate=6), 48, 1),
    ],
)
def test_layouts_that_people_write(fragment, threads, slots):
    tile = from_fragment(fragment)
    assert (tile.num_threads, tile.num_slots) == (threads, slots)
    for index, owners in holders(tile).items():
        assert owners == {int(t) for t in fragment.thread_table()[(slice(None), *index)]}


NO_DIGITS = {
    "reversed": Fragment([8], forward_fn=lambda i: (7 - i, 0)),
    "shifted": Fragment([8], forward_fn=lambda i: ((i + 1) % 8, 0)),
    "exclusive or": Fragment([4, 4], forward_fn=lambda i, j: (i * 4 + (i ^ j), 0)),
    "slots reversed": Fragment([8], forward_fn=lambda i: (i % 2, 3 - i // 2)),
    "slots with a gap": Fragment([8], forward_fn=lambda i: (i % 2, i // 2 * 2)),
}


@pytest.mark.parametrize("name", NO_DIGITS)
def test_fragments_that_are_no_digits_are_refused(name):
    with pytest.raises(LayoutError):
        from_fragment(NO_DIGITS[name])


@pytest.mark.parametrize(
    ("threads", "slots", "text"),
    [
        ([Part(0, 1, 4, 2)], [Part(0, 4, 2, 1)], "gaps"),
        ([Part(0, 1, 4, 1)], [Part(0, 4, 2, 2)], "gaps"),
        ([Part(0, 1, 4, 1)], [], "covered up to 4 of 8"),
        ([Part(0, 1, 4, 1)], [Part(0, 2, 4, 1)], "overlap"),
        ([Part(0, 2, 4, 1)], [], "overlap"),
    ],
)
def test_digits_that_do_not_fit_are_refused(threads, slots, text):
    with pytest.raises(LayoutError, match=text):
        Distribution((8,), tuple(threads), tuple(slots))
