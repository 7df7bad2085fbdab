"""Cells of atomics and matrix products."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import tilelang.language as T
from testing.cells.cell import FLOATS, INTEGERS, Cell, Operand, Sum

__all__ = ["atomic_cells", "gemm_cells", "sparse_gemm_cells"]

_ATOMICS = {"add": T.atomic_add, "max": T.atomic_max, "min": T.atomic_min}


def atomic_cells() -> Iterator[Cell]:
    """Kinds x dtypes on elements and tiles, memory orders, previous values, vectors."""
    for kind, update in _ATOMICS.items():
        for dtype in (*FLOATS, *INTEGERS):
            slow = dtype not in ("float32", "float16", "int32")
            yield _updates(kind, update, dtype, slow)
    for order in ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"):
        yield _ordered(order)
    yield from _element_cells()
    for lanes, dtype in itertools.product((2, 4), ("float32", "float16")):
        yield _vector(lanes, dtype)


def _updates(kind: str, update: Callable[..., Any], dtype: str, slow: bool) -> Cell:
    @T.macro
    def body(bx, A, B, C):
        tile = T.alloc_shared((8,), dtype)
        T.copy(A[bx, 0:8], tile)
        update(B[0, 0:8], tile)
        update(B[1, 0:8], A[bx, 3])
        for i in T.Parallel(8):
            update(C[i % 3], tile[i])

    data = "small" if kind == "add" else "mixed"
    shapes = ((3, 8), (2, 8), (3,))
    operands = tuple(Operand(shape, dtype, data) for shape in shapes)
    return Cell("atomic", f"{kind}-{dtype}", operands, body, grid=3, slow=slow)


def _ordered(order: str) -> Cell:
    @T.macro
    def body(bx, A, B):
        T.atomic_add(B[0:8], A[0:8], memory_order=order)

    operands = (Operand((8,), "int32"), Operand((8,), "int32"))
    return Cell("atomic", f"order-{order}", operands, body)


def _element_cells() -> Iterator[Cell]:
    @T.macro
    def previous(bx, A, B, C):
        for i in T.serial(8):
            C[0, i] = T.atomic_add(B[0], A[i], return_prev=True)
            C[1, i] = T.atomic_max(B[1], A[i], return_prev=True)
            C[2, i] = T.atomic_min(B[2], A[i], return_prev=True)

    for dtype in ("int32", "float32", "float16", "uint8"):
        kind = "small"
        operands = tuple(Operand(shape, dtype, kind) for shape in ((8,), (3,), (3, 8)))
        yield Cell("atomic", f"previous-{dtype}", operands, previous)

    @T.macro
    def memory(bx, A, B, C):
        for i in T.serial(8):
            T.atomic_or(B[i % 2], A[i])
            C[i] = T.atomic_load(B[i % 2], memory_order="acquire")
        T.atomic_store(B[2], A[bx], memory_order="release")

    for dtype in ("int32", "uint16", "int64"):
        operands = tuple(Operand(shape, dtype) for shape in ((8,), (3,), (8,)))
        yield Cell("atomic", f"or-load-store-{dtype}", operands, memory)

    @T.macro
    def converted(bx, A, B):
        T.atomic_add(B[bx], A[bx])
        T.atomic_add(B[2], 3)

    operands = (Operand((2,), "int32", "small"), Operand((3,), "float32", "small"))
    yield Cell("atomic", "values-of-another-dtype", operands, converted, grid=2)


def _vector(lanes: int, dtype: str) -> Cell:
    update = {2: T.atomic_addx2, 4: T.atomic_addx4}[lanes]

    @T.macro
    def body(bx, A, B):
        for i in T.serial(8 // lanes):
            update(B[i * lanes], A[i * lanes])

    operands = (Operand((8,), dtype, "small"), Operand((8,), dtype, "small"))
    return Cell("atomic", f"addx{lanes}-{dtype}", operands, body)


# --- matrix products ----------------------------------------------------------------------------

# Input dtype, accumulator dtype.
_PRODUCTS = (
    ("float16", "float32"), ("float16", "float16"), ("bfloat16", "float32"),
    ("bfloat16", "bfloat16"), ("float32", "float32"), ("float64", "float64"),
    ("tfloat32", "float32"), ("int8", "int32"), ("uint8", "int32"), ("uint8", "uint32"),
    ("int4", "int32"), ("int32", "int32"), ("float8_e4m3fn", "float32"),
    ("float8_e5m2", "float32"), ("float8_e4m3fnuz", "float16"),
)  # fmt: skip


def gemm_cells() -> Iterator[Cell]:
    """Dtypes, shapes, transpositions, scopes and options; small integers make results exact."""
    for source, target in _PRODUCTS:
        yield _product(f"{source}-{target}", (16, 16, 32), source, target)
    for shape in ((1, 1, 1), (3, 5, 7), (8, 17, 4), (16, 33, 19), (64, 48, 8), (7, 64, 64)):
        for source, target in (("float32", "float32"), ("float16", "float32"), ("int8", "int32")):
            name = f"{source}-{'x'.join(map(str, shape))}"
            yield _product(name, shape, source, target, slow=source == "int8" and max(shape) > 20)
    for a, b in itertools.product((False, True), repeat=2):
        for source, target in (("float32", "float32"), ("float16", "float32"), ("int8", "int32")):
            name = f"{source}-{'T' if a else 'N'}{'T' if b else 'N'}"
            yield _product(name, (12, 20, 24), source, target, a=a, b=b)
    for left, right in itertools.product(("shared", "fragment"), repeat=2):
        name = f"{left}-{right}"
        yield _product(name, (16, 16, 16), "float16", "float32", scopes=(left, right))
    for policy in T.GemmWarpPolicy:
        yield _product(f"policy-{policy.name}", (32, 32, 16), "float16", "float32", policy=policy)
    yield _product("cleared", (16, 16, 16), "float32", "float32", clear_accum=True)
    yield _product("packed-k", (16, 16, 16), "float16", "float32", k_pack=2)
    yield _product("local", (8, 8, 8), "float32", "float32", scopes=("local", "local"))
    yield _slices()
    yield _rounded()


def _product(
    name: str,
    shape: tuple[int, int, int],
    source: str,
    target: str,
    *,
    a: bool = False,
    b: bool = False,
    scopes: tuple[str, str] = ("shared", "shared"),
    slow: bool = False,
    **options: Any,
) -> Cell:
    m, n, k = shape
    left, right = ((k, m) if a else (m, k)), ((n, k) if b else (k, n))
    alloc = {"shared": T.alloc_shared, "fragment": T.alloc_fragment, "local": T.alloc_local}

    @T.macro
    def body(bx, A, B, C):
        one = alloc[scopes[0]](left, source)
        two = alloc[scopes[1]](right, source)
        out = T.alloc_fragment((m, n), target)
        T.copy(A, one)
        T.copy(B, two)
        T.copy(C, out)
        T.gemm(one, two, out, transpose_A=a, transpose_B=b, **options)
        T.copy(out, C)

    operands = (
        Operand(left, source, "small"),
        Operand(right, source, "small"),
        Operand((m, n), target, "small"),
    )
    return Cell("gemm", name, operands, body, slow=slow)


def _slices() -> Cell:
    @T.macro
    def body(bx, A, B, C):
        left = T.alloc_shared((2, 16, 16), "float16")
        right = T.alloc_shared((16, 32), "float16")
        out = T.alloc_fragment((2, 16, 32), "float32")
        T.copy(A, left)
        T.copy(B, right)
        T.clear(out)
        for half in T.serial(2):
            T.gemm(left[1 - half, 0:16, 0:16], right[0:16, 0:32], out[half, 0:16, 0:32])
        T.copy(out, C)

    operands = (
        Operand((2, 16, 16), "float16", "small"),
        Operand((16, 32), "float16", "small"),
        Operand((2, 16, 32), "float32", "zero"),
    )
    return Cell("gemm", "slices-of-stacks", operands, body)


def _rounded() -> Cell:
    @T.macro
    def body(bx, A, B, C):
        left = T.alloc_shared((16, 64), "float32")
        right = T.alloc_shared((64, 16), "float32")
        out = T.alloc_fragment((16, 16), "float32")
        T.copy(A, left)
        T.copy(B, right)
        T.clear(out)
        T.gemm(left, right, out)
        T.copy(out, C)

    operands = (
        Operand((16, 64), "float32", "unit"),
        Operand((64, 16), "float32", "unit"),
        Operand((16, 16), "float32", "zero"),
    )
    exact = Sum(64, 64 * 8.0)
    # Matrix instructions take float32 as tfloat32: each factor loses what is below 2^-10.
    truncated = dataclasses.replace(exact, inexact=2 * 2.0**-10)
    return Cell("gemm", "rounded", operands, body, exact, on_gpus=truncated)


def sparse_gemm_cells() -> Iterator[Cell]:
    """Compressed left operands: dtypes, metadata words, transpositions, options."""
    for source, target in (("float16", "float32"), ("int8", "int32"), ("float32", "float32")):
        yield _sparse(f"{source}-{target}", source, target)
    yield _sparse("wide-metadata", "float16", "float32", words="int16")
    for flag in ("transpose_A", "transpose_E", "transpose_B", "clear_accum"):
        yield _sparse(flag.replace("_", "-"), "float16", "float32", **{flag: True})
    yield _sparse("policy", "float16", "float32", policy=T.GemmWarpPolicy.FullRow)


def _sparse(name: str, source: str, target: str, words: str = "uint8", **options: Any) -> Cell:
    m, n, k = 16, 16, 32
    group = 2 if source == "float32" else 4
    per_word = T.dtype(words).bits // 4 * group

    def stored(flag: str, *shape: int) -> tuple[int, ...]:
        return shape[::-1] if options.get(flag) else shape

    left = stored("transpose_A", m, k // 2)
    meta = stored("transpose_E", m, k // per_word)
    right = stored("transpose_B", k, n)

    @T.macro
    def body(bx, A, E, B, C):
        one = T.alloc_shared(left, source)
        which = T.alloc_shared(meta, words)
        two = T.alloc_shared(right, source)
        out = T.alloc_fragment((m, n), target)
        T.copy(A, one)
        T.copy(E, which)
        T.copy(B, two)
        T.copy(C, out)
        T.gemm_sp(one, which, two, out, **options)
        T.copy(out, C)

    operands = (
        Operand(left, source, "small"),
        Operand(meta, words, f"metadata{group}"),
        Operand(right, source, "small"),
        Operand((m, n), target, "small"),
    )
    return Cell("gemm_sp", name, operands, body)
