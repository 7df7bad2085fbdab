"""``T.gemm_sp`` on the emulator."""

from __future__ import annotations

import pytest
import torch
from emulated_ops import compiles, emulate, source_of

import tilelang.language as T

WORD_BITS = {"int8": 8, "int16": 16, "int32": 32, "uint8": 8}


def sparse_operand(rows, columns, dtype, word):
    """A random 2:4 (1:2 for 32-bit elements) matrix: dense, kept elements, metadata."""
    group = 2 if dtype == torch.float32 else 4
    values = torch.randint(1, 8, (rows, columns // group, group)).to(dtype)
    order = torch.rand(rows, columns // group, group).argsort(-1)
    if group == 2:
        at = order[..., :1]
        codes = torch.where(at[..., 0] == 0, 0b0100, 0b1110)
    else:
        at = order[..., :2].sort(-1).values
        codes = at[..., 0] | at[..., 1] << 2
    kept = values.gather(-1, at).reshape(rows, columns // 2)
    dense = torch.zeros_like(values).scatter(-1, at, values.gather(-1, at))
    per_word = WORD_BITS[word] // 4
    words = (codes.view(rows, -1, per_word) << (torch.arange(per_word) * 4)).sum(-1)
    if not word.startswith("u"):
        half = 1 << (WORD_BITS[word] - 1)
        words = (words + half) % (2 * half) - half
    return dense.view(rows, columns), kept, words.to(getattr(torch, word))


def program(size, block, types, flips=(False, False, False), scopes="sss", threads=128):
    (M, N, K), (bm, bn, bk) = size, block
    dtype, word, accum = types
    factor = WORD_BITS[word] // 4 * (2 if dtype == "float32" else 4)

    def turned(rows, columns, flip):
        return (columns, rows) if flip else (rows, columns)

    a_tile, a_shape = turned(bm, bk // 2, flips[0]), turned(M, K // 2, flips[0])
    e_tile, e_shape = turned(bm, bk // factor, flips[1]), turned(M, K // factor, flips[1])
    b_tile, b_shape = turned(bk, bn, flips[2]), turned(K, N, flips[2])
    alloc = [T.alloc_shared if s == "s" else T.alloc_fragment for s in scopes]

    @T.prim_func
    def main(
        A: T.Tensor(a_shape, dtype),
        E: T.Tensor(e_shape, word),
        B: T.Tensor(b_shape, dtype),
        C: T.Tensor((M, N), accum),
    ):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
            a, e, b = alloc[0](a_tile, dtype), alloc[1](e_tile, word), alloc[2](b_tile, dtype)
            c = T.alloc_fragment((bm, bn), accum)
            T.clear(c)
            for k in T.Pipelined(K // bk, num_stages=2):
                T.copy(A[turned(by * bm, k * bk // 2, flips[0])], a)
                T.copy(E[turned(by * bm, k * bk // factor, flips[1])], e)
                T.copy(B[turned(k * bk, bx * bn, flips[2])], b)
                T.gemm_sp(a, e, b, c, flips[0], flips[1], flips[2])
            T.copy(c, C[by * bm, bx * bn])

    return main


def check(size, block, types, flips=(False, False, False), **options):
    M, N, K = size
    dtype, word, _ = types
    torch_dtype = getattr(torch, dtype)
    dense, kept, words = sparse_operand(M, K, torch_dtype, word)
    b = torch.randint(-4, 5, (K, N)).to(torch_dtype)
    inputs = [x.T.contiguous() if f else x for x, f in zip((kept, words, b), flips, strict=True)]
    main = program(size, block, types, flips, **options)
    c = emulate(main, *inputs)
    assert torch.equal(c.double(), dense.double() @ b.double())
    return main


@pytest.mark.parametrize(
    "types",
    [
        ("float16", "int16", "float32"),
        ("bfloat16", "int32", "float32"),
        ("int8", "uint8", "int32"),
        ("float32", "int16", "float32"),
    ],
)
def test_dtypes_use_matrix_instructions(types):
    main = check((64, 48, 128), (32, 16, 64), types)
    assert "mma_" in source_of(main)
    compiles(main)


@pytest.mark.parametrize("flips", [(True, False, False), (False, True, True), (True, True, True)])
def test_transposed_operands(flips):
    check((64, 32, 128), (32, 32, 64), ("float16", "int16", "float32"), flips)


@pytest.mark.parametrize("scopes", ["fss", "ssf", "fff"])
def test_operands_in_fragments(scopes):
    check((64, 32, 64), (32, 32, 64), ("float16", "int16", "float32"), scopes=scopes)


def test_a_tile_that_no_instruction_fits():
    check((12, 20, 32), (12, 20, 32), ("float16", "int8", "float32"), threads=64)
