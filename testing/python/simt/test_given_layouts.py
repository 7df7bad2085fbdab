"""Layouts of tiles that the user gives: followed exactly, or refused with what stands against."""

from __future__ import annotations

import pytest
from inferred import inferred
from lowered import lowered, run_program
from owner_sets import holders

import tilelang.language as T
from tilelang.errors import LayoutError

FOLLOWED = {
    "columns first": (T.Fragment([8, 12], forward_fn=lambda i, j: (i + j % 4 * 8, j // 4)), 32),
    "rows": (T.Fragment([8, 12], forward_fn=lambda i, j: (i, j)), 32),
    "pairs": (T.Fragment([8, 12], forward_fn=lambda i, j: (i * 6 + j // 2, j % 2)), 48),
    "copies": (T.Fragment([8, 12], forward_fn=lambda i, j, r: (i + r * 8, j), replicate=4), 32),
    "few threads": (T.Fragment([8, 12], forward_fn=lambda i, j: (i % 4, i // 4 * 12 + j)), 64),
    "slots turned": (T.Fragment([8, 12], forward_fn=lambda i, j: (j, i)), 33),
}  # fmt: skip


def around(layout, threads, n=12):
    """The tile is copied, changed, reduced along both axes, and used with other tiles."""

    @T.prim_func
    def program(A: T.Tensor((8, n), "float32"), B: T.Tensor((8, n), "float32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((8, n), "float32")
            y = T.alloc_fragment((8, n), "float32")
            rows = T.alloc_fragment((8,), "float32")
            columns = T.alloc_fragment((n,), "float32")
            T.annotate_layout({x: layout})
            T.copy(A, x)
            for i, j in T.Parallel(8, n):
                x[i, j] = x[i, j] + i
            T.reduce_sum(x, rows, dim=1)
            T.reduce_sum(x, columns, dim=0)
            for i, j in T.Parallel(8, n):
                y[i, j] = x[i, j] * rows[i] - columns[j]
            T.copy(y, B)

    return program


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_layout_is_followed(name):
    layout, threads = FOLLOWED[name]
    program = around(layout, threads)
    _, found, _ = inferred(program)
    (tile,) = [tile for buffer, tile in found.tiles.items() if buffer.name == "x"]
    table = layout.thread_table()
    for index, owners in holders(tile).items():
        assert owners == {int(t) for t in table[(slice(None), *index)]}
        slots = [int(row[index]) for row in layout.table()]
        flat = 0
        for slot, extent in zip(slots, layout.get_output_shape(), strict=True):
            flat = flat * extent + slot
        assert tile.slot_of(index) == flat
    assert "x" not in {str(buffer.name) for buffer in found.spilled}
    run_program(program)


def one_tile(layout, threads=32):
    @T.prim_func
    def program(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((8,), "float32")
            T.annotate_layout({x: layout})
            T.copy(A, x)
            T.copy(x, B)

    return program


@pytest.mark.parametrize(
    ("layout", "threads", "text"),
    [
        (lambda i: (i * 8, 0), 32, "belongs to thread 32"),
        (lambda i: (i % 4, 0), 32, "share slot"),
        (lambda i: (7 - i, 0), 32, "layout given to x.*sum of index digits"),
        (lambda i: (i % 3 * 3 + i // 3, 0), 8, "layout given to x.*9 threads.*block has 8"),
    ],
)
def test_a_layout_that_a_block_cannot_have_is_refused(layout, threads, text):
    with pytest.raises(LayoutError, match=text) as error:
        lowered(one_tile(T.Fragment([8], forward_fn=layout), threads))
    assert "x" in str(error.value)
    assert "test_given_layouts.py" in str(error.value)


def test_two_given_layouts_that_disagree_are_both_named():
    """``x`` is in threads 0 to 3 alone, the loop over ``y`` runs in all."""

    @T.prim_func
    def program(
        A: T.Tensor((4,), "float32"), Y: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32")
    ):
        with T.Kernel(1, threads=32):
            x = T.alloc_fragment((4,), "float32")
            y = T.alloc_fragment((4, 8), "float32")
            T.annotate_layout({
                x: T.Fragment([4], forward_fn=lambda i: (i, 0)),
                y: T.Fragment([4, 8], forward_fn=lambda i, j: (i + 4 * j, 0)),
            })  # fmt: skip
            T.copy(A, x)
            T.copy(Y, y)
            for i, j in T.Parallel(4, 8):
                y[i, j] = y[i, j] + x[i]
            T.copy(y, B)

    with pytest.raises(LayoutError) as error:
        lowered(program)
    message = str(error.value)
    assert "x cannot have the layout Fragment([4]" in message
    assert "y, Fragment([4, 8]" in message
    assert "y[i, j] = y[i, j] + x[i]" in message


def test_a_copy_in_every_thread_agrees_with_any_loop():
    """The same program with a copy of ``x`` in each group of threads."""

    @T.prim_func
    def program(
        A: T.Tensor((4,), "float32"), Y: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32")
    ):
        with T.Kernel(1, threads=32):
            x = T.alloc_fragment((4,), "float32")
            y = T.alloc_fragment((4, 8), "float32")
            T.annotate_layout({
                x: T.Fragment([4], forward_fn=lambda i, rep: (i + 4 * rep, 0), replicate=8),
                y: T.Fragment([4, 8], forward_fn=lambda i, j: (i + 4 * j, 0)),
            })  # fmt: skip
            T.copy(A, x)
            T.copy(Y, y)
            for i, j in T.Parallel(4, 8):
                y[i, j] = y[i, j] + x[i]
            T.copy(y, B)

    run_program(program)


def accumulator(layout):
    @T.prim_func
    def program(
        A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 8), "float16"),
        C: T.Tensor((16, 8), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((16, 16), "float16")
            b = T.alloc_shared((16, 8), "float16")
            c = T.alloc_fragment((16, 8), "float32")
            T.annotate_layout({c: layout})
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, clear_accum=True)
            T.copy(c, C)

    return program


def test_an_accumulator_may_be_given_the_layout_of_its_instruction():
    layout = T.Fragment([16, 8], forward_fn=lambda i, j: (i % 8 * 4 + j // 2, i // 8 * 2 + j % 2))
    run_program(accumulator(layout))


def test_an_accumulator_with_another_layout_is_refused():
    layout = T.Fragment([16, 8], forward_fn=lambda i, j: (i * 2 + j // 4, j % 4))
    with pytest.raises(LayoutError, match=r"c cannot have the layout .* as C of T.gemm") as error:
        lowered(accumulator(layout))
    assert "T.gemm(a, b, c" in str(error.value)


def test_an_element_that_every_thread_needs_is_refused():
    layout = T.Fragment([8], forward_fn=lambda i: (i, 0))

    @T.prim_func
    def program(A: T.Tensor((8,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            x = T.alloc_fragment((8,), "float32")
            T.annotate_layout({x: layout})
            T.copy(A, x)
            for i in T.Parallel(32):
                B[i] = x[3]

    with pytest.raises(LayoutError, match=r"x cannot have the layout .* x is read by") as error:
        lowered(program)
    assert "B[i] = x[3]" in str(error.value)


def test_a_given_loop_layout_decides_the_tiles():
    layout = T.Fragment([8, 8], forward_fn=lambda i, j: (j * 4 + i // 2, i % 2))

    @T.prim_func
    def program(A: T.Tensor((8, 8), "float32"), B: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=32):
            x = T.alloc_fragment((8, 8), "float32")
            T.copy(A, x, loop_layout=layout)
            T.copy(x, B)

    _, found, _ = inferred(program)
    (tile,) = found.tiles.values()
    for index, owners in holders(tile).items():
        assert owners == {int(layout.thread_table()[(0, *index)])}
    run_program(program)
