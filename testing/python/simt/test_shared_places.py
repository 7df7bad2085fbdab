"""Places of shared buffers: those that live together lie apart; what does not fit is refused."""

from __future__ import annotations

import random

import pytest
from lowered import device_function, lowered, run_program
from tvm import tirx as T

import tilelang.language as TL
from tilelang.errors import LoweringError
from tilelang.layout import Layout
from tilelang.transform.simt.shared_memory import plan_shared_memory


def shape(rng, buffers, depth):
    """A random program: names of buffers in order, loops ``("for", ...)`` and branches."""
    steps = []
    for _ in range(rng.randrange(1, 5)):
        kind = rng.random()
        if depth and kind < 0.25:
            steps.append(("for", shape(rng, buffers, depth - 1)))
        elif depth and kind < 0.4:
            steps.append(("if", shape(rng, buffers, depth - 1), shape(rng, buffers, depth - 1)))
        else:
            steps.append(rng.choice(buffers))
    return steps


def statement(steps, buffers):
    made = []
    for step in steps:
        if isinstance(step, int):
            zero = [T.const(0, "int32")]
            made.append(T.BufferStore(buffers[step], T.const(0.0, "float32"), zero))
        elif step[0] == "for":
            made.append(
                T.For(T.Var("k", "int32"), 0, 2, T.ForKind.SERIAL, statement(step[1], buffers))
            )
        else:
            condition = T.LT(T.Var("c", "int32"), T.const(3, "int32"))
            made.append(T.IfThenElse(condition, *(statement(s, buffers) for s in step[1:])))
    return T.SeqStmt(made) if len(made) > 1 else made[0]


def trace(steps, taken):
    """The buffers in the order in which a run touches them; loops run twice."""
    for step in steps:
        if isinstance(step, int):
            yield step
        elif step[0] == "for":
            yield from trace(step[1], taken)
            yield from trace(step[1], taken)
        else:
            yield from trace(step[1 + taken.randrange(2)], taken)


@pytest.mark.parametrize("seed", range(40))
def test_buffers_that_live_together_lie_apart(seed):
    rng = random.Random(seed)
    buffers = [
        T.decl_buffer((rng.randrange(1, 400),), "float32", f"S{n}", scope="shared.dyn", layout=None)
        for n in range(6)
    ]
    steps = shape(rng, range(6), 3)
    body = T.SeqStmt([*[T.AllocBuffer(b) for b in buffers], statement(steps, buffers)])
    plan = plan_shared_memory(body, {}, 1 << 20)
    apart = plan_shared_memory(body, {}, 1 << 20, merge=False)
    for buffer in buffers:
        offset, size = plan.places[buffer]
        assert offset % 128 == 0
        assert size >= 4 * int(buffer.shape[0])
        assert offset + size <= plan.total <= apart.total
    for _ in range(6):
        run = list(trace(steps, rng))
        for one in range(6):
            for other in range(one):
                if one in run and other in run and lives_meet(run, one, other):
                    assert disjoint(plan.places[buffers[one]], plan.places[buffers[other]])
                assert disjoint(apart.places[buffers[one]], apart.places[buffers[other]])


def lives_meet(run, one, other):
    def life(which):
        times = [time for time, buffer in enumerate(run) if buffer == which]
        return times[0], times[-1]

    (first, last), (start, end) = life(one), life(other)
    return first <= end and start <= last


def disjoint(one, other):
    return one[0] + one[1] <= other[0] or other[0] + other[1] <= one[0]


def test_buffers_in_turn_share_a_place():
    first, second = (
        T.decl_buffer((64,), "float32", name, scope="shared.dyn", layout=None) for name in "SZ"
    )
    body = T.SeqStmt(
        [T.AllocBuffer(first), T.AllocBuffer(second), statement([0, 1], [first, second])]
    )
    assert plan_shared_memory(body, {}, 1 << 20).total == 256
    again = T.SeqStmt(
        [T.AllocBuffer(first), T.AllocBuffer(second), statement([0, 1, 0], [first, second])]
    )
    assert plan_shared_memory(again, {}, 1 << 20).total == 512


def test_another_name_lives_as_long_as_its_storage():
    """A tile that is read through a view keeps its place until then."""

    @TL.prim_func
    def program(A: TL.Tensor((64,), "float32"), B: TL.Tensor((8, 8), "float32")):
        with TL.Kernel(1, threads=32):
            tile = TL.alloc_shared((64,), "float32")
            between = TL.alloc_shared((64,), "float32")
            square = TL.view(tile, (8, 8))
            TL.copy(A, tile)
            TL.copy(A, between)
            for i, j in TL.Parallel(8, 8):
                B[i, j] = between[i * 8 + j] * 2
            for i, j in TL.Parallel(8, 8):
                B[i, j] = B[i, j] - square[j, i]

    run_program(program)


def test_storage_with_gaps_gets_its_room():
    buffer = T.decl_buffer((8, 8), "float32", "S", scope="shared.dyn", layout=None)
    layout = Layout([8, 8], lambda i, j: i * 9 + j)
    body = T.SeqStmt(
        [T.AllocBuffer(buffer), T.BufferStore(buffer, T.const(0.0, "float32"), [0, 0])]
    )
    assert plan_shared_memory(body, {buffer: layout}, 1 << 20).places[buffer][1] >= 4 * 71


def two_tiles(rows):
    @TL.prim_func
    def program(A: TL.Tensor((2, rows, 256), "float32"), B: TL.Tensor((rows, 256), "float32")):
        with TL.Kernel(1, threads=128):
            left = TL.alloc_shared((rows, 256), "float32")
            right = TL.alloc_shared((rows, 256), "float32")
            TL.copy(A[0, 0:rows, 0:256], left)
            TL.copy(A[1, 0:rows, 0:256], right)
            for i, j in TL.Parallel(rows, 256):
                B[i, j] = left[i, 255 - j] + right[i, 255 - j]

    return program


@pytest.mark.parametrize(
    ("arch", "rows"),
    [("sm_70", 48), ("sm_75", 32), ("sm_80", 80), ("sm_86", 48), ("sm_89", 48), ("sm_90a", 112)],
)
def test_the_most_shared_memory_of_a_device(arch, rows):
    """``rows`` fit; the message about more names the buffers, their bytes and the limit."""
    assert int(device_function(lowered(two_tiles(rows), arch)).attrs["tl.dyn_smem"]) == rows * 2048
    many = rows + 32
    with pytest.raises(LoweringError) as error:
        lowered(two_tiles(many), arch)
    message = str(error.value)
    limit = {"sm_70": 96, "sm_75": 64, "sm_80": 163, "sm_90a": 227}.get(arch, 99) * 1024
    for text in (
        f"{many * 2048} bytes",
        f"has {limit}",
        f"left {many * 1024}",
        "right",
        "alloc_shared",
    ):
        assert text in message


@pytest.mark.parametrize(
    ("threads", "text"),
    [
        (1056, "1056 threads; sm_80 allows at most 1024"),
        ((1, 1, 65), "65 threads along z; at most 64"),
        ((64, 32, 1), "2048 threads"),
    ],
)
def test_threads_of_a_block(threads, text):
    @TL.prim_func
    def program(B: TL.Tensor((8,), "float32")):
        with TL.Kernel(1, threads=threads):
            for i in TL.Parallel(8):
                B[i] = 1.0

    with pytest.raises(LoweringError, match=text) as error:
        lowered(program)
    assert "TL.Kernel" in str(error.value)


@pytest.mark.parametrize("threads", [1024, (16, 16, 4), (1, 1, 64), 1, 33])
def test_blocks_of_any_legal_size(threads):
    @TL.prim_func
    def program(A: TL.Tensor((70,), "float32"), B: TL.Tensor((70,), "float32")):
        with TL.Kernel(1, threads=threads):
            tile = TL.alloc_shared((70,), "float32")
            TL.copy(A, tile)
            for i in TL.Parallel(70):
                B[i] = tile[69 - i] + 1

    run_program(program)
