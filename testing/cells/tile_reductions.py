"""Cells of the ops that fold tiles: reduce, scan, logical, the reducers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import tilelang.language as T
from testing.cells.cell import EXACT, FLOATS, INTEGERS, Cell, Comparison, Operand, Sum

__all__ = ["logical_cells", "reduce_cells", "reducer_cells", "scan_cells"]

_FLOAT_KINDS = ("sum", "abssum", "max", "absmax", "min")
_INTEGER_KINDS = (*_FLOAT_KINDS, "bitand", "bitor", "bitxor")
_FUNCTIONS = {
    "sum": T.reduce_sum,
    "abssum": T.reduce_abssum,
    "max": T.reduce_max,
    "absmax": T.reduce_absmax,
    "min": T.reduce_min,
    "bitand": T.reduce_bitand,
    "bitor": T.reduce_bitor,
    "bitxor": T.reduce_bitxor,
}


def _data(dtype: str, kind: str) -> tuple[str, Comparison]:
    """Small integers make sums exact in any order; extremes take any value."""
    return ("small", EXACT) if kind in ("sum", "abssum") else ("mixed", EXACT)


def _reduced(
    name: str,
    kind: str,
    dtype: str,
    shape: tuple[int, ...],
    dim: int,
    *,
    scopes: tuple[str, str] = ("fragment", "fragment"),
    target: str | None = None,
    keep: bool = False,
    slow: bool = False,
    **options: object,
) -> Cell:
    axis = dim % len(shape)
    reduced = (*shape[:axis], *((1,) if keep else ()), *shape[axis + 1 :]) or (1,)
    target = target or dtype
    alloc = {"fragment": T.alloc_fragment, "shared": T.alloc_shared, "local": T.alloc_local}

    @T.macro
    def body(bx, A, B):
        tile = alloc[scopes[0]](shape, dtype)
        out = alloc[scopes[1]](reduced, target)
        T.copy(A, tile)
        T.copy(B, out)
        _FUNCTIONS[kind](tile, out, dim=dim, **options)
        T.copy(out, B)

    data, compare = _data(dtype, kind)
    operands = (Operand(shape, dtype, data), Operand(reduced, target, data))
    return Cell("reduce", name, operands, body, compare, slow=slow)


def reduce_cells() -> Iterator[Cell]:
    """Kinds x dtypes, dimensions, extents, scopes, and the options."""
    for dtype in (*FLOATS, *INTEGERS):
        kinds = _INTEGER_KINDS if dtype in INTEGERS else _FLOAT_KINDS
        for kind in kinds:
            if dtype.startswith("uint") and kind.startswith("abs"):
                continue
            slow = dtype not in ("float32", "float16", "int32", "uint8")
            yield _reduced(f"{kind}-{dtype}", kind, dtype, (3, 20), 1, slow=slow)
    for shape, kind in itertools.product(
        [(4, 8), (3, 17), (2, 3, 5), (1, 64), (6, 1)], ("sum", "max")
    ):
        for dim in range(len(shape)):
            name = f"{kind}-{'x'.join(map(str, shape))}-dim{dim}"
            yield _reduced(name, kind, "float32", shape, dim)
    for extent in (1, 2, 3, 7, 8, 15, 31, 64, 100, 257):
        yield _reduced(f"sum-extent{extent}", "sum", "float32", (2, extent), -1)
        yield _reduced(f"min-extent{extent}", "min", "int8", (extent,), 0)
    for scopes in itertools.product(("fragment", "shared", "local"), repeat=2):
        name = f"sum-{scopes[0]}-{scopes[1]}"
        yield _reduced(name, "sum", "float32", (4, 9), 1, scopes=scopes)
    for kind in ("sum", "max", "min", "bitand", "bitor", "bitxor", "absmax"):
        yield _reduced(f"{kind}-onto-old", kind, "int32", (5, 12), 0, clear=False)
    for kind, dtype in itertools.product(
        ("max", "min", "absmax"), ("float16", "bfloat16", "float32")
    ):
        name = f"{kind}-nan-{dtype}"
        yield _reduced(name, kind, dtype, (6, 33), 1, nan_propagate=True)
        yield _reduced(f"{name}-old", kind, dtype, (6, 33), 0, nan_propagate=True, clear=False)
    yield _reduced("sum-batched", "sum", "float32", (8, 16), 1, batch=4)
    yield _reduced("sum-kept", "sum", "float32", (4, 16), 1, keep=True)
    yield _reduced("max-kept", "max", "float32", (4, 16), 0, keep=True)
    for source, target in [("float16", "float32"), ("float8_e4m3fn", "float16"), ("int8", "int32")]:
        for kind in ("sum", "absmax"):
            yield _reduced(f"{kind}-{source}-to-{target}", kind, source, (3, 20), 1, target=target)


def _random_sum(name: str, dtype: str, terms: int) -> Cell:
    @T.macro
    def body(bx, A, B):
        tile = T.alloc_fragment((4, terms), dtype)
        out = T.alloc_fragment((4,), dtype)
        T.copy(A, tile)
        T.reduce_sum(tile, out, dim=1)
        T.copy(out, B)

    operands = (Operand((4, terms), dtype, "unit"), Operand((4,), dtype, "zero"))
    accumulator = "float64" if dtype == "float64" else "float32"
    return Cell("reduce", name, operands, body, Sum(terms, 4.0 * terms, accumulator))


def rounded_sum_cells() -> Iterator[Cell]:
    """Sums that round, within the bound of the contract."""
    for dtype in FLOATS:
        yield _random_sum(f"sum-rounded-{dtype}", dtype, 200)


def scan_cells() -> Iterator[Cell]:
    """Kinds x dtypes x dimensions x directions, in place and apart."""
    cases = itertools.product(("sum", "max"), ("float32", "float16", "int32", "int8"), (0, 1, 2))
    for kind, dtype, dim in cases:
        for reverse in (False, True):
            scan = T.cumsum if kind == "sum" else T.cummax

            @T.macro
            def body(bx, A, B, scan=scan, dtype=dtype, dim=dim, reverse=reverse):
                tile = T.alloc_shared((3, 7, 4), dtype)
                out = T.alloc_fragment((3, 7, 4), dtype)
                T.copy(A, tile)
                scan(tile, out, dim=dim, reverse=reverse)
                scan(tile, dim=dim, reverse=not reverse)
                for i, j, k in T.Parallel(3, 7, 4):
                    B[0, i, j, k] = out[i, j, k]
                    B[1, i, j, k] = tile[i, j, k]

            data, compare = _data(dtype, kind)
            operands = (Operand((3, 7, 4), dtype, data), Operand((2, 3, 7, 4), dtype, "zero"))
            name = f"{kind}-{dtype}-dim{dim}{'-reverse' if reverse else ''}"
            slow = dtype in ("float16", "int8") and dim != 1
            yield Cell("scan", name, operands, body, compare, slow=slow)
    for extent in (1, 2, 33, 100):

        @T.macro
        def row(bx, A, B, extent=extent):
            tile = T.alloc_shared((extent,), "int64")
            T.copy(A, tile)
            T.cumsum(tile)
            T.copy(tile, B)

        operands = (Operand((extent,), "int64"), Operand((extent,), "int64", "zero"))
        yield Cell("scan", f"sum-extent{extent}", operands, row)


def logical_cells() -> Iterator[Cell]:
    """Any and all of tiles and slices, of every kind of element."""
    for dtype in ("bool", "int8", "uint32", "float32", "float16", "bfloat16", "float8_e5m2"):

        @T.macro
        def body(bx, A, B, dtype=dtype):
            tile = T.alloc_shared((4, 6), dtype)
            T.copy(A, tile)
            if bx == 1:
                T.clear(tile)
            if bx == 2:
                T.fill(tile[1:3, 2:5], 1)
                tile[0, 0] = T.cast(0, dtype)
            B[bx, 0] = T.any_of(tile)
            B[bx, 1] = T.all_of(tile)
            B[bx, 2] = T.any_of(tile[0, 0:1])
            B[bx, 3] = T.all_of(tile[1:3, 2:5])

        operands = (Operand((4, 6), dtype), Operand((3, 4), "bool", "zero"))
        yield Cell("logical", dtype, operands, body, grid=3)


_UPDATES = {
    "sum": lambda a, b: a + b,
    "max": T.max,
    "min": T.min,
    "bitand": lambda a, b: a & b,
    "bitor": lambda a, b: a | b,
    "bitxor": lambda a, b: a ^ b,
}


def reducer_cells() -> Iterator[Cell]:
    """Kinds x dtypes, with and without a start value, several epochs, and the older style."""
    for kind in _UPDATES:
        dtypes = ("int32", "uint8") if kind.startswith("bit") else ("float32", "int32", "float16")
        for dtype in dtypes:
            yield _reducer(kind, dtype, "reducer_init", True)
            if dtype == "int32":
                yield _reducer(kind, dtype, "reducer_init", False)
            if dtype != "float16":
                yield _reducer(kind, dtype, "finalize_reducer", False)
        if not kind.startswith("bit"):
            yield _older_reducer(kind)


def _reducer(kind: str, dtype: str, op: str, start: bool) -> Cell:
    @T.macro
    def body(bx, A, B):
        result = T.alloc_fragment((4,), dtype)
        total = T.alloc_reducer((4,), dtype, op=kind)
        for k in T.serial(2):
            if start:
                T.reducer_init(total, A[k, 0, 0])
            else:
                T.reducer_init(total)
            for i, j in T.Parallel(4, 6):
                T.reducer_update(total[i], A[k, i, j])
            for j, i in T.Parallel(3, 4):
                T.reducer_update(total[i], A[1 - k, i, j])
            T.finalize_reducer(total, result, batch=1 if start else 2)
            T.copy(result, B[k, 0:4])

    data, compare = _data(dtype, kind)
    operands = (Operand((2, 4, 6), dtype, data), Operand((2, 4), dtype, "zero"))
    suffix = "" if start == (op == "reducer_init") else "-neutral"
    return Cell(op, f"{kind}-{dtype}{suffix}", operands, body, compare)


def _older_reducer(kind: str) -> Cell:
    combine = _UPDATES[kind]

    @T.macro
    def body(bx, A, B):
        total = T.alloc_reducer((4,), "float32", op=kind, replication="all")
        if kind == "sum":
            T.clear(total)
        else:
            T.fill(total, 2.0)
        for i, j in T.Parallel(4, 6):
            total[i] = combine(total[i], A[i, j])
        T.finalize_reducer(total)
        T.copy(total, B)

    data, compare = _data("float32", kind)
    operands = (Operand((4, 6), "float32", data), Operand((4,), "float32", "zero"))
    return Cell("finalize_reducer", f"older-{kind}", operands, body, compare)
