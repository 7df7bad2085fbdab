"""Tile ops against torch, over dtypes and odd extents."""

import pytest
import torch

import tilelang.language as T
from tilelang.interpreter import InterpreterError, interpret


def of_dtype(dtype, *shape):
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        return torch.randn(*shape).to(kind)
    return torch.randint(-20, 20, shape, dtype=torch.int64).to(kind)


def gemm(M, N, K, dtype, out, transpose_a=False, transpose_b=False, scope=T.alloc_shared):
    a_shape = (K, M) if transpose_a else (M, K)
    b_shape = (N, K) if transpose_b else (K, N)

    @T.prim_func
    def program(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(1):
            a, b = scope(a_shape, dtype), scope(b_shape, dtype)
            c = T.alloc_fragment((M, N), out)
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c, transpose_a, transpose_b)
            T.copy(c, C)

    return program, a_shape, b_shape


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(
    "dtype, out", [("float16", "float32"), ("int8", "int32"), ("bfloat16", "float32")]
)
def test_gemm(dtype, out, transpose_a, transpose_b):
    program, a_shape, b_shape = gemm(16, 24, 40, dtype, out, transpose_a, transpose_b)
    a, b = of_dtype(dtype, *a_shape), of_dtype(dtype, *b_shape)
    c = interpret(program, a, b, out_idx=-1)
    expected = (a.double().T if transpose_a else a.double()) @ (
        b.double().T if transpose_b else b.double()
    )
    assert torch.equal(c, expected.to(c.dtype))


@pytest.mark.parametrize("scope", [T.alloc_shared, T.alloc_fragment, T.alloc_local])
def test_gemm_operands_in_every_scope(scope):
    program, a_shape, b_shape = gemm(8, 8, 8, "float32", "float32", scope=scope)
    a, b = torch.randn(a_shape), torch.randn(b_shape)
    expected = (a.double() @ b.double()).float()
    assert torch.equal(interpret(program, a, b, out_idx=-1), expected)


@pytest.mark.parametrize("size", [(130, 100, 50), (64, 64, 33), (1, 7, 1)])
@pytest.mark.parametrize("stages", [0, 2])
def test_gemm_of_sizes_that_are_no_multiples_of_the_tile(size, stages):
    M, N, K = size

    @T.prim_func
    def program(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 64), threads=128) as (bx, by):
            a, b = T.alloc_shared((64, 16), "float16"), T.alloc_shared((16, 32), "float16")
            c = T.alloc_fragment((64, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 16), num_stages=stages):
                T.copy(A[by * 64, k * 16], a)
                T.copy(B[k * 16, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 32])

    a, b = torch.randn(M, K).half(), torch.randn(K, N).half()
    c = interpret(program, a, b, out_idx=-1)
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-5, atol=1e-5)


def test_gemm_of_slices_of_a_batched_tile():
    @T.prim_func
    def program(
        A: T.Tensor((2, 8, 8), "float16"),
        B: T.Tensor((2, 8, 8), "float16"),
        C: T.Tensor((2, 8, 8), "float32"),
    ):
        with T.Kernel(threads=32):
            a, b = T.alloc_shared((2, 8, 8), "float16"), T.alloc_shared((2, 8, 8), "float16")
            c = T.alloc_fragment((8, 8), "float32")
            for n in T.serial(2):
                T.copy(A[n, :, :], a[n, :, :])
                T.copy(B[n, :, :], b[n, :, :])
                T.gemm(a[n, :, :], b[n, :, :], c, clear_accum=True)
                T.copy(c, C[n, :, :])

    a, b = torch.randn(2, 8, 8).half(), torch.randn(2, 8, 8).half()
    c = interpret(program, a, b, out_idx=-1)
    torch.testing.assert_close(c, torch.bmm(a.float(), b.float()))


REDUCTIONS = {
    "sum": lambda t, d: t.sum(d),
    "abssum": lambda t, d: t.abs().sum(d),
    "max": lambda t, d: t.amax(d),
    "absmax": lambda t, d: t.abs().amax(d),
    "min": lambda t, d: t.amin(d),
}


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16", "int64"])
@pytest.mark.parametrize("shape", [(4, 8), (17, 3), (1, 48)])
def test_reductions_cover_any_extent(kind, dim, dtype, shape):
    kept = shape[1 - dim % 2]

    @T.prim_func
    def program(A: T.Tensor(shape, dtype), B: T.Tensor((kept,), dtype)):
        with T.Kernel(1):
            tile, out = T.alloc_fragment(shape, dtype), T.alloc_fragment((kept,), dtype)
            T.copy(A, tile)
            getattr(T, f"reduce_{kind}")(tile, out, dim=dim)
            T.copy(out, B)

    a = of_dtype(dtype, *shape)
    wide = a.double() if a.dtype.is_floating_point else a
    assert torch.equal(interpret(program, a, out_idx=-1), REDUCTIONS[kind](wide, dim).to(a.dtype))


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
def test_a_reduction_may_combine_with_the_old_value(kind):
    @T.prim_func
    def program(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            out = T.alloc_fragment((4,), "float32")
            T.fill(out, 1.5)
            getattr(T, f"reduce_{kind}")(A, out, dim=1, clear=False)
            T.copy(out, B)

    a = torch.randint(-3, 4, (4, 8)).float()
    combined = torch.cat([a, torch.full((4, 1), 1.5)], dim=1)
    assert torch.equal(interpret(program, a, out_idx=-1), REDUCTIONS[kind](combined, 1))


@pytest.mark.parametrize("propagate", [False, True])
def test_nan_in_a_maximum(propagate):
    @T.prim_func
    def program(A: T.Tensor((2, 4), "float16"), B: T.Tensor((2,), "float16")):
        with T.Kernel(1):
            out = T.alloc_fragment((2,), "float16")
            T.reduce_max(A, out, dim=1, nan_propagate=propagate)
            T.copy(out, B)

    a = torch.tensor([[1, float("nan"), 3, 2], [1, 2, 5, 4]]).half()
    b = interpret(program, a, out_idx=-1)
    assert b[1] == 5 and (b[0].isnan() if propagate else b[0] == 3)


@pytest.mark.parametrize("name", ["cumsum", "cummax"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_scans(name, reverse, dim):
    @T.prim_func
    def program(A: T.Tensor((5, 7), "int32"), B: T.Tensor((5, 7), "int32")):
        with T.Kernel(1):
            tile = T.alloc_shared((5, 7), "int32")
            T.copy(A, tile)
            getattr(T, name)(tile, dim=dim, reverse=reverse)
            T.copy(tile, B)

    a = of_dtype("int32", 5, 7)
    flipped = a.flip(dim) if reverse else a
    expected = flipped.cumsum(dim) if name == "cumsum" else flipped.cummax(dim).values
    expected = expected.flip(dim) if reverse else expected
    assert torch.equal(interpret(program, a, out_idx=-1), expected.int())


def test_transpose():
    @T.prim_func
    def program(A: T.Tensor((5, 7), "float16"), B: T.Tensor((7, 5), "float16")):
        with T.Kernel(1):
            a, b = T.alloc_shared((5, 7), "float16"), T.alloc_shared((7, 5), "float16")
            T.copy(A, a)
            T.transpose(a, b)
            T.copy(b, B)

    a = torch.randn(5, 7).half()
    assert torch.equal(interpret(program, a, out_idx=-1), a.T)


@pytest.mark.parametrize("target", ["float16", "int8", "bool", "float32", "float8_e5m2"])
def test_copy_casts(target):
    @T.prim_func
    def program(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), target)):
        with T.Kernel(1):
            T.copy(A, B)

    a = torch.randint(-100, 100, (64,)).float()
    b = interpret(program, a, out_idx=-1)
    assert torch.equal(b.float(), a.to(getattr(torch, target)).float())


def test_copy_aligns_extents_of_one():
    @T.prim_func
    def program(Q: T.Tensor((2, 8, 3, 4), "float32"), B: T.Tensor((4, 4), "float32")):
        with T.Kernel(1):
            tile = T.alloc_shared((4, 4), "float32")
            T.copy(Q[1, 2:6, 2, :], tile)
            T.copy(tile, B)

    q = torch.randn(2, 8, 3, 4)
    assert torch.equal(interpret(program, q, out_idx=-1), q[1, 2:6, 2, :])


@pytest.mark.parametrize("kind", ["any", "all"])
@pytest.mark.parametrize("values", [[0, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1]])
def test_any_of_and_all_of(kind, values):
    @T.prim_func
    def program(A: T.Tensor((4,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            tile = T.alloc_shared((4,), "int32")
            T.copy(A, tile)
            B[0] = 0
            if getattr(T, f"{kind}_of")(tile):
                B[0] = 1

    b = interpret(program, torch.tensor(values, dtype=torch.int32), out_idx=-1)
    assert bool(b) == {"any": any, "all": all}[kind](values)


def test_im2col_is_unfold():
    @T.prim_func
    def program(A: T.Tensor((1, 6, 5, 4), "float16"), B: T.Tensor((48, 64), "float16")):
        with T.Kernel(1):
            tile = T.alloc_shared((16, 32), "float16")
            for i, j in T.grid(3, 2):
                T.im2col(A, tile, i, j, 3, 1, 1, 1)
                T.copy(tile, B[i * 16, j * 32])

    a = torch.randn(1, 6, 5, 4).half()
    b = interpret(program, a, out_idx=-1)
    columns = torch.nn.functional.unfold(a.permute(0, 3, 1, 2).float(), 3, padding=1)[0]
    expected = columns.reshape(4, 9, 30).permute(2, 1, 0).reshape(30, 36).half()
    assert torch.equal(b[:30, :36], expected) and b[:, 36:].abs().sum() == 0


@pytest.mark.parametrize("start", [0, 2, 4])
def test_what_a_copy_reads_and_writes_must_not_overlap(start):
    @T.prim_func
    def program(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            tile = T.alloc_shared((8,), "int32")
            T.copy(A, tile)
            T.copy(tile[0:4], tile[start : start + 4])
            T.copy(tile, B)

    a = torch.arange(8, dtype=torch.int32)
    if start == 2:
        with pytest.raises(InterpreterError, match=r"T.copy writes part of what it reads of tile"):
            interpret(program, a, out_idx=-1)
        return
    expected = a.tolist() if start == 0 else [0, 1, 2, 3, 0, 1, 2, 3]
    assert interpret(program, a, out_idx=-1).tolist() == expected


def test_gemm_needs_a_written_accumulator():
    @T.prim_func
    def program(A: T.Tensor((8, 8), "float32"), C: T.Tensor((8, 8), "float32")):
        with T.Kernel(1):
            c = T.alloc_fragment((8, 8), "float32")
            T.gemm(A, A, c)
            T.copy(c, C)

    with pytest.raises(InterpreterError, match=r"T.gemm reads c\[0, 0\]"):
        interpret(program, torch.zeros(8, 8), out_idx=-1)


def test_hints_do_not_change_results():
    @T.prim_func
    def program(A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 32), "float16")):
        with T.Kernel(2, 2) as (bx, by):
            T.use_swizzle(4)
            tile = T.alloc_shared((16, 16), "float16")
            T.copy(A[by * 16, bx * 16], tile, coalesced_width=2, disable_tma=True)
            for i, j in T.Parallel(16, 16, coalesced_width=4):
                tile[i, j] = tile[i, j] + 1
            T.copy(tile, B[by * 16, bx * 16], eviction_policy="evict_first")

    a = torch.randn(32, 32).half()
    assert torch.equal(interpret(program, a, out_idx=-1), a + 1)
