"""Fragment: owners and slots, derived slots, replication, checks."""

from __future__ import annotations

import numpy as np
import pytest
import tvm_ffi
from tvm import ir

from tilelang.errors import LayoutError
from tilelang.layout import Fragment, Layout, make_gemm_fragment_8x8
from tilelang.layout.check import check_fragment, check_layout, is_injective, require_injective

ROWS = Fragment([32, 4], forward_thread_fn=lambda i, j: i)


def test_slot_is_what_the_thread_map_does_not_look_at():
    assert ROWS.get_thread_size() == 32
    assert ROWS(3, 2) == [2]
    assert ROWS.map_forward_thread([3, 2]) == 3
    atom = Fragment([8, 8], forward_thread_fn=lambda i, j: i * 4 + j // 2)
    assert atom.is_equal(make_gemm_fragment_8x8())


@pytest.mark.parametrize(
    ("shape", "thread", "slots"),
    [
        ([12, 4], lambda i, j: i // 3 * 4 + j, lambda i, j: i % 3),
        ([6, 4], lambda i, j: i % 2 * 4 + j, lambda i, j: i // 2),
        (
            [16, 16],
            lambda i, j: i % 8 * 4 + j % 8 // 2,
            lambda i, j: i // 8 * 4 + j // 8 * 2 + j % 2,
        ),
        ([4, 4], lambda i, j: i * 4 + j, lambda i, j: 0),
        ([8, 16], lambda i, j: (i ^ (j % 8)) * 8 + j % 8, lambda i, j: j // 8),
    ],
)
def test_derived_slots(shape, thread, slots):
    derived = Fragment(shape, forward_thread_fn=thread)
    explicit = Fragment(shape, forward_thread_fn=thread, forward_index_fn=slots)
    assert derived.is_equal(explicit)


def test_pair_form_and_separate_form_agree():
    pair = Fragment([32, 4], forward_fn=lambda i, j: (i, j))
    assert pair.is_equal(ROWS)
    several = Fragment([32, 4], forward_fn=lambda i, j: (i, [j // 2, j % 2]))
    assert several.get_output_shape() == [2, 2]


def test_replicated_fragments_take_the_copy_last():
    spread = Fragment([32, 4], forward_thread_fn=lambda i, j, rep: i * 4 + rep, replicate=4)
    assert spread.map_forward_thread([2, 1, 3]) == 11
    assert spread.get_thread_size() == 128
    assert len(spread.get_forward_vars()) == 3
    assert spread.thread_table().shape == (4, 32, 4)
    assert spread(2, 1) == [1]


def test_equality_looks_at_threads_slots_and_copies():
    def make(thread, copies=1, slot=None):
        return Fragment([32, 4], forward_thread_fn=thread, replicate=copies, forward_index_fn=slot)

    base = make(lambda i, j: i * 4 + j)
    assert base.is_equal(make(lambda a, b: b + 4 * a))
    assert not base.is_equal(make(lambda i, j: j * 4 + i))
    assert not base.is_equal(make(lambda i, j: i * 4 + j, slot=lambda i, j: i))
    four = make(lambda i, j, rep: i * 4 + rep, 4)
    assert four.is_equal(make(lambda i, j, rep: rep + i * 4, 4))
    assert not four.is_equal(make(lambda i, j, rep: i * 4 + rep, 2))
    assert not base.is_equal(Layout([32, 4], lambda i, j: 0))


def test_repeat_on_slots_and_on_threads():
    slots = ROWS.repeat([2, 1])
    assert slots.is_equal(Fragment([64, 4], lambda i, j: (i % 32, i // 32 * 4 + j)))
    threads = ROWS.repeat([2, 1], repeat_on_thread=True)
    assert threads.is_equal(Fragment([64, 4], lambda i, j: (i, j)))


def test_repeat_order():
    atom = Fragment([2, 2], forward_thread_fn=lambda i, j: i * 2 + j)
    low = atom.repeat([2, 2], lower_dim_first=True)
    assert low(0, 2) == [1]
    assert low(2, 0) == [2]
    high = atom.repeat([2, 2], lower_dim_first=False)
    assert high(0, 2) == [2]
    assert high(2, 0) == [1]


def test_replicate_and_condense():
    copies = ROWS.replicate(2)
    assert copies.get_thread_size() == 64
    assert copies.map_forward_thread([3, 0, 1]) == 35
    assert copies.replicate(2).map_forward_thread([3, 0, 3]) == 32 * 3 + 3
    same = Fragment([32, 4], forward_thread_fn=lambda i, j, rep: i + rep % 2 * 32, replicate=8)
    assert same.condense_rep_var().is_equal(copies)
    assert copies.condense_rep_var() is copies


def test_condense_to_one_copy():
    idle = Fragment([12, 4], forward_thread_fn=lambda i, j, rep: i // 3 * 4 + j, replicate=4)
    condensed = idle.condense_rep_var()
    assert condensed.replicate_size == 1
    assert condensed.is_equal(Fragment([12, 4], lambda i, j: (i // 3 * 4 + j, i % 3)))


def test_completely_replicated():
    everywhere = Fragment([4], forward_thread_fn=lambda i, rep: rep, replicate=8)
    assert everywhere.is_completely_replicated()
    assert not ROWS.is_completely_replicated()


def test_reshape_and_expand():
    assert ROWS.reshape([128]).is_equal(Fragment([128], lambda k: (k // 4, k % 4)))
    halves = ROWS.reshape([32, 8], 2, 1)
    assert halves.is_equal(Fragment([32, 8], lambda i, j: (i, j)))
    expanded = ROWS.expand([2])
    assert expanded.is_equal(Fragment([2, 32, 4], lambda b, i, j: (i, [b, j])))


def test_inverse_finds_the_element_of_a_slot():
    inverse = make_gemm_fragment_8x8().inverse()
    assert inverse.get_input_shape() == [2, 32]
    assert inverse(1, 5) == [1, 3]
    copies = ROWS.replicate(2).inverse()
    assert copies(3, 32 + 7) == [7, 3, 1]


def test_fragments_ride_in_the_ir():
    other = Fragment([32, 4], forward_thread_fn=lambda a, b: a)
    assert tvm_ffi.structural_equal(ROWS, other)
    loaded = ir.load_json(ir.save_json(ROWS))
    assert isinstance(loaded, Fragment)
    assert loaded.is_equal(ROWS)


def test_valid_fragments_pass_the_checks():
    check_fragment(ROWS, [32, 4], 32, "layout of 'x'")
    check_fragment(ROWS.replicate(4), [32, 4], 128, "layout of 'x'")
    assert is_injective(ROWS)


def test_copies_on_one_thread_are_no_collision():
    idle = Fragment([4], forward_thread_fn=lambda i, rep: i, replicate=2)
    require_injective(idle, "layout of 'x'")


def test_injectivity_agrees_with_a_set():
    for seed in range(20):
        a, b, c = np.random.default_rng(seed).integers(1, 9, 3)
        layout = Layout([5, 6], lambda i, j, a=a, b=b, c=c: [i * int(a) + j * int(b), j % int(c)])
        places = {tuple(layout(i, j)) for i, j in np.ndindex(5, 6)}
        assert is_injective(layout) == (len(places) == 30)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs forward_fn or forward_thread_fn"),
        ({"forward_thread_fn": lambda i, j: i, "replicate": 0}, "positive integer, found 0"),
    ],
)
def test_bad_construction(arguments, message):
    with pytest.raises(LayoutError, match=message):
        Fragment([4, 4], **arguments)


def test_slots_must_not_depend_on_the_copy():
    with pytest.raises(TypeError, match="depends on 'rep'"):
        Fragment([4], forward_fn=lambda i, rep: (rep, i + rep), replicate=2)


def test_owner_outside_the_block():
    with pytest.raises(LayoutError, match=r"element \(16, 0\) belongs to thread 16.*16 threads"):
        check_fragment(ROWS, [32, 4], 16, "layout of 'x'")


def test_two_elements_in_one_slot():
    bad = Fragment([32, 4], forward_fn=lambda i, j: (i, j // 2))
    with pytest.raises(LayoutError, match=r"\(0, 0\) and \(0, 1\) share slot \(0,\) of thread 0"):
        check_fragment(bad, [32, 4], 32, "layout of 'x'")


def test_wrong_shape_and_negative_index():
    with pytest.raises(LayoutError, match=r"has shape \(32, 4\), the buffer has \(32, 8\)"):
        check_layout(ROWS, [32, 8], "layout of 'x'")
    with pytest.raises(LayoutError, match=r"element \(0,\) has the negative index -1"):
        check_layout(Layout([4], lambda i: i - 1), [4], "layout of 'x'")


def test_joined_elements_of_several_threads():
    with pytest.raises(LayoutError, match="span several threads"):
        Fragment([8, 2], forward_fn=lambda i, j: (i * 2 + j, j)).reshape([8, 1], 1, 2)


def test_wrong_number_of_indices():
    with pytest.raises(LayoutError, match="rank 2 got 3 indices"):
        ROWS.map_forward_thread([0, 0, 0])
    with pytest.raises(LayoutError, match="1 factors for a fragment of rank 2"):
        ROWS.repeat([2])
