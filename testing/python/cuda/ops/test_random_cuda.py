"""Random numbers of threads: reproducible, apart from each other, of the right distribution."""

from __future__ import annotations

import pytest
import torch
from emulated_ops import TARGET, compiles, emulate, source_of

import tilelang
import tilelang.language as T
from tilelang.errors import SemanticError, TraceError

THREADS, DRAWS = 128, 64


def draws(form, seed=7, off=0, seq=None, kind="float32", generator="curandStatePhilox4_32_10_t"):
    @T.prim_func
    def program(B: T.Tensor((2, THREADS, DRAWS), kind)):
        with T.Kernel(2, threads=THREADS) as bx:
            tx = T.get_thread_binding()
            T.rng_init(seed, seq, off, generator)
            for i in T.serial(DRAWS):
                B[bx, tx, i] = form()

    return program


def words(**options):
    return emulate(draws(T.rng_rand, kind="uint32", **options)).to(torch.int64)


def test_integers_are_reproducible_and_differ_between_threads():
    compiles(draws(T.rng_rand, kind="uint32"))
    first = words()
    assert torch.equal(first, words())
    assert not torch.equal(first, words(seed=8))
    assert len(first.flatten().unique()) > 0.999 * first.numel()


def test_an_offset_skips_numbers_and_a_sequence_is_shared():
    first = words()
    assert torch.equal(words(off=5)[..., :-5], first[..., 5:])
    shared = words(seq=3)
    assert torch.equal(shared[0, 0].expand_as(shared), shared)
    assert torch.equal(shared[0, 0], first[0, 3])


@pytest.mark.parametrize("bits", [32, 64])
def test_floats_are_uniform(bits):
    program = draws(lambda: T.rng_rand_float(bits), kind=f"float{bits}")
    compiles(program)
    found = emulate(program).double()
    assert found.min() > 0 and found.max() <= 1
    count = found.numel()
    assert abs(found.mean() - 0.5) < 5 * (1 / 12 / count) ** 0.5
    assert abs(found.var() - 1 / 12) < 0.005


@pytest.mark.parametrize("bits", [32, 64])
def test_floats_are_normal(bits):
    program = draws(lambda: T.rng_rand_float(bits, "normal"), kind=f"float{bits}")
    compiles(program)
    found = emulate(program).double()
    assert abs(found.mean()) < 5 / found.numel() ** 0.5
    assert abs(found.var() - 1) < 0.06 and 3 < found.abs().max() < 7


def test_numbers_without_a_start_are_refused():
    @T.prim_func
    def program(B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            B[T.get_thread_binding()] = T.rng_rand_float()

    with pytest.raises(SemanticError, match=r"T\.rng_rand_float needs T\.rng_init"):
        source_of(program)


def test_other_generators_are_noted_and_unknown_ones_refused():
    program = draws(T.rng_rand, kind="uint32", generator="curandStateXORWOW_t")
    notes = tilelang.lower(program, target=TARGET).notes
    assert notes == {
        "program_kernel": ("T.rng_init draws from Philox 4x32-10 in place of curandStateXORWOW_t",)
    }
    with pytest.raises(TraceError, match="unknown generator 'dice'"):
        draws(T.rng_rand, generator="dice")
