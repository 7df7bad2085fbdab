"""How values move between iteration domains, and conflicts between iterations."""

import numpy as np
import pytest

from tilelang.interpreter.conflicts import Conflict, TouchLog
from tilelang.interpreter.domain import Divergent, Domain


def test_uniform_values_are_seen_as_they_are():
    threads = Domain("threads", (4,))
    nest = threads.nest((2, 3), np.True_)
    assert nest.seen(5, threads) == 5


def test_parallel_axes_come_last():
    outer = Domain("block").nest((2,), np.True_)
    inner = outer.nest((3, 4), np.True_)
    assert inner.shape == (2, 3, 4)
    assert inner.seen(np.arange(2), outer).shape == (2, 1, 1)


def test_a_collective_construct_sees_what_its_threads_agree_on():
    threads = Domain("threads", (4,))
    entered = np.array([False, True, True, False])
    nest = threads.nest((8,), entered)
    assert nest.seen(np.array([0, 7, 7, 9]), threads) == 7
    with pytest.raises(Divergent):
        nest.seen(np.array([0, 7, 8, 9]), threads)


def test_points_pick_their_own_value():
    threads = Domain("threads", (3,))
    points = list(threads.points(np.array([True, False, True])))
    assert [p.seen(np.array([5, 6, 7]), threads) for p in points] == [5, 7]


def test_vectors_keep_their_lanes():
    nest = Domain("block").nest((2,), np.True_)
    inner = nest.nest((3,), np.True_)
    vector = np.zeros((2, 4))
    assert inner.seen(vector, nest, lanes=1).shape == (2, 1, 4)
    assert inner.seen(np.zeros(4), nest, lanes=1).shape == (4,)


def log_of(*steps):
    log = TouchLog()
    for kind, elements, iterations in steps:
        getattr(log, kind)(np.array(elements), np.array(iterations))
    return log


def test_iterations_may_use_their_own_elements():
    log_of(("read", [5, 6], [0, 1]), ("write", [5, 6], [0, 1]), ("write", [5, 6], [0, 1]))


def test_many_iterations_may_read_one_element():
    log_of(("read", [5, 5, 5], [0, 1, 2]), ("write", [6], [0]))


@pytest.mark.parametrize(
    "steps",
    [
        [("write", [5, 5], [0, 1])],
        [("write", [5], [0]), ("write", [5], [1])],
        [("write", [5], [0]), ("read", [5], [1])],
        [("read", [5], [0]), ("write", [5], [1])],
        [("read", [5, 5], [0, 1]), ("write", [5], [0])],
        [("write", [900], [0]), ("write", [3, 900], [1, 1])],
    ],
)
def test_a_write_and_another_iteration_conflict(steps):
    with pytest.raises(Conflict):
        log_of(*steps)
