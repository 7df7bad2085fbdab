"""Software pipelines: the serial loop's result for any stages and trips, and what runs ahead."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
import torch
from exchange_programs import traced
from lowered import arrays_of, device_function, lowered, machine_of, run_program
from tvm import tirx
from tvm_ffi import structural_walk

import tilelang
import tilelang.cuda.pipeline as cuda_pipeline
import tilelang.language as T
from tilelang.interpreter import interpret

N = 32


def versions(program):
    """The number of versions of every shared tile, by name, after the pass."""
    seen = []
    original = cuda_pipeline.pipeline_loops

    def spy(func):
        seen.append((func, original(func)))
        return seen[-1][1]

    with mock.patch.object(cuda_pipeline, "pipeline_loops", spy):
        lowered(program)
    ((before, after),) = seen
    ranks = _shapes(before)
    return {
        name: shape[0] if len(shape) > len(ranks[name]) else 1
        for name, shape in _shapes(after).items()
    }


def _shapes(func):
    found = {}

    def on_alloc(stmt):
        if str(stmt.buffer.scope()).startswith("shared"):
            found[str(stmt.buffer.name)] = [int(e) for e in stmt.buffer.shape]

    structural_walk(func.body, (tirx.AllocBuffer, on_alloc))
    return found


# -- what runs ahead ------------------------------------------------------------------------------


def loop_of(body, stages=3, after="pass", before="pass"):
    """A kernel around a pipelined loop over ``k`` with the tiles S, Z and the sum in F."""

    def lines(text, depth):
        return "\n".join(" " * depth + line for line in text.strip("\n").splitlines())

    source = f"""
import tilelang.language as T

@T.prim_func
def program(
    A: T.Tensor((8, {N}), "int32"), X: T.Tensor((8,), "int32"), B: T.Tensor(({N},), "int32"),
):
    with T.Kernel(1, threads={N}):
        S = T.alloc_shared(({N},), "int32")
        Z = T.alloc_shared(({N},), "int32")
        F = T.alloc_fragment(({N},), "int32")
        v = T.alloc_var("int32")
        v = 1
        T.clear(F)
        T.clear(Z)
{lines(before, 8)}
        for k in T.Pipelined(4, num_stages={stages}):
{lines(body, 12)}
{lines(after, 8)}
        T.copy(F, B)
"""
    return traced(source, f"<pipeline {abs(hash((body, stages, after, before)))}>")


ROW = f"0:{N}"
USE = f"for i in T.Parallel({N}):\n    F[i] = F[i] * 2 + S[{N - 1} - i]"
AHEAD = {
    "a copy": f"T.copy(A[k, {ROW}], S)\n{USE}",
    "below other statements": (
        f"for i in T.Parallel({N}):\n    Z[i] = F[i]\nT.copy(A[k, {ROW}], S)\n{USE}"
    ),
    "indirect": f"T.copy(A[X[k], {ROW}], S)\n{USE}",
    "by a name for the index": f"row = X[k] + 1\nT.copy(A[row, {ROW}], S)\n{USE}",
    "outside of the tensor": f"T.copy(A[k * 3, 8:{N + 8}], S)\n{USE}",
}
SERIAL = {
    "read before": (
        f"if k > 0:\n    for i in T.Parallel({N}):\n        F[i] = F[i] * 2 + S[{N - 1} - i]\n"
        f"T.copy(A[k, {ROW}], S)"
    ),
    "written twice": f"T.copy(A[k, {ROW}], S)\n{USE}\nT.copy(A[k + 1, {ROW}], S)\n{USE}",
    "changed in place": (
        f"T.copy(A[k, {ROW}], S)\nfor i in T.Parallel({N}):\n    S[i] = S[i] + 1\n{USE}"
    ),
    "under a condition": f"if k % 2 == 0:\n    T.copy(A[k, {ROW}], S)\n{USE}",
    "a part of the tile": (
        f"T.copy(A[k, 0:{N // 2}], S[0:{N // 2}])\n"
        f"for i in T.Parallel({N}):\n    F[i] = F[i] * 2 + S[{N // 2 - 1} - i // 2]"
    ),
    "the source is written": (
        f"T.copy(A[k, {ROW}], S)\n{USE}\nfor i in T.Parallel({N}):\n    A[k + 1, i] = F[i]"
    ),
    "the source is added to": (
        f"T.copy(A[k, {ROW}], S)\n{USE}\nfor i in T.Parallel({N}):\n"
        f"    T.atomic_add(A[k + 1, i], F[i])"
    ),
    "a row that the loop finds": f"T.copy(A[v, {ROW}], S)\nv = v + k % 2\n{USE}",
    "a row from a tile": f"T.copy(A[T.max(T.min(Z[0], 3), 0), {ROW}], S)\n{USE}\nT.copy(F, Z)",
    "indices that are written": f"T.copy(A[X[k], {ROW}], S)\n{USE}\nX[k + 1] = k",
    "left early": f"T.copy(A[k, {ROW}], S)\n{USE}\nif k == 2:\n    break",
}


def check(program):
    """The machine's result is the interpreter's; X holds rows."""
    run_program(program, X=np.array([3, 0, 2, 1, 4, 5, 6, 1], np.int32))


@pytest.mark.parametrize("name", AHEAD)
def test_a_copy_runs_ahead(name):
    program = loop_of(AHEAD[name])
    assert versions(program)["S"] == 3
    check(program)


@pytest.mark.parametrize("name", SERIAL)
def test_a_copy_stays_where_the_loop_needs_it(name):
    program = loop_of(SERIAL[name])
    assert versions(program)["S"] == 1
    check(program)


def test_a_tile_used_outside_of_the_loop_stays():
    body = f"T.copy(A[k, {ROW}], S)\n{USE}"
    for around in ({"after": USE}, {"before": f"T.copy(A[5, {ROW}], S)\n{USE}"}):
        program = loop_of(body, **around)
        assert versions(program)["S"] == 1
        check(program)


def test_a_tile_with_two_names_stays():
    body = (
        f"T.copy(A[k, {ROW}], S)\nfor i in T.Parallel({N}):\n    F[i] = F[i] * 2 + W[i // 8, i % 8]"
    )
    program = loop_of(body, before=f"W = T.view(S, ({N // 8}, 8))")
    assert versions(program)["S"] == 1
    check(program)


@pytest.mark.parametrize("stages", [0, 1])
def test_one_stage_is_a_serial_loop(stages):
    program = loop_of(AHEAD["a copy"], stages)
    assert versions(program)["S"] == 1
    check(program)


def test_only_the_copies_that_may_run_ahead():
    body = (
        f"T.copy(A[k, {ROW}], S)\nT.copy(A[v, {ROW}], Z)\nv = v + 1\n"
        f"for i in T.Parallel({N}):\n    F[i] = F[i] * 2 + S[{N - 1} - i] - Z[{N - 1} - i]"
    )
    found = versions(loop_of(body))
    assert (found["S"], found["Z"]) == (3, 1)
    check(loop_of(body))


# -- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_inside_another_loop_and_twice(stages):
    """The copies of the next round must not overtake what reads the last versions."""

    @T.prim_func
    def program(A: T.Tensor((8, N), "int32"), B: T.Tensor((3, N), "int32")):
        with T.Kernel(2, threads=N) as bx:
            S = T.alloc_shared((N,), "int32")
            Z = T.alloc_shared((N,), "int32")
            F = T.alloc_fragment((N,), "int32")
            for turn in T.serial(3):
                T.clear(F)
                for k in T.Pipelined(turn * 2 + bx, num_stages=stages):
                    T.copy(A[k, 0:N], S)
                    for i in T.Parallel(N):
                        F[i] = F[i] * 2 + S[N - 1 - i]
                for k in T.Pipelined(2, 4, num_stages=stages):
                    T.copy(A[k, 0:N], Z)
                    for i in T.Parallel(N):
                        F[i] = F[i] * 3 - Z[(i + 1) % N]
                if bx == turn % 2:
                    T.copy(F, B[turn, 0:N])

    run_program(program)


def dynamic(stages):
    """A trip count known at the launch, rows found through indices, guards at both ends."""
    rows, width = T.dynamic("rows"), T.dynamic("width")

    @T.prim_func
    def program(
        A: T.Tensor((rows, width), "int32"), X: T.Tensor((rows,), "int32"),
        B: T.Tensor((N,), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=N):
            S = T.alloc_shared((N,), "int32")
            Z = T.alloc_shared((N,), "int32")
            F = T.alloc_fragment((N,), "int32")
            T.clear(F)
            for k in T.Pipelined(rows, num_stages=stages):
                T.copy(A[X[k], 4 : N + 4], S)
                if k % 2 == 0:
                    T.copy(A[k, 0:N], Z)
                for i in T.Parallel(N):
                    F[i] = F[i] * 2 + S[N - 1 - i] - Z[(i + 1) % N]
            T.copy(F, B)

    return program


def data(rows, width):
    random = np.random.default_rng(rows * 100 + width)
    return {
        "A": random.integers(-9, 9, (rows, width)).astype(np.int32),
        "X": random.permutation(rows).astype(np.int32),
        "B": np.zeros(N, np.int32),
    }


def expected(program, tensors):
    copies = [torch.from_numpy(t.copy()) for t in tensors.values()]
    interpret(program, *copies)
    return copies[-1].numpy()


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_any_trip_count_known_at_the_launch(stages):
    program = dynamic(stages)
    artifact = lowered(program)
    for rows in range(6):
        for width in (N + 4, N + 1, 20):
            tensors = data(rows, width)
            want = expected(program, tensors)
            machine_of(artifact, tensors, {"rows": rows, "width": width}).run(0)
            np.testing.assert_array_equal(tensors["B"], want, err_msg=f"{rows} {width}")


def test_on_the_emulator():
    """The printed source, with its own checks of races and asynchronous copies."""
    program = dynamic(3)
    kernel = tilelang.compile(
        program, target={"kind": "cuda", "arch": "sm_80"}, execution_backend="emulator"
    )
    for rows in range(1, 6):
        tensors = data(rows, N + 1)
        result = [torch.from_numpy(t.copy()) for t in tensors.values()]
        kernel(*result)
        np.testing.assert_array_equal(result[-1].numpy(), expected(program, tensors))


def test_copies_ahead_are_asynchronous():
    """Each stage waits for its own group only."""
    artifact = lowered(loop_of(AHEAD["a copy"], 3))
    func = device_function(artifact)
    waits = []

    def on_evaluate(stmt):
        name = getattr(getattr(stmt.value, "op", None), "name", "")
        if name.startswith("tl.cp_async"):
            waits.append((name, *[int(a) for a in stmt.value.args if name.endswith("wait")]))

    structural_walk(func.body, (tirx.Evaluate, on_evaluate))
    assert ("tl.cp_async_wait", 1) in waits
    assert sum(name == "tl.cp_async_commit" for name, *_ in waits) == 3
    assert sum(name == "tl.cp_async" for name, *_ in waits) == 3
    machine = machine_of(artifact, arrays_of(artifact))
    machine.run(0)
    assert machine.barriers >= 4
