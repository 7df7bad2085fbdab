"""Atomics in nests, in code of a block and in code of threads, on the emulator."""

from __future__ import annotations

import pytest
import torch
from emulated_ops import compiles, emulate, source_of

import tilelang.language as T

DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int32", "uint32", "int64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["add", "max"])
def test_a_tile_updates_a_tensor_whose_end_lies_inside_a_block(kind, dtype):
    rows = T.dynamic("rows")
    update = getattr(T, f"atomic_{kind}")

    @T.prim_func
    def program(A: T.Tensor((rows, 24), dtype), B: T.Tensor((24,), dtype)):
        with T.Kernel(T.ceildiv(rows, 4), threads=64) as bx:
            tile = T.alloc_fragment((4, 24), dtype)
            T.copy(A[bx * 4, 0], tile)
            for i, j in T.Parallel(4, 24):
                if bx * 4 + i < rows:
                    update(B[j], tile[i, j])

    torch_dtype = getattr(torch, dtype)
    a = torch.randint(-3 if not dtype.startswith("u") else 0, 9, (7, 24)).to(torch_dtype)
    b = torch.ones(24, dtype=torch_dtype)
    emulate(program, a, b, out_idx=None)
    wide = torch.cat([torch.ones(1, 24, dtype=torch.float64), a.double()])
    expected = {"add": wide.sum(0), "max": wide.amax(0)}[kind]
    assert torch.equal(b.double(), expected)


@pytest.mark.parametrize("threads", [32, 96, 128])
def test_a_replicated_tile_counts_once(threads):
    @T.prim_func
    def program(A: T.Tensor((8, 64), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=threads):
            tile, sums = T.alloc_fragment((8, 64), "int32"), T.alloc_fragment((8,), "int32")
            T.copy(A, tile)
            T.reduce_sum(tile, sums, dim=1)
            T.atomic_add(B, sums)
            for i in T.Parallel(8):
                T.atomic_add(B[0], sums[i])

    a = torch.randint(0, 100, (8, 64), dtype=torch.int32)
    b = torch.zeros(8, dtype=torch.int32)
    emulate(program, a, b, out_idx=None)
    expected = a.sum(1, dtype=torch.int32)
    expected[0] += a.sum()
    assert torch.equal(b, expected)


def test_a_histogram_in_shared_memory():
    size = T.dynamic("size")

    @T.prim_func
    def program(A: T.Tensor((size,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(T.ceildiv(size, 200), threads=96) as bx:
            bins = T.alloc_shared((16,), "int32")
            T.clear(bins)
            for i in T.Parallel(200):
                if bx * 200 + i < size:
                    T.atomic_add(bins[A[bx * 200 + i] % 16], 1)
            T.atomic_add(B, bins)

    a = torch.randint(0, 1000, (450,), dtype=torch.int32)
    b = torch.zeros(16, dtype=torch.int32)
    emulate(program, a, b, out_idx=None)
    assert torch.equal(b, torch.bincount(a % 16, minlength=16).int())
    compiles(program)


def test_the_code_of_a_block_acts_once_and_every_thread_knows_the_old_value():
    @T.prim_func
    def program(B: T.Tensor((1,), "int32"), C: T.Tensor((4, 70), "int32")):
        with T.Kernel(4, threads=64):
            ticket = T.atomic_add(B[0], 1, return_prev=True)
            for i in T.Parallel(70):
                C[ticket, i] = ticket

    b, c = torch.zeros(1, dtype=torch.int32), torch.zeros(4, 70, dtype=torch.int32)
    emulate(program, b, c, out_idx=None)
    assert b.item() == 4
    assert torch.equal(c, torch.arange(4, dtype=torch.int32)[:, None].expand(4, 70))


def test_every_thread_of_a_thread_program_acts():
    @T.prim_func
    def program(B: T.Tensor((2,), "int32"), C: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            C[tx] = T.atomic_add(B[tx % 2], 1, return_prev=True)

    b, c = torch.zeros(2, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    emulate(program, b, c, out_idx=None)
    assert b.tolist() == [32, 32]
    assert sorted(c[::2].tolist()) == sorted(c[1::2].tolist()) == list(range(32))


@pytest.mark.parametrize(("lanes", "dtype"), [(2, "float16"), (2, "bfloat16"), (4, "float32")])
def test_neighbours_in_a_parallel_loop(lanes, dtype):
    update = {2: T.atomic_addx2, 4: T.atomic_addx4}[lanes]

    @T.prim_func
    def program(A: T.Tensor((8, 32), dtype), B: T.Tensor((8, 32), dtype)):
        with T.Kernel(2, threads=32):
            for i, j in T.Parallel(8, 32 // lanes):
                update(B[i, j * lanes], A[i, j * lanes])

    a = torch.randint(-8, 8, (8, 32)).to(getattr(torch, dtype))
    b = torch.ones_like(a)
    emulate(program, a, b, out_idx=None)
    assert torch.equal(b, 2 * a + 1)
    compiles(program)


def test_an_update_outside_of_the_tensor_is_dropped():
    @T.prim_func
    def program(B: T.Tensor((50,), "int32"), C: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                C[i] = T.atomic_add(B[i], 1, return_prev=True)

    b, c = torch.full((50,), 7, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    emulate(program, b, c, out_idx=None)
    assert torch.equal(b, torch.full((50,), 8, dtype=torch.int32))
    assert c.tolist() == [7] * 50 + [0] * 14


@pytest.mark.parametrize("order", ["relaxed", "acq_rel", "seq_cst"])
def test_memory_orders(order):
    @T.prim_func
    def program(B: T.Tensor((4,), "int32")):
        with T.Kernel(8, threads=32):
            T.atomic_add(B[0], 1, memory_order=order)
            T.atomic_max(B[1], 5, memory_order=order)
            T.atomic_or(B[2], 6, memory_order=order)
            seen = T.atomic_load(B[1], "acquire")
            T.atomic_store(B[3], seen, "release")

    b = torch.zeros(4, dtype=torch.int32)
    emulate(program, b, out_idx=None)
    assert b.tolist() == [8, 5, 6, 5]
    compiles(program)


@pytest.mark.parametrize(("dtype", "wide"), [("float32", 4), ("float16", 8), ("int32", 0)])
def test_a_tile_is_added_in_wide_operations(dtype, wide):
    @T.prim_func
    def program(A: T.Tensor((30, 64), dtype), B: T.Tensor((30, 64), dtype)):
        with T.Kernel(4, threads=64) as bx:
            tile = T.alloc_fragment((8, 64), dtype)
            T.copy(A[bx * 8, 0], tile)
            T.atomic_add(B[bx * 8, 0], tile)

    a = torch.randint(-8, 8, (30, 64)).to(getattr(torch, dtype))
    b = torch.ones_like(a)
    emulate(program, a, b, out_idx=None)
    assert torch.equal(b, a + 1)
    assert (f"atomic_add_vec<{wide}>" in source_of(program)) == bool(wide)
    compiles(program)


@pytest.mark.parametrize(("start", "wide"), [(0, True), (2, False), (1, False)])
def test_neighbours_are_joined_where_they_are_aligned(start, wide):
    @T.prim_func
    def program(A: T.Tensor((32,), "float32"), B: T.Tensor((64, 8), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            for lane in T.unroll(4):
                T.atomic_add(B[tx, start + lane], A[tx % 32] + lane)

    a, b = torch.randint(-8, 8, (32,)).float(), torch.zeros(64, 8)
    emulate(program, a, b, out_idx=None)
    expected = torch.zeros(64, 8)
    expected[:, start : start + 4] = a.repeat(2)[:, None] + torch.arange(4)
    assert torch.equal(b, expected)
    assert ("atomic_add_vec<4>" in source_of(program)) == wide


def test_an_addition_that_reads_what_the_one_before_changed_stays_alone():
    @T.prim_func
    def program(B: T.Tensor((32, 2), "float32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            T.atomic_add(B[tx, 0], 1)
            T.atomic_add(B[tx, 1], B[tx, 0])

    b = torch.zeros(32, 2)
    emulate(program, b, out_idx=None)
    assert torch.equal(b, torch.ones(32, 2))
