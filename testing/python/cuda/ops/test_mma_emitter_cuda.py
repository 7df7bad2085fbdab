"""Matrix kernels written instruction by instruction through the emitter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from emulated_ops import compiles, emulate, source_of

import tilelang.language as T
from tilelang.cuda.intrinsics.mma_rows import mma_row
from tilelang.errors import TraceError, TraceTypeError

TORCH = {"float8_e4m3": "float8_e4m3fn"}


def operand(shape, dtype):
    kind = getattr(torch, TORCH.get(dtype, dtype))
    if dtype in ("int8", "uint8"):
        return torch.randint(0 if dtype == "uint8" else -8, 8, shape, dtype=kind)
    # Exact in every type, also in tf32.
    return (torch.randint(-4, 5, shape).float() / 4).to(kind)


def gemm(
    dtype="float16",
    accum="float32",
    a_transposed=False,
    b_transposed=True,
    warps=(2, 2),
    warp_tile=(32, 32),
    target="shared4",
    is_m_first=False,
    swizzle=True,
    stages=2,
):
    """C = A B over blocks of 2 x 2 warps; three steps of a shared tile along k."""
    x, y, k_unit = T.get_mma_micro_size(dtype)
    chunk, steps = 2 * k_unit, 3
    rows, columns = warps[0] * warp_tile[0], warps[1] * warp_tile[1]
    m, n, k = 2 * rows, 2 * columns, chunk * steps
    emitter = T.TensorCoreIntrinEmitter(
        dtype, dtype, accum, a_transposed, b_transposed, *warps, *warp_tile, chunk,
        is_m_first=is_m_first,
    )  # fmt: skip
    y = emitter.micro_size_y
    a_shape = (k, m) if a_transposed else (m, k)
    b_shape = (n, k) if b_transposed else (k, n)
    a_tile = (chunk, rows) if a_transposed else (rows, chunk)
    b_tile = (columns, chunk) if b_transposed else (chunk, columns)

    @T.prim_func
    def program(
        A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((m, n), accum)
    ):
        with T.Kernel(2, 2, threads=emitter.threads) as (bx, by):
            a_shared = T.alloc_shared(a_tile, dtype)
            b_shared = T.alloc_shared(b_tile, dtype)
            c_shared = T.alloc_shared((rows // x, columns // y, x, y), accum)
            a = T.alloc_local((emitter.warp_rows * emitter.local_size_a,), dtype)
            b = T.alloc_local((emitter.warp_cols * emitter.local_size_b,), dtype)
            c = T.alloc_local(
                (emitter.warp_rows * emitter.warp_cols * emitter.local_size_out,), accum
            )
            if swizzle:
                T.annotate_layout(
                    {
                        a_shared: T.make_mma_swizzle_layout(a_shared),
                        b_shared: T.make_mma_swizzle_layout(b_shared),
                    }
                )
            T.clear(c)
            for ko in T.Pipelined(steps, num_stages=stages):
                if a_transposed:
                    T.copy(A[ko * chunk, by * rows], a_shared)
                else:
                    T.copy(A[by * rows, ko * chunk], a_shared)
                if b_transposed:
                    T.copy(B[bx * columns, ko * chunk], b_shared)
                else:
                    T.copy(B[ko * chunk, bx * columns], b_shared)
                for ki in T.serial(chunk // emitter.micro_size_k):
                    emitter.ldmatrix_a(a, a_shared, ki)
                    emitter.ldmatrix_b(b, b_shared, ki)
                    emitter.mma(a, b, c)
            if target == "global":
                emitter.stmatrix(c, C, by, bx)
            else:
                emitter.stmatrix(c, c_shared)
                for i, j in T.Parallel(rows, columns):
                    C[by * rows + i, bx * columns + j] = c_shared[i // x, j // y, i % x, j % y]

    return program, operand(a_shape, dtype), operand(b_shape, dtype)


def check(arch="sm_90a", **options):
    program, a, b = gemm(**options)
    compiles(program, arch)
    result = emulate(program, a, b, arch=arch)
    left = a.double().T if options.get("a_transposed") else a.double()
    right = b.double().T if options.get("b_transposed", True) else b.double()
    torch.testing.assert_close(result.double(), left @ right, rtol=0, atol=0)
    return program


@pytest.mark.parametrize(
    ("dtype", "accum"),
    [
        ("float16", "float32"),
        ("float16", "float16"),
        ("bfloat16", "float32"),
        ("float32", "float32"),
        ("int8", "int32"),
        ("uint8", "int32"),
        ("float8_e4m3", "float32"),
        ("float64", "float64"),
    ],
)
def test_element_types(dtype, accum):
    check(dtype=dtype, accum=accum, warps=(1, 2), warp_tile=(16, 16))


@pytest.mark.parametrize("a_transposed", [False, True])
@pytest.mark.parametrize("b_transposed", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_orders_of_the_operands(dtype, a_transposed, b_transposed):
    accum = "int32" if dtype == "int8" else "float32"
    program = check(
        dtype=dtype, accum=accum, a_transposed=a_transposed, b_transposed=b_transposed,
        warps=(2, 1), warp_tile=(16, 32),
    )  # fmt: skip
    by_rows = dtype == "float16" or not a_transposed or b_transposed
    assert ("tl::ldmatrix_x4" in source_of(program)) == by_rows


@pytest.mark.parametrize(
    "options",
    [
        {"target": "global"},
        {"is_m_first": True},
        {"swizzle": False, "stages": 1},
        {"warp_tile": (32, 8)},
        {"warps": (1, 1), "warp_tile": (16, 24)},
    ],
)
def test_forms(options):
    check(**options)


def test_source_reads_rows_through_swizzled_tiles():
    program, _, _ = gemm()
    text = source_of(program)
    assert "tl::mma_m16n8k16_f32_f16_f16_f32(" in text and "^" in text and "tl::cp_async" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float16", "accum": "int32"}, "no matrix instruction of float16 and float16"),
        ({"warp_tile": (24, 32)}, "warp_row_tiles must be a multiple of 16"),
        ({"warp_tile": (32, 12)}, "warp_col_tiles must be a multiple of 8"),
    ],
)
def test_sizes_that_no_instruction_has_are_refused(options, message):
    with pytest.raises(TraceError, match=message):
        gemm(**options)


def test_packed_elements_are_refused():
    with pytest.raises(TraceError, match="packed elements"):
        T.TensorCoreIntrinEmitter("int8", "int8", "int32", num_elems_per_byte=2)


def test_registers_must_be_local():
    emitter = T.TensorCoreIntrinEmitter("float16", "float16", "float32", warp_row_tiles=16,
                                        warp_col_tiles=16)  # fmt: skip
    with pytest.raises(TraceTypeError, match=r"T\.alloc_local arrays, found shared.dyn memory"):

        @T.prim_func
        def program(A: T.Tensor((32,), "float16")):
            with T.Kernel(1, threads=128):
                tile = T.alloc_shared((16, 16), "float16")
                emitter.ldmatrix_a(tile, tile, 0)


# --- layouts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("float16", (16, 16, 16)), ("int8", (16, 16, 32)), ("float32", (16, 16, 8)),
     ("float64", (8, 8, 4))],
)  # fmt: skip
def test_micro_size(dtype, size):
    assert T.get_mma_micro_size(dtype) == size


def test_store_index_map_is_that_of_two_instructions():
    row = mma_row("m16n8k16_f32_f16_f16_f32")
    for lane in range(32):
        for element in range(8):
            i, j = row.d_position(lane, element % 4)
            assert T.mma_store_index_map(lane, element) == (i, j + element // 4 * 8)


@pytest.mark.parametrize("dtype", ["float16", "int8", "float32"])
@pytest.mark.parametrize(("matrix", "transposed"), [("A", False), ("A", True), ("B", False)])
def test_ldmatrix_offsets_name_every_row_once(dtype, matrix, transposed):
    width = T.get_mma_micro_size(dtype)[2] // 2
    stride = 16 if transposed == (matrix == "A") and dtype != "float16" else 2 * width
    offsets = [
        T.get_ldmatrix_offset(matrix, lane, 0, 2 * width, dtype, transposed) for lane in range(32)
    ]
    assert stride and sorted(offsets) == [width * i for i in range(32)]


def test_ldmatrix_offset_refuses_other_matrices():
    with pytest.raises(TraceError, match="expected matrix A or B"):
        T.get_ldmatrix_offset("C", 0, 0, 16)


@pytest.mark.parametrize(
    ("row", "dtype"), [(16, "float16"), (32, "float16"), (64, "float16"), (128, "int8")]
)
def test_swizzle_is_a_permutation_without_bank_conflicts(row, dtype):
    bits = 8 if dtype == "int8" else 16
    piece, row_bytes = 128 // bits, row * bits // 8
    places = {T.get_swizzle_layout(i, j, row, dtype) for i in range(16) for j in range(row)}
    assert len(places) == 16 * row
    for column in range(0, row, piece):
        banks = [
            (i * row_bytes + T.get_swizzle_layout(i, column, row, dtype)[1] * bits // 8) % 128 // 16
            for i in range(8)
        ]
        assert len(set(banks)) == 8


def test_swizzle_of_odd_rows_is_refused():
    with pytest.raises(TraceError, match="rows of 48 bytes with a swizzle of any bytes"):
        T.get_swizzle_layout(0, 0, 24, "float16")


def test_smooth_tiles_and_short_rows_stay_in_place():
    tile = T.Tensor((16, 32), "float16")
    assert [int(i) for i in T.make_mma_swizzle_layout(tile, is_smooth=True)(3, 5)] == [3, 5]
    assert [int(i) for i in T.make_mma_swizzle_layout(tile)(2, 8)] == [2, 0]
    short = T.Tensor((16, 24), "float16")
    assert [int(i) for i in T.make_mma_swizzle_layout(short)(3, 5)] == [3, 5]


@pytest.mark.parametrize("is_m_first", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "int8", "float64"])
def test_fragments_hold_what_the_instructions_use(dtype, is_m_first):
    accum = {"float16": "float32", "int8": "int32", "float64": "float64"}[dtype]
    emitter = T.TensorCoreIntrinEmitter(
        dtype, dtype, accum, block_row_warps=2, block_col_warps=2, warp_row_tiles=32,
        warp_col_tiles=16, chunk=64, is_m_first=is_m_first,
    )  # fmt: skip
    row, x, y = emitter.row, emitter.micro_size_x, emitter.micro_size_y
    result = emitter.make_mma_store_layout(T.Tensor((64, 32), accum))
    a = emitter.make_mma_load_layout(T.Tensor((64, 64), dtype), "A")
    b = emitter.make_mma_load_layout(T.Tensor((64, 32), dtype), "B")
    rng = np.random.default_rng(0)
    for thread in rng.integers(0, emitter.threads, 6):
        lane, n, m = emitter.extract_thread_binding(int(thread))
        i, j, k = 1, 0, 1
        for element in range(row.elements[2]):
            r, c = row.d_position(lane, element)
            r, c = m * 32 + i * x + r, n * 16 + j * y + c
            slot = (i * emitter.warp_cols + j) * emitter.local_size_out + element
            assert int(result.map_forward_thread([r, c])) == thread
            assert list(result(r, c)) == [slot]
        for element in range(row.elements[0]):
            r, c = row.a_position(lane, element)
            r, c = m * 32 + i * x + r, k * row.k + c
            owners = {int(a.map_forward_thread([r, c, copy])) for copy in range(2)}
            assert int(thread) in owners and len(owners) == 2
            assert list(a(r, c)) == [(k * emitter.warp_rows + i) * emitter.local_size_a + element]
        for element in range(row.elements[1]):
            r, c = row.b_position(lane, element)
            r, c = k * row.k + r, n * 16 + j * y + c
            assert int(thread) in {int(b.map_forward_thread([r, c, copy])) for copy in range(2)}
            assert list(b(r, c)) == [(k * emitter.warp_cols + j) * emitter.local_size_b + element]


def test_other_operands_have_no_layout():
    emitter = T.TensorCoreIntrinEmitter("float16", "float16", "float32", warp_row_tiles=16)
    with pytest.raises(TraceError, match="expected matrix A or B, found 'C'"):
        emitter.make_mma_load_layout(T.Tensor((32, 16), "float16"), "C")
    with pytest.raises(TraceError, match="a tile of two constant extents"):
        emitter.make_mma_store_layout(T.Tensor((32,), "float16"))
