"""Cells of the ops that move or fill tiles: copy, fill, transpose, im2col."""

from __future__ import annotations

from collections.abc import Iterator

import tilelang.language as T
from testing.cells.cell import FLOATS, FP8, INTEGERS, PACKED, Cell, Operand

__all__ = ["copy_cells", "fill_cells", "im2col_cells", "transpose_cells"]

ALL = (*FLOATS, *FP8, *INTEGERS, *PACKED, "bool", "float8_e8m0fnu")
_SCOPES = {
    "shared": T.alloc_shared,
    "fragment": T.alloc_fragment,
    "local": T.alloc_local,
}


def _copied(name: str, source: str, target: str, shape: tuple[int, ...], slow: bool) -> Cell:
    """Global to shared, cast into a fragment, and out again."""
    window = tuple(slice(0, extent) for extent in shape)

    @T.macro
    def body(bx, A, B):
        tile = T.alloc_shared(shape, source)
        registers = T.alloc_fragment(shape, target)
        T.copy(A, tile)
        T.copy(tile, registers)
        T.copy(registers, B[window])

    operands = (Operand(shape, source, "mixed"), Operand(shape, target, "zero"))
    return Cell("copy", name, operands, body, slow=slow)


def copy_cells() -> Iterator[Cell]:
    """Every dtype, every conversion, every pair of scopes, shapes, slices and hints."""
    for dtype in ALL:
        yield _copied(f"same-{dtype}", dtype, dtype, (6, 10), slow=False)
    casts = (*FLOATS, *FP8, *INTEGERS, "bool")
    common = {"float32", "float16", "bfloat16", "int8", "int32", "uint8"}
    for source in (*casts, "int4", "uint4", "float4_e2m1fn"):
        for target in casts:
            if source != target:
                slow = not {source, target} <= common
                yield _copied(f"{source}-to-{target}", source, target, (4, 18), slow)
    for shape in ((1,), (7,), (1, 1), (3, 1, 5), (2, 3, 4, 5), (5, 64)):
        yield _copied("shape-" + "x".join(map(str, shape)), "float32", "float32", shape, False)
    yield from _scope_cells()
    yield from _slice_cells()
    yield from _hint_cells()


def _scope_cells() -> Iterator[Cell]:
    for first in _SCOPES:
        for second in _SCOPES:

            @T.macro
            def body(bx, A, B, first=first, second=second):
                one = _SCOPES[first]((4, 6), "float16")
                two = _SCOPES[second]((4, 6), "float32")
                T.copy(A, one)
                T.copy(one, two)
                T.copy(two, B)

            operands = (Operand((4, 6), "float16"), Operand((4, 6), "float32", "zero"))
            yield Cell("copy", f"{first}-to-{second}", operands, body)


def _slice_cells() -> Iterator[Cell]:
    @T.macro
    def rows(bx, A, B):
        tile = T.alloc_shared((8, 4), "int32")
        T.copy(A[bx, 2:10, 3, 0:4], tile)
        T.copy(tile[1:8, 0:3], B[bx, 0:7, 1:4])

    operands = (Operand((2, 12, 5, 4), "int32"), Operand((2, 8, 6), "int32"))
    yield Cell("copy", "slices-of-more-dimensions", operands, rows, grid=2)

    @T.macro
    def outside(bx, A, B):
        tile = T.alloc_shared((16, 16), "float32")
        T.copy(A[bx * 16 - 8, 8], tile)
        T.copy(tile, B[bx * 16 + 4, 12])

    operands = (Operand((20, 20), "float32"), Operand((40, 20), "float32"))
    yield Cell("copy", "outside-the-tensor", operands, outside, grid=3)

    @T.macro
    def elements(bx, A, B):
        T.copy(A[bx, 3], B[3, bx])

    operands = (Operand((4, 4), "int8"), Operand((4, 4), "float32"))
    yield Cell("copy", "elements", operands, elements, grid=4)


def _hint_cells() -> Iterator[Cell]:
    hints = {
        "coalesced-width": {"coalesced_width": 4},
        "without-tma": {"disable_tma": True},
        "eviction": {"eviction_policy": "evict_first"},
        "instruction": {"prefer_instruction": "cp_async"},
        "layout": {"loop_layout": T.Fragment((8, 8), lambda i, j: (i * 8 + j, 0))},
    }
    for name, options in hints.items():

        @T.macro
        def body(bx, A, B, options=options):
            tile = T.alloc_shared((8, 8), "float32")
            T.copy(A, tile, **options)
            T.copy(tile, B)

        operands = (Operand((8, 8), "float32"), Operand((8, 8), "float32", "zero"))
        yield Cell("copy", f"hint-{name}", operands, body)

    @T.macro
    def asynchronous(bx, A, B):
        tile = T.alloc_shared((8, 8), "float32")
        T.async_copy(A, tile)
        T.copy(tile, B)

    operands = (Operand((8, 8), "float32"), Operand((8, 8), "float32", "zero"))
    yield Cell("copy", "asynchronous", operands, asynchronous)


def fill_cells() -> Iterator[Cell]:
    """Every dtype, constants and expressions, tiles and slices."""
    for dtype in (d for d in ALL if d not in ("float4_e2m1fn", "float8_e8m0fnu")):
        value = 1 if dtype == "bool" else 3

        @T.macro
        def body(bx, A, B, dtype=dtype, value=value):
            tile = T.alloc_shared((5, 12), dtype)
            T.clear(tile)
            T.fill(tile[1:4, 2:12], value)
            T.copy(tile, B)
            T.fill(B[0, 3:9], A[0, 5])

        operands = (Operand((5, 12), dtype), Operand((5, 12), dtype, "zero"))
        yield Cell("fill", dtype, operands, body)

    @T.macro
    def casts(bx, A, B):
        T.fill(B[bx, 0:4], A[bx] * 1.5)

    operands = (Operand((3,), "float32", "mixed"), Operand((3, 4), "int8"))
    yield Cell("fill", "expression-of-another-dtype", operands, casts, grid=3)


def transpose_cells() -> Iterator[Cell]:
    """Matrices and stacks of them, with casts."""
    cases = [("float32", "float32", ()), ("float16", "float32", (3,)), ("int8", "int8", (2, 2))]
    cases += [("bfloat16", "bfloat16", ()), ("int4", "int4", ()), ("float32", "float8_e5m2", ())]
    for source, target, lead in cases:

        @T.macro
        def body(bx, A, B, source=source, target=target, lead=lead):
            tile = T.alloc_shared((*lead, 6, 10), source)
            flipped = T.alloc_fragment((*lead, 10, 6), target)
            T.copy(A, tile)
            T.transpose(tile, flipped)
            T.copy(flipped, B)

        operands = (
            Operand((*lead, 6, 10), source, "mixed"),
            Operand((*lead, 10, 6), target, "zero"),
        )
        yield Cell("transpose", f"{source}-{target}-{len(lead) + 2}d", operands, body)


def im2col_cells() -> Iterator[Cell]:
    """Geometries with and without padding, strides, dilation, and ragged last blocks."""
    geometries = [(1, 1, 1, 0), (3, 1, 1, 1), (3, 2, 1, 1), (2, 1, 2, 2), (3, 2, 2, 0)]
    for kernel, stride, dilation, pad in geometries:
        for dtype in ("float16", "int8"):

            @T.macro
            def body(
                bx, A, B, kernel=kernel, stride=stride, dilation=dilation, pad=pad, dtype=dtype
            ):
                tile = T.alloc_shared((8, 6), dtype)
                for k in T.serial(3):
                    T.im2col(A, tile, bx, k, kernel, stride, dilation, pad)
                    T.copy(tile, B[bx, k, 0:8, 0:6])

            operands = (Operand((2, 5, 6, 4), dtype), Operand((3, 3, 8, 6), dtype, "zero"))
            name = f"{dtype}-k{kernel}s{stride}d{dilation}p{pad}"
            yield Cell("im2col", name, operands, body, grid=3)
