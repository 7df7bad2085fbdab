"""Barriers: every dependence between threads is ordered, and simple programs have no more.

The block machine refuses a kernel in which two threads touch one byte between two barriers, one of
them writing, whatever the schedule; see ``block_memory``.
"""

from __future__ import annotations

import numpy as np
import pytest
from barrier_mutants import barriers_of, without_barrier
from block_machine import BlockMachine
from block_memory import Race
from exchange_programs import exchange_program, traced
from lowered import arrays_of, device_function, lowered, run_program

import tilelang.language as T
from tilelang.errors import LoweringError

FLAGS = np.array([1, 0, 1, -1, 2, 0, 0, 3], np.int32)


def exchanged(seed):
    """A random program and its data."""
    text, n = exchange_program(seed)
    order = np.random.default_rng(seed).permutation(n).astype(np.int32)
    return traced(text, f"<exchange {seed}>"), {"X": order, "G": FLAGS}


@pytest.mark.parametrize("seed", range(36))
def test_random_programs_are_ordered(seed):
    """Loops, branches, ``while`` and pipelines of 1 to 4 stages with 0 to 3 trips."""
    program, data = exchanged(seed)
    run_program(program, **data)


@pytest.mark.parametrize("seed", [0, 5, 8, 11])
def test_the_machine_misses_no_missing_barrier(seed):
    """Without any of its barriers a program races, or that barrier is not needed for its data."""
    program, data = exchanged(seed)
    artifact = lowered(program)
    func = device_function(artifact)
    raced = 0
    for number in range(barriers_of(func)):
        tensors = {**arrays_of(artifact), **data}
        try:
            BlockMachine(without_barrier(func, number), tensors).run_grid((2, 1, 1))
        except Race:
            raced += 1
    assert raced >= 2


N = 64


def simple(body):
    """A kernel around ``body(A, B, S, Z)``: tensors and two shared tiles."""
    text = "\n".join("        " + line for line in body.strip("\n").splitlines())
    source = f"""
import tilelang.language as T

@T.prim_func
def program(A: T.Tensor((8, {N}), "int32"), B: T.Tensor((8, {N}), "int32")):
    with T.Kernel(1, threads={N}) as bx:
        S = T.alloc_shared(({N},), "int32")
        Z = T.alloc_shared(({N},), "int32")
{text}
"""
    return traced(source, f"<{abs(hash(body))}>")


LOOP = f"for i in T.Parallel({N}): "
#: Name: (statements, barriers).
COUNTED = {
    "nothing shared": (f"{LOOP}B[0, i] = A[0, i] + 1", 0),
    "one exchange": (f"{LOOP}S[i] = A[0, i]\n{LOOP}B[0, i] = S[{N - 1} - i]", 1),
    "two tiles, one barrier": (
        f"{LOOP}S[i] = A[0, i]\n{LOOP}Z[i] = A[1, i]\n"
        f"{LOOP}B[0, i] = S[{N - 1} - i] + Z[(i + 1) % {N}]",
        1,
    ),
    "read twice": (
        f"{LOOP}S[i] = A[0, i]\n{LOOP}B[0, i] = S[{N - 1} - i]\n{LOOP}B[1, i] = S[(i + 1) % {N}]",
        1,
    ),
    "write after read": (
        f"{LOOP}S[i] = A[0, i]\n{LOOP}B[0, i] = S[{N - 1} - i]\n{LOOP}S[i] = A[1, i]\n"
        f"{LOOP}B[1, i] = S[{N - 1} - i]",
        3,
    ),
    "written, never read": (f"{LOOP}S[i] = A[0, i]", 0),
    "back and forth": (
        f"{LOOP}S[i] = A[0, i]\n{LOOP}Z[i] = S[{N - 1} - i]\n{LOOP}S[i] = Z[{N - 1} - i]\n"
        f"{LOOP}B[0, i] = S[{N - 1} - i]",
        3,
    ),
    "two barriers in a loop": (
        f"for k in T.serial(3):\n    {LOOP}S[i] = A[k, i]\n    {LOOP}B[k, i] = S[{N - 1} - i]",
        2,
    ),
    "versions by turns": (
        f"D = T.alloc_shared((2, {N}), \"int32\")\nfor k in T.serial(4):\n"
        f"    {LOOP}D[k % 2, i] = A[k, i]\n    {LOOP}B[k, i] = D[k % 2, {N - 1} - i]",
        1,
    ),
    "only read in a loop": (
        f"{LOOP}S[i] = A[0, i]\nfor k in T.serial(3):\n    {LOOP}B[k, i] = S[{N - 1} - i] + k",
        1,
    ),
    "written before a branch": (
        f"{LOOP}S[i] = A[0, i]\nif bx == 0:\n    {LOOP}B[0, i] = S[{N - 1} - i]",
        1,
    ),
    "both branches": (
        f"{LOOP}S[i] = A[0, i]\nif A[0, 0] > 0:\n    {LOOP}B[0, i] = S[{N - 1} - i]\n"
        f"else:\n    {LOOP}B[1, i] = S[(i + 1) % {N}]",
        2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_barriers_where_they_are_needed_and_nowhere_else(name):
    body, count = COUNTED[name]
    program = simple(body)
    assert barriers_of(device_function(lowered(program))) == count
    run_program(program)


@pytest.mark.parametrize("name", [n for n, (_, count) in COUNTED.items() if count])
def test_no_barrier_of_a_simple_program_can_go(name):
    artifact = lowered(simple(COUNTED[name][0]))
    func = device_function(artifact)
    unused = []
    for number in range(barriers_of(func)):
        try:
            tensors = {**arrays_of(artifact), "B": np.zeros((8, N), np.int32)}
            tensors["A"][0, 0] = 1
            BlockMachine(without_barrier(func, number), tensors).run_grid((1, 1, 1))
            tensors["A"][0, 0] = -1
            BlockMachine(without_barrier(func, number), tensors).run_grid((1, 1, 1))
        except Race:
            continue
        unused.append(number)
    assert unused == []


@pytest.mark.parametrize("trips", range(6))
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_pipelines_of_any_length(stages, trips):
    """Two tiles, one of them reversed; a third is filled from both."""

    @T.prim_func
    def program(A: T.Tensor((8, N), "int32"), B: T.Tensor((8, N), "int32")):
        with T.Kernel(1, threads=N):
            first = T.alloc_shared((N,), "int32")
            second = T.alloc_shared((N,), "int32")
            both = T.alloc_shared((N,), "int32")
            T.clear(both)
            for k in T.Pipelined(trips, num_stages=stages):
                T.copy(A[k, 0:N], first)
                T.copy(A[k + 1, 0:N], second)
                for i in T.Parallel(N):
                    both[i] = both[i] * 3 + first[N - 1 - i] - second[(i + 1) % N]
            for i in T.Parallel(N):
                B[0, i] = both[N - 1 - i]

    run_program(program)


@pytest.mark.parametrize(
    ("rows", "written", "read"),
    [
        (32, "k % 32", "(k + 16) % 32"), (24, "k % 24", "(k + 12) % 24"), (48, "k", "k - 10"),
        (48, "k", "k - 1"), (6, "k % 6", "(k + 2) % 6"), (48, "47 - k", "47 - k + 9"),
    ],
)  # fmt: skip
def test_versions_that_come_back_many_iterations_later(rows, written, read):
    """What is read was written some iterations ago, and each iteration writes another row."""
    body = f"""
D = T.alloc_shared(({rows}, {N}), "int32")
for k in T.serial(48):
    for i in T.Parallel({N}):
        D[{written}, i] = A[k % 8, i] + k
    if k >= 24:
        for i in T.Parallel({N}):
            B[k % 8, i] = D[{read}, {N - 1} - i]
"""
    run_program(simple(body))


def test_while_with_a_shared_condition():
    @T.prim_func
    def program(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            left = T.alloc_shared((1,), "int32")
            tile = T.alloc_shared((N,), "int32")
            other = T.alloc_shared((N,), "int32")
            T.copy(A, tile)
            left[0] = 5
            while left[0] > 0:
                for i in T.Parallel(N):
                    other[i] = tile[N - 1 - i] + left[0]
                for i in T.Parallel(N):
                    tile[i] = other[(i + 1) % N]
                left[0] = left[0] - 2
            T.copy(tile, B)

    run_program(program)


def test_a_row_of_an_outer_loop_is_used_again_in_an_inner_one():
    @T.prim_func
    def program(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            tile = T.alloc_shared((2, N), "int32")
            total = T.alloc_fragment((N,), "int32")
            T.clear(total)
            for n in T.serial(2):
                for k in T.serial(3):
                    for i in T.Parallel(N):
                        tile[n, i] = A[i] + k
                    for i in T.Parallel(N):
                        total[i] += tile[n, N - 1 - i]
            T.copy(total, B)

    run_program(program)


# -- programs written for threads -----------------------------------------------------------------


def test_threads_exchange_in_a_loop():
    @T.prim_func
    def program(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((N,), "int32")
            tile[tx] = A[tx]
            for k in T.serial(4):
                value = T.alloc_var("int32")
                value = tile[(tx + 1) % N] + k
                tile[tx] = value
            B[tx] = tile[N - 1 - tx]

    run_program(program)


def test_a_branch_of_some_threads_is_ordered_with_what_is_around_it():
    @T.prim_func
    def program(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((N,), "int32")
            tile[tx] = A[tx]
            if tx < 8:
                B[tx] = tile[N - 1 - tx]
            if tx >= 8:
                tile[tx] = tx
            B[tx] = tile[(tx + 9) % N] + tile[0]

    run_program(program)


ALONE = {
    "never": "for q in T.serial(0):\n    S[(tx + q) % 64] = S[tx] + q",
    "loop": "for q in T.serial(tx % 3):\n    v = v + S[(tx + q) % 64]",
    "branch with a loop": "if tx < 9:\n    for q in T.serial(3):\n        v = v + S[63 - tx - q]",
    "while": "while v < tx:\n    v = v + S[63 - tx] * S[63 - tx] + 1",
    "versions": "for q in T.serial(tx % 3):\n    v = v + D[q % 2, 63 - tx]",
    "early": "for q in T.serial(5):\n    if v > tx:\n        break\n    v = v + S[63 - tx] + 7",
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_threads_may_read_alone_behind_one_barrier(name):
    """What they read was written before, and is written again behind."""
    body = "\n".join("        " + line for line in ALONE[name].splitlines())
    text = f"""
import tilelang.language as T

@T.prim_func
def program(A: T.Tensor(({N},), "int32"), B: T.Tensor(({N},), "int32")):
    with T.Kernel(1, threads={N}):
        tx = T.get_thread_binding()
        S = T.alloc_shared(({N},), "int32")
        D = T.alloc_shared((2, {N}), "int32")
        v = T.alloc_var("int32")
        v = 1
        S[tx] = A[tx]
        D[0, tx] = A[tx] * 2
        D[1, tx] = A[tx] * 3
{body}
        S[tx] = v
        D[1, tx] = v
        B[tx] = S[{N - 1} - tx] + D[1, {N - 1} - tx]
"""
    run_program(traced(text, f"<alone {name}>"))


DIVERGENT = {
    "branch": """
            if tx < 8:
                tile[tx] = A[tx]
                B[tx] = tile[7 - tx]
""",
    "loop": """
            for k in T.serial(tx % 4):
                tile[tx] = A[tx] + k
                B[tx] = tile[(tx + 1) % 64]
""",
    "data": """
            if A[tx] > 0:
                tile[tx] = A[tx]
                B[tx] = tile[(tx + 1) % 64]
""",
    "early exit": """
            for k in T.serial(4):
                tile[tx] = A[tx] + k
                if A[tx] > k:
                    break
                B[tx] = tile[(tx + 1) % 64]
""",
    "register": """
            mine = T.alloc_var("int32")
            mine = A[tx]
            if mine > 0:
                tile[tx] = A[tx]
                B[tx] = tile[(tx + 1) % 64]
""",
}


@pytest.mark.parametrize("name", DIVERGENT)
def test_an_exchange_among_some_threads_is_refused(name):
    head = f"""
import tilelang.language as T

@T.prim_func
def program(A: T.Tensor(({N},), "int32"), B: T.Tensor(({N},), "int32")):
    with T.Kernel(1, threads={N}):
        tx = T.get_thread_binding()
        tile = T.alloc_shared(({N},), "int32")
        if True:
"""
    program = traced(head + DIVERGENT[name].strip("\n") + "\n", f"<divergent {name}>")
    with pytest.raises(LoweringError, match="not all of them enter") as error:
        lowered(program)
    line = DIVERGENT[name].strip().splitlines()
    assert any(text.strip() in str(error.value) for text in line)
