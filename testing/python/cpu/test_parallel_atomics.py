"""Atomics on tensors: blocks run at the same time where no order of theirs can be seen."""

from __future__ import annotations

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang._native import get_num_threads, set_num_threads

BLOCKS, WORK = 64, 64
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
UPDATES = {"add": T.atomic_add, "max": T.atomic_max, "min": T.atomic_min, "or": T.atomic_or}
FOLDS = {"add": torch.sum, "max": torch.amax, "min": torch.amin}


@pytest.fixture(autouse=True)
def four_threads():
    before = get_num_threads()
    set_num_threads(4)
    yield
    set_num_threads(before)


def folds(kind, dtype, extent=7):
    """Every block folds its value into each of 7 elements, after some work of its own."""
    update = UPDATES[kind]

    @T.prim_func
    def main(
        A: T.Tensor((BLOCKS,), dtype), C: T.Tensor((7,), dtype), W: T.Tensor((BLOCKS,), "int32")
    ):
        with T.Kernel(BLOCKS, threads=32) as bx:
            work = T.alloc_shared((WORK * extent,), "int32")
            for i in T.Parallel(WORK * extent):
                work[i] = i * bx
            for i in T.Parallel(extent):
                update(C[i], A[bx])
            W[bx] = work[3]

    return main


def run(program, *args, target="llvm"):
    kernel = tilelang.compile(program, target=target)
    kernel(*args)
    return kernel.plan.kernels[0].flags, kernel.get_kernel_source()


def values(dtype):
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        return torch.randint(-8, 9, (BLOCKS,)).to(kind)  # their sums are exact in any order
    low, high = (0, 100) if dtype.startswith("u") else (-60, 60)
    return torch.randint(low, high, (BLOCKS,)).to(kind)


def expected(kind, a, start):
    wide = torch.cat([start[:1], a])
    wide = wide if wide.is_floating_point() else wide.to(torch.int64)
    if kind == "or":
        result = wide[0]
        for value in wide[1:]:
            result = result | value
    else:
        result = FOLDS[kind](wide, 0)
    return result.to(a.dtype)


CASES = [(kind, dtype) for kind in UPDATES for dtype in INTEGERS]
CASES += [("add", "float32"), ("add", "float64")]


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_updates_of_one_kind_run_in_parallel(kind, dtype, target):
    a, start = values(dtype), torch.full((7,), 1).to(getattr(torch, dtype))
    w = torch.zeros(BLOCKS, dtype=torch.int32)
    for _ in range(5):
        c = start.clone()
        flags, source = run(folds(kind, dtype), a, c, w, target=target)
        assert torch.equal(c, expected(kind, a, start).expand(7))
    assert "serial" not in flags
    assert ("atomicrmw" if target == "llvm" else f"tl_atomic_{kind}_{dtype}(&") in source
    assert torch.equal(w, 3 * torch.arange(BLOCKS, dtype=torch.int32))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_updates_outside_of_the_tensor_are_dropped(target):
    a, c = values("int32"), torch.zeros(7, dtype=torch.int32)
    guarded = torch.cat([c, torch.full((9,), 5, dtype=torch.int32)])
    w = torch.zeros(BLOCKS, dtype=torch.int32)
    flags, _ = run(folds("add", "int32", 16), a, guarded[:7], w, target=target)
    assert "serial" not in flags
    assert torch.equal(guarded[:7], a.sum().int().expand(7)) and (guarded[7:] == 5).all()


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_nan_loses_against_a_number(kind, target):
    a = torch.full((BLOCKS,), torch.nan)
    a[5] = 2.0
    c = torch.full((7,), torch.nan)
    flags, _ = run(folds(kind, "float32"), a, c, torch.zeros(BLOCKS).int(), target=target)
    assert "serial" in flags, "which of two zeros stays depends on the order"
    assert torch.equal(c, torch.full((7,), 2.0))


def with_work(body):
    @T.prim_func
    def main(C: T.Tensor((7,), "int32"), W: T.Tensor((BLOCKS,), "int32")):
        with T.Kernel(BLOCKS, threads=32) as bx:
            work = T.alloc_shared((WORK,), "int32")
            T.fill(work, 1)
            body(C, W, bx)

    return main


def test_the_order_of_blocks_is_kept_where_it_shows():
    """Previous values, several kinds of updates, other accesses, views: one thread."""

    def previous(C, W, bx):
        W[bx] = T.atomic_add(C[0], 1, return_prev=True)

    def two_kinds(C, W, bx):
        T.atomic_add(C[0], 3)
        T.atomic_max(C[0], bx)

    def read_too(C, W, bx):
        T.atomic_add(C[0], 1)
        W[bx] = C[0]

    def stored(C, W, bx):
        T.atomic_store(C[0], bx)

    def loaded(C, W, bx):
        T.atomic_add(C[0], 1)
        W[bx] = T.atomic_load(C[0])

    def viewed(C, W, bx):
        V = T.view(C, (7,), "uint32")
        T.atomic_add(C[0], 1)
        W[bx] = T.cast(V[0], "int32")

    for body in (previous, two_kinds, read_too, stored, loaded, viewed):
        main = with_work(T.macro(body))
        found = []
        for _ in range(2):
            c, w = torch.zeros(7, dtype=torch.int32), torch.zeros(BLOCKS, dtype=torch.int32)
            flags, _ = run(main, c, w)
            found.append((c, w))
            assert "serial" in flags, body.__name__
        assert all(torch.equal(x, y) for x, y in zip(*found, strict=True))


def test_a_short_float_is_updated_by_one_thread():
    a, c = values("float16"), torch.zeros(7, dtype=torch.float16)
    flags, _ = run(folds("add", "float16"), a, c, torch.zeros(BLOCKS).int())
    assert "serial" in flags and torch.equal(c, a.sum().expand(7))


def test_a_histogram_is_faster_on_one_thread():
    @T.prim_func
    def main(A: T.Tensor((4096,), "int32"), C: T.Tensor((7,), "int32")):
        with T.Kernel(16, threads=32) as bx:
            for i in T.Parallel(256):
                T.atomic_add(C[A[bx * 256 + i] % 7], 1)

    a, c = torch.randint(0, 100, (4096,)).int(), torch.zeros(7, dtype=torch.int32)
    flags, _ = run(main, a, c)
    assert "serial" in flags and torch.equal(c, torch.bincount(a % 7, minlength=7).int())


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_tile_is_added_by_blocks_that_share_it(target):
    @T.prim_func
    def main(A: T.Tensor((BLOCKS * 16, 20), "float32"), S: T.Tensor((20,), "float32")):
        with T.Kernel(BLOCKS, threads=32) as bx:
            tile = T.alloc_fragment((16, 32), "float32")
            column = T.alloc_fragment((32,), "float32")
            T.copy(A[bx * 16, 0], tile)
            T.reduce_sum(tile, column, dim=0)
            T.atomic_add(S[0], column)

    a, s = torch.randint(-4, 5, (BLOCKS * 16, 20)).float(), torch.zeros(20)
    flags, _ = run(main, a, s, target=target)
    assert "serial" not in flags and torch.equal(s, a.sum(0))
