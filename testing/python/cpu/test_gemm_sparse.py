"""``T.gemm_sp`` against a dense product, on the interpreter, llvm and c."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.errors import TraceError

M, N, K = 16, 24, 64
WORD_BITS = {torch.int8: 8, torch.int16: 16, torch.int32: 32}


def sparse_operand(dtype: torch.dtype, word: torch.dtype) -> tuple[Any, Any, Any]:
    """A random 2:4 (1:2 for float32) matrix as (dense, kept, metadata)."""
    generator = torch.Generator().manual_seed(0)
    group = 2 if dtype == torch.float32 else 4
    values = torch.randint(-4, 5, (M, K // group, group), generator=generator).to(dtype)
    dense, kept = torch.zeros_like(values), torch.zeros(M, K // 2, dtype=dtype)
    codes = torch.zeros(M, K // group, dtype=torch.int64)
    for i in range(M):
        for g in range(K // group):
            if group == 2:
                at = int(torch.randint(0, 2, (1,), generator=generator))
                codes[i, g] = (0b0100, 0b1110)[at]
                dense[i, g, at] = kept[i, g] = values[i, g, at]
                continue
            low, high = sorted(torch.randperm(4, generator=generator)[:2].tolist())
            codes[i, g] = low | high << 2
            for c, at in enumerate((low, high)):
                dense[i, g, at] = kept[i, 2 * g + c] = values[i, g, at]
    per_word = WORD_BITS[word] // 4
    shifts = torch.arange(per_word) * 4
    words = (codes.view(M, -1, per_word) << shifts).sum(dim=2)
    half = 1 << (WORD_BITS[word] - 1)
    return dense.view(M, K), kept, ((words + half) % (2 * half) - half).to(word)


def program(dtype: str, word: str, accum: str, factor: int, flips: tuple[bool, bool, bool]) -> Any:
    flip_a, flip_e, flip_b = flips

    def shape(rows: int, cols: int, flip: bool) -> tuple[int, int]:
        return (cols, rows) if flip else (rows, cols)

    a_shape, e_shape = shape(M, K // 2, flip_a), shape(M, K // factor, flip_e)
    b_shape = shape(K, N, flip_b)

    @T.prim_func
    def main(
        A: T.Tensor(a_shape, dtype),
        E: T.Tensor(e_shape, word),
        B: T.Tensor(b_shape, dtype),
        C: T.Tensor((M, N), accum),
    ):
        with T.Kernel(1, threads=128):
            A_shared = T.alloc_shared(a_shape, dtype)
            E_shared = T.alloc_shared(e_shape, word)
            B_shared = T.alloc_shared(b_shape, dtype)
            acc = T.alloc_fragment((M, N), accum)
            T.clear(acc)
            T.copy(A, A_shared)
            T.copy(E, E_shared)
            T.copy(B, B_shared)
            T.gemm_sp(A_shared, E_shared, B_shared, acc, flip_a, flip_e, flip_b)
            T.copy(acc, C)

    return main


CASES = [
    ("float16", "int16", "float32", (False, False, False)),
    ("float16", "int32", "float32", (True, True, True)),
    ("bfloat16", "int8", "float32", (False, False, True)),
    ("int8", "int32", "int32", (True, True, False)),
    ("float32", "int16", "float32", (False, False, False)),
]


@pytest.mark.parametrize("how", ["interpreter", "llvm", "c"])
@pytest.mark.parametrize(("dtype", "word", "accum", "flips"), CASES)
def test_product_is_that_of_the_dense_matrix(
    dtype: str, word: str, accum: str, flips: tuple[bool, bool, bool], how: str
) -> None:
    dense, kept, words = sparse_operand(getattr(torch, dtype), getattr(torch, word))
    b = torch.randint(-4, 5, (K, N), generator=torch.Generator().manual_seed(1)).to(dense.dtype)
    factor = WORD_BITS[getattr(torch, word)] // 4 * (2 if dtype == "float32" else 4)
    inputs = [t.T.contiguous() if f else t for t, f in zip((kept, words, b), flips, strict=True)]
    found = torch.zeros(M, N, dtype=getattr(torch, accum))
    main = program(dtype, word, accum, factor, flips)
    if how == "interpreter":
        tilelang.interpret(main, *inputs, found)
    else:
        tilelang.compile(main, target=how)(*inputs, found)
    assert torch.equal(found.double(), dense.double() @ b.double())


def test_metadata_of_the_wrong_width_is_refused() -> None:
    with pytest.raises(TraceError, match=r"E \(16, 2\) is \(M, K/16\)"):
        program("float16", "int16", "float32", 32, (False, False, False))


def test_metadata_must_be_integers() -> None:
    with pytest.raises(TraceError, match="E must be an integer tile, found float32"):
        program("float16", "float32", "float32", 16, (False, False, False))
