"""``T.print``, ``T.device_assert`` and ``assert`` on the emulator."""

from __future__ import annotations

import re

import pytest
import torch
from emulated_ops import compiles, emulate, ends_the_context

import tilelang.language as T
from tilelang.errors import KernelAssertionError


def printed(capfd, program, *args, **options):
    """What a launch prints: (message, block, thread, buffer, index, value)."""
    capfd.readouterr()
    emulate(program, *args, **options)
    found = []
    for line in capfd.readouterr().out.splitlines():
        head = re.match(r"msg='(.*)' BLOCK=\((\d+), .*\), THREAD=\((\d+), \d+, \d+\)", line)
        rest = re.search(r"(?:buffer=(\w+), index=(\d+), )?dtype=\w+ value=(\S+)", line)
        place, index, value = rest.groups() if rest else (None, None, None)
        number = None if index is None else int(index)
        value = None if value is None else float(value)
        found.append((head[1], int(head[2]), int(head[3]), place, number, value))
    return found


def test_a_block_prints_once(capfd):
    @T.prim_func
    def program(A: T.Tensor((2, 4), "float32"), B: T.Tensor((2, 4), "float32")):
        with T.Kernel(2, threads=64) as bx:
            tile = T.alloc_shared((4,), "float32")
            T.copy(A[bx, :], tile)
            T.print(tile[1:3], msg="part")
            T.print(tile[0] * 2, msg="twice")
            T.print(msg="done")
            T.copy(tile, B[bx, :])

    a = torch.arange(8).reshape(2, 4).float()
    lines = printed(capfd, program, a)
    # On a device the blocks take no turns.
    assert sorted(lines, key=lambda line: line[1]) == [
        line
        for block in (0, 1)
        for line in (
            ("part", block, 0, "tile", 1, a[block, 1]),
            ("part", block, 0, "tile", 2, a[block, 2]),
            ("twice", block, 0, None, None, 2 * a[block, 0]),
            ("done", block, 0, None, None, None),
        )
    ]
    compiles(program)


@pytest.mark.parametrize("threads", [1, 32, 96])
def test_a_distributed_tile_is_printed_in_order(capfd, threads):
    @T.prim_func
    def program(A: T.Tensor((5, 1, 6), "float16"), B: T.Tensor((5, 1, 6), "float16")):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_fragment((5, 1, 6), "float16")
            T.copy(A, tile)
            T.print(tile, msg="tile")
            T.copy(tile, B)

    a = torch.arange(30).reshape(5, 1, 6).half()
    lines = printed(capfd, program, a)
    assert lines == [("tile", 0, 0, "tile", i, float(i)) for i in range(30)]


def test_a_warp_of_choice_prints_a_tile_and_every_thread_its_registers(capfd):
    @T.prim_func
    def program(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((64,), "int32")
            own = T.alloc_local((2,), "int32")
            tile[tx] = A[tx]
            own[0] = tx
            own[1] = A[tx]
            T.print(tile[0:2], msg="tile", warp_id=1)
            if tx >= 62:
                T.print(own, msg="own")
            B[tx] = own[1]

    lines = printed(capfd, program, torch.arange(64, dtype=torch.int32) + 100)
    own = [("own", 0, t, "own", i, v) for t in (62, 63) for i, v in ((0, t), (1, t + 100))]
    tile = [("tile", 0, 32, "tile", i, 100 + i) for i in (0, 1)]
    assert sorted(lines) == sorted(own + tile)


def test_inside_a_parallel_loop_each_iteration_prints(capfd):
    @T.prim_func
    def program(A: T.Tensor((10,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(10):
                if A[i] > 7:
                    T.print(A[i], msg="large")

    lines = printed(capfd, program, torch.arange(10, dtype=torch.int32), out_idx=None)
    assert sorted(line[-1] for line in lines) == [8, 9]


@ends_the_context
@pytest.mark.parametrize("form", ["block", "nest", "thread", "assert"])
def test_a_failing_assertion_stops_the_kernel(form):
    @T.prim_func
    def program(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            if form == "block":
                T.device_assert(A[3] < 5, "first")
            elif form == "nest":
                for i in T.Parallel(32):
                    T.device_assert(A[i] < 40, "second")
            elif form == "thread":
                tx = T.get_thread_binding()
                T.device_assert(A[tx] < 40, "third")
            else:
                assert A[3] < 5, "fourth"
            T.copy(A, B)

    fine = torch.arange(32, dtype=torch.int32)
    assert torch.equal(emulate(program, fine), fine)
    with pytest.raises(KernelAssertionError):
        emulate(program, fine + 10)
    compiles(program)
