"""Tensors as kernels meet them: scalars, odd strides and offsets, empty and very large ones."""

import mmap

import pytest
import torch
from ways import TARGETS, check, execute

import tilelang
import tilelang.language as T
from tilelang.errors import ArgumentValueError

SCALARS = [
    ("int8", -5), ("uint8", 250), ("int16", -30000), ("uint16", 65535), ("int32", -7),
    ("uint32", 2**32 - 1), ("int64", -(2**40)), ("uint64", 2**64 - 1), ("bool", True),
    ("float16", 1.5), ("bfloat16", -2.25), ("float32", 3.25), ("float64", 1e300),
    ("float8_e4m3fn", 1.5), ("float8_e5m2", -4.0), ("float8_e4m3fnuz", 0.5),
    ("float8_e5m2fnuz", 2.0), ("int4", -3), ("uint4", 9),
]  # fmt: skip
TENSORS = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "bfloat16", "float32", "float64", "int4", "uint4",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip
PACKED = ("int4", "uint4", "float4_e2m1fn")


def random_bytes(dtype, *shape):
    """A tensor of any bit patterns that have a meaning."""
    kind = T.dtype(dtype).as_torch()
    if dtype in PACKED:
        shape = (*shape[:-1], (shape[-1] + 1) // 2)
    raw = torch.randint(0, 256, (*shape[:-1], shape[-1] * kind.itemsize), dtype=torch.uint8)
    return raw % 2 == 1 if dtype == "bool" else raw.view(kind)


@pytest.mark.parametrize("dtype, value", SCALARS)
def test_scalar_arguments(dtype, value):
    @T.prim_func
    def program(s: T.dtype(dtype), B: T.Tensor((8,), dtype)):
        with T.Kernel(1):
            for i in T.Parallel(8):
                B[i] = s

    check(
        program, value, out_idx=-1, targets=TARGETS if dtype in ("bool", "float16") else ("llvm",)
    )


def test_scalars_of_every_kind_in_one_call():
    @T.prim_func
    def program(
        a: T.float16, b: T.bfloat16, c: T.uint64, d: T.bool, e: T.float64, f: T.int8,
        B: T.Tensor((6,), "float64"),
    ):  # fmt: skip
        with T.Kernel(1):
            B[0] = T.cast(a, "float64")
            B[1] = T.cast(b, "float64")
            B[2] = T.cast(c >> 3, "float64")
            B[3] = T.if_then_else(d, 1.0, 2.0)
            B[4] = e
            B[5] = T.cast(f, "float64")

    check(program, 0.1, 0.1, 2**63, False, 2.5, -128, torch.zeros(6, dtype=torch.float64))


@pytest.mark.parametrize("dtype", TENSORS)
def test_copies_of_every_dtype_through_every_scope(dtype):
    @T.prim_func
    def program(A: T.Tensor((3, 34), dtype), B: T.Tensor((3, 34), dtype)):
        with T.Kernel(1):
            tile = T.alloc_shared((4, 40), dtype)
            registers = T.alloc_fragment((4, 40), dtype)
            T.copy(A[0, 0], tile)
            T.copy(tile, registers)
            T.copy(registers, B[0, 0])

    a = random_bytes(dtype, 3, 34)
    targets = TARGETS if dtype in ("int4", "bfloat16", "bool") else ("llvm",)
    check(program, a, torch.zeros_like(a), targets=targets)


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_four_bit_elements_of_rows_with_odd_lengths(dtype):
    @T.prim_func
    def program(A: T.Tensor((3, 8), dtype), B: T.Tensor((3, 8), "int32"), C: T.Tensor((8,), dtype)):
        with T.Kernel(1):
            tile = T.alloc_shared((3, 7), dtype)
            for i, j in T.Parallel(3, 7):
                tile[i, j] = A[i, j + 1] + T.cast(i, dtype)
            for i, j in T.Parallel(3, 7):
                B[i, j] = T.cast(tile[i, 6 - j], "int32") * 3
            C[5] = tile[2, 3]

    b = torch.zeros(3, 8, dtype=torch.int32)
    check(program, random_bytes(dtype, 3, 8), b, random_bytes(dtype, 8))


def strided(rows, cols, row_stride, col_stride):
    @T.prim_func
    def program(
        A: T.StridedTensor((rows, cols), (row_stride, col_stride), "float32"),
        B: T.StridedTensor((rows, cols), (row_stride, col_stride), "float32"),
    ):
        with T.Kernel(1):
            tile = T.alloc_shared((4, 8), "float32")
            T.copy(A[0:4, 0:8], tile)
            for i, j in T.Parallel(4, 8):
                tile[i, j] = tile[i, j] * 2
            T.copy(tile, B[0:4, 0:8])

    return program


@pytest.mark.parametrize("row_stride, col_stride", [(20, 2), (1, 4), (16, 1), (8, 1)])
def test_declared_strides(row_stride, col_stride):
    def view():
        return torch.randn(200).as_strided((4, 8), (row_stride, col_stride), 3)

    program = strided(4, 8, row_stride, col_stride)
    for target in TARGETS:
        a, b = view(), view()
        tilelang.compile(program, target=target)(a, b)
        assert torch.equal(b, a * 2)


def test_symbolic_strides():
    m, n, s, t = (T.dynamic(name) for name in "mnst")
    program = strided(m, n, s, t)
    kernel = tilelang.compile(program, target="llvm")
    for a in (torch.randn(4, 8), torch.randn(8, 4).t(), torch.randn(9, 9)[2:6, :8]):
        b = torch.empty_strided(a.shape, a.stride())
        kernel(a, b)
        assert torch.equal(b, a * 2)


@pytest.mark.parametrize("target", TARGETS)
def test_expanded_and_reversed_tensors(target):
    """A stride of zero reads one row again, a negative one runs backwards (numpy has those)."""
    s = T.dynamic("s")

    @T.prim_func
    def program(A: T.StridedTensor((4, 8), (s, 1), "float32"), B: T.Tensor((4, 8), "float32")):
        with T.Kernel(1):
            T.copy(A, B)

    kernel = tilelang.compile(program, target=target, out_idx=-1)
    row = torch.randn(1, 8)
    assert torch.equal(kernel(row.expand(4, 8)), row.expand(4, 8))
    if target == "llvm":  # torch has no negative strides, so it goes through tvm-ffi's numpy
        a = torch.randn(4, 8).numpy()
        assert kernel(a[::-1]).numpy().tolist() == a[::-1].tolist()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8"])
def test_tensors_that_start_anywhere(target, dtype):
    """Aligned to their element, and no more."""

    @T.prim_func
    def program(A: T.Tensor((77,), dtype), B: T.Tensor((77,), dtype)):
        with T.Kernel(1):
            for i in T.Parallel(77):
                B[i] = A[i] + A[76 - i]

    kernel = tilelang.compile(program, target=target)
    for shift in range(4):
        a = random_bytes("int8", 80).to(T.dtype(dtype).as_torch())[shift : shift + 77]
        b = torch.zeros(90, dtype=a.dtype)[shift : shift + 77]
        kernel(a, b)
        assert torch.equal(b, a + a.flip(0))


@pytest.mark.parametrize("shape", [(0, 8), (4, 0), (0, 0)])
def test_tensors_without_elements(shape):
    m, n = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def program(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(m, 4), T.ceildiv(n, 8)) as (bx, by):
            tile = T.alloc_shared((4, 8), "float32")
            T.copy(A[bx * 4, by * 8], tile)
            T.copy(tile, B[bx * 4, by * 8])

    check(program, torch.zeros(shape), torch.zeros(shape), targets=("llvm",))


def test_tile_ops_on_an_empty_tensor_read_the_safe_value():
    n = T.dynamic("n")

    @T.prim_func
    def program(A: T.Tensor((n,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            T.annotate_safe_value({A: 3.0})
            tile = T.alloc_shared((8,), "float32")
            T.copy(A[0:8], tile)
            T.copy(tile, B)

    assert check(program, torch.zeros(0), out_idx=-1)[-1].tolist() == [3.0] * 8


def test_none_for_a_tensor_that_is_never_touched():
    @T.prim_func
    def program(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32"), use: T.int32):
        with T.Kernel(1):
            T.fill(B, 2.0)

    for target in TARGETS:
        assert execute(program, [None, torch.zeros(8), 1], target)[0].tolist() == [2.0] * 8


def huge(bytes_):
    """Zeros that take no memory until they are written."""
    memory = mmap.mmap(-1, bytes_, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(memory, dtype=torch.int8)


@pytest.mark.parametrize("target", TARGETS)
def test_offsets_beyond_two_to_the_31(target):
    """int8 tensors of more than 2^31 elements, of constant and of symbolic size."""
    rows, cols = 2**16 + 3, 2**15
    n = T.dynamic("n", "int64")

    @T.prim_func
    def constant(A: T.Tensor((rows, cols), "int8"), B: T.Tensor((64,), "int8")):
        with T.Kernel(1):
            tile = T.alloc_shared((1, 64), "int8")
            T.copy(A[rows - 1, cols - 64], tile)
            for i in T.Parallel(64):
                B[i] = tile[0, i] + 1
                A[rows - 2, i] = T.cast(i, "int8")

    @T.prim_func
    def symbolic(A: T.Tensor((n,), "int8"), B: T.Tensor((64,), "int8")):
        with T.Kernel(T.ceildiv(n, 2**30)) as bx:
            if bx == 2:
                for i in T.Parallel(64):
                    B[i] = A[n - 64 + i] + T.cast(n // (bx * 2**29 * 2), "int8")

    memory = huge(rows * cols)
    memory[-64:] = torch.arange(64, dtype=torch.int8)
    b = torch.zeros(64, dtype=torch.int8)
    tilelang.compile(constant, target=target)(memory.view(rows, cols), b)
    assert torch.equal(b, torch.arange(64, dtype=torch.int8) + 1)
    row = memory.view(rows, cols)[rows - 2]
    assert torch.equal(row[:64], torch.arange(64, dtype=torch.int8)) and row[64:].sum() == 0
    tilelang.compile(symbolic, target=target)(memory, b)
    assert torch.equal(b, torch.arange(64, dtype=torch.int8) + 1)


@pytest.mark.parametrize("target", TARGETS)
def test_strides_beyond_two_to_the_31(target):
    """Index arithmetic without the memory: rows far apart in a sparse mapping."""
    s = T.dynamic("s", "int64")

    @T.prim_func
    def program(A: T.StridedTensor((3, 16), (s, 1), "int8"), B: T.Tensor((3, 16), "int8")):
        with T.Kernel(1):
            T.copy(A, B)

    stride = 2**31 + 5
    memory = huge(2 * stride + 16)
    a = memory.as_strided((3, 16), (stride, 1))
    a.copy_(torch.arange(48, dtype=torch.int8).view(3, 16))
    b = torch.zeros(3, 16, dtype=torch.int8)
    tilelang.compile(program, target=target)(a, b)
    assert torch.equal(b, a)


@pytest.mark.parametrize("target", TARGETS)
def test_a_size_beyond_its_dtype_is_refused(target):
    n = T.dynamic("n")

    @T.prim_func
    def program(A: T.Tensor((n,), "int8"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            B[0] = n

    kernel = tilelang.compile(program, target=target, out_idx=-1)
    assert kernel(huge(2**31 - 1)).item() == 2**31 - 1
    with pytest.raises(
        ArgumentValueError, match=r"n does not fit int32; .*T.dynamic\('n', 'int64'\)"
    ):
        kernel(huge(2**31))
