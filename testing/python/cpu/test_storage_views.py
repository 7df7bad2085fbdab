"""Views over the same storage: shapes, other dtypes, wider and narrower, of every scope."""

import random

import pytest
import torch
from ways import TARGETS, check, execute

import tilelang
import tilelang.language as T
from tilelang.errors import TraceError

NARROW = ["int8", "uint8", "int16", "uint16", "float16", "bfloat16", "float8_e4m3fn", "int4"]


def test_reshapes_of_global_shared_and_fragment_tiles():
    @T.prim_func
    def program(A: T.Tensor((24,), "float32"), B: T.Tensor((4, 6), "float32")):
        with T.Kernel(1):
            grid = T.view(A, (4, 6))
            tile = T.alloc_shared((2, 12), "float32")
            T.copy(grid, T.reshape(tile, (4, 6)))
            registers = T.alloc_fragment((24,), "float32")
            T.copy(T.reshape(tile, (24,)), registers)
            again = T.reshape(registers, (4, 6))
            for i, j in T.Parallel(4, 6):
                B[i, j] = again[i, j] + tile[i // 2, i % 2 * 6 + j]

    check(program, torch.randn(24), torch.zeros(4, 6))


@pytest.mark.parametrize("scope", ["global", "shared", "fragment"])
@pytest.mark.parametrize("narrow", NARROW)
def test_a_float_written_is_read_in_parts(scope, narrow):
    ratio = 32 // T.dtype(narrow).bits

    @T.prim_func
    def program(
        A: T.Tensor((4, 8), "float32"),
        W: T.Tensor((4, 8), "float32"),
        B: T.Tensor((4, 8 * ratio), narrow),
    ):
        with T.Kernel(1):
            if scope == "shared":
                tile = T.alloc_shared((4, 8), "float32")
            elif scope == "fragment":
                tile = T.alloc_fragment((4, 8), "float32")
            else:
                tile = W
            parts = T.view(tile, dtype=narrow)
            T.copy(A, tile)
            T.copy(parts, B)

    packed = 8 * ratio // (2 if narrow == "int4" else 1)
    b = torch.zeros((4, packed), dtype=T.dtype(narrow).as_torch())
    targets = TARGETS if narrow in ("uint8", "float16", "int4") else ("llvm",)
    check(program, torch.randn(4, 8), torch.zeros(4, 8), b, targets=targets)


@pytest.mark.parametrize("scope", ["shared", "fragment"])
def test_parts_written_are_read_as_a_double(scope):
    @T.prim_func
    def program(A: T.Tensor((16,), "float16"), B: T.Tensor((4,), "float64")):
        with T.Kernel(1):
            alloc = T.alloc_shared if scope == "shared" else T.alloc_fragment
            halves = alloc((16,), "float16")
            T.copy(A, halves)
            T.copy(T.view(halves, dtype="float64"), B)

    check(program, torch.randn(16).half(), torch.zeros(4, dtype=torch.float64))


def test_bits_changed_through_a_view_are_seen_in_loops():
    """Stores through one dtype and loads through another are not reordered at -O3."""

    @T.prim_func
    def program(
        A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "int32")
    ):
        with T.Kernel(1):
            tile = T.alloc_shared((64,), "float32")
            codes = T.view(tile, dtype="int32")
            halves = T.view(tile, dtype="uint16")
            for i in T.serial(64):
                tile[i] = A[i]
                codes[i] = codes[i] ^ 0x00800000
                B[i] = tile[i]
                halves[2 * i] = T.uint16(i)
                C[i] = codes[i]
            for i in T.Parallel(64):
                halves[2 * i + 1] = T.uint16(7)
            for i in T.Parallel(64):
                C[i] = C[i] + codes[i]

    check(program, torch.randn(64), torch.zeros(64), torch.zeros(64, dtype=torch.int32))


def random_accesses(seed, scope):
    """A straight-line program that writes and reads 16 bytes through views of four widths."""
    rng = random.Random(seed)
    kinds = [("uint8", 16), ("uint16", 8), ("uint32", 4), ("uint64", 2)]

    @T.prim_func
    def program(
        A: T.Tensor((40,), "uint64"), W: T.Tensor((16,), "uint8"), B: T.Tensor((40,), "uint64")
    ):
        with T.Kernel(1):
            if scope == "global":
                root = W
            else:
                alloc = T.alloc_shared if scope == "shared" else T.alloc_local
                root = alloc((16,), "uint8")
            T.clear(root)
            views = [root] + [T.view(root, (n,), kind) for kind, n in kinds[1:]]
            for step in range(40):
                which = rng.randrange(4)
                kind, size = kinds[which]
                if rng.random() < 0.5:
                    index = rng.randrange(size)
                    views[which][index] = T.cast(A[step], kind)
                elif rng.random() < 0.3:
                    for i in T.serial(size):
                        views[which][i] = T.cast(A[i], kind)
                which = rng.randrange(4)
                B[step] = T.cast(views[which][rng.randrange(kinds[which][1])], "uint64")

    return program


@pytest.mark.parametrize("scope", ["global", "shared", "local"])
@pytest.mark.parametrize("seed", range(4))
def test_random_accesses_through_views(seed, scope):
    a = torch.randint(-(2**62), 2**62, (40,)).view(torch.uint64)
    zeros = torch.zeros(40, dtype=torch.int64).view(torch.uint64)
    targets = TARGETS if seed == 0 else ("llvm",)
    check(
        random_accesses(seed, scope), a, torch.zeros(16, dtype=torch.uint8), zeros, targets=targets
    )


@pytest.mark.parametrize("target", TARGETS)
def test_a_wide_view_of_a_tensor_that_is_aligned_to_its_element(target):
    @T.prim_func
    def program(A: T.Tensor((32,), "float32"), B: T.Tensor((16,), "float64")):
        with T.Kernel(1):
            wide = T.view(A, dtype="float64")
            for i in T.Parallel(16):
                B[i] = wide[i] * 2.0

    a = torch.randn(33)[1:]
    got = execute(program, [a], target, out_idx=-1)[-1]
    assert torch.equal(got, a.clone().view(torch.float64) * 2)


def test_views_of_views_and_of_rows_with_symbolic_sizes():
    n = T.dynamic("n")

    @T.prim_func
    def program(A: T.Tensor((n, 4), "int32"), B: T.Tensor((n * 4,), "int32")):
        with T.Kernel(1):
            flat = T.view(A, (n * 4,))
            words = T.view(flat, (n * 8,), "int16")
            back = T.view(words, (n * 4,), "int32")
            for i in T.Parallel(n * 4):
                B[i] = back[i] + T.cast(words[2 * i], "int32")

    a = torch.randint(-(2**31), 2**31 - 1, (5, 4), dtype=torch.int32)
    check(program, a, torch.zeros(20, dtype=torch.int32))


def test_a_view_of_tfloat32_moves_bits():
    @T.prim_func
    def program(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), T.tfloat32)):
        with T.Kernel(1):
            tile = T.alloc_shared((64,), "float32")
            T.copy(A, tile)
            T.copy(T.view(tile, dtype=T.tfloat32), B)

    a = torch.randn(64)
    assert torch.equal(check(program, a, torch.zeros(64))[1], a)


def test_a_view_in_a_thread_program():
    @T.prim_func
    def program(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "uint32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            mine = T.alloc_local((2,), "float32")
            bits = T.view(mine, dtype="uint32")
            tile = T.alloc_shared((64,), "float32")
            codes = T.view(tile, dtype="uint32")
            mine[0] = A[tx]
            mine[1] = 1.0
            tile[tx] = A[tx]
            T.sync_threads()
            B[tx] = bits[0] ^ bits[1] ^ codes[63 - tx]

    check(program, torch.randn(64), torch.zeros(64, dtype=torch.int32).view(torch.uint32))


def test_a_workspace_may_be_viewed():
    @T.prim_func
    def program(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "int32")):
        space = T.alloc_global((16,), "float32")
        with T.Kernel(1):
            T.copy(A, space)
        with T.Kernel(1):
            T.copy(T.view(space, dtype="int32"), B)

    a = torch.randn(16)
    assert torch.equal(check(program, a, out_idx=-1)[-1], a.view(torch.int32))


@pytest.mark.parametrize("target", TARGETS)
def test_a_pointer_becomes_a_tensor(target):
    @T.prim_func
    def program(p: T.ptr, q: T.ptr, n: T.int32):
        with T.Kernel(1):
            source = T.make_tensor(p, (n,), "float32")
            sink = T.make_tensor(q, (n,), "float32")
            for i in T.Parallel(n):
                sink[i] = source[i] * 2

    a, b = torch.randn(20), torch.zeros(20)
    tilelang.compile(program, target=target)(a.data_ptr(), b.data_ptr(), 20)
    assert torch.equal(b, a * 2)


@pytest.mark.parametrize(
    "shape, dtype, message",
    [
        ((5, 5), None, "holds 24 x float32 = 768 bits, but"),
        (None, "float64x8", "no whole number of 512-bit elements"),
        ((24,), "float16", "needs 384 bits"),
    ],
)
def test_views_that_do_not_cover_their_storage_are_refused(shape, dtype, message):
    with pytest.raises(TraceError, match=message) as caught:

        @T.prim_func
        def program(A: T.Tensor((24,), "float32")):
            with T.Kernel(1):
                T.view(A, shape, dtype)

    assert isinstance(caught.value, AssertionError)


def test_views_of_strided_tensors_and_of_elements_are_refused():
    with pytest.raises(TraceError, match="explicit strides"):

        @T.prim_func
        def strided(A: T.StridedTensor((4, 4), (8, 1), "float32")):
            with T.Kernel(1):
                T.view(A, (16,))

    with pytest.raises(TraceError, match="whole buffer"):

        @T.prim_func
        def element(A: T.Tensor((4, 4), "float32")):
            with T.Kernel(1):
                T.view(A[0, 0], (16,))
