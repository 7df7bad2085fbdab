"""Reductions of tiles: scopes, dtypes, accumulation, layouts, NaN, batches."""

import pytest
import torch

import tilelang
import tilelang.language as T

REFERENCES = {
    "sum": lambda x, dim: x.sum(dim),
    "max": lambda x, dim: x.amax(dim),
    "min": lambda x, dim: x.amin(dim),
    "abssum": lambda x, dim: x.abs().sum(dim),
    "absmax": lambda x, dim: x.abs().amax(dim),
}
ALLOCATE = {"fragment": T.alloc_fragment, "shared": T.alloc_shared}


def reduction(
    op,
    M,
    N,
    dtype="float32",
    src="fragment",
    dst="fragment",
    threads=32,
    dim=1,
    fill=None,
    **options,
):
    """Reduce an ``M`` × ``N`` tile along ``dim``, with ``fill`` onto what a destination holds."""
    reduce_op = getattr(T, f"reduce_{op}")
    length = M if dim in (1, -1) else N
    if fill is not None:
        options["clear"] = False

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((length,), dtype)):
        with T.Kernel(1, threads=threads):
            source = ALLOCATE[src]((M, N), dtype)
            result = ALLOCATE[dst]((length,), dtype)
            T.copy(A, source)
            if fill is not None:
                T.fill(result, fill)
            reduce_op(source, result, dim=dim, **options)
            T.copy(result, B)

    return main


def inputs(M, N, dtype):
    torch_dtype = T.dtype(dtype).as_torch()
    if torch_dtype.is_floating_point:
        return torch.randn(M, N).to(torch_dtype)
    return torch.randint(-100, 100, (M, N), dtype=torch_dtype)


def check(program, a, expected):
    found = tilelang.compile(program, out_idx=-1)(a)
    tolerance = 1e-1 if a.dtype == torch.float16 else 1e-2
    torch.testing.assert_close(found, expected.to(found.dtype), rtol=tolerance, atol=tolerance)


@pytest.mark.devices
@pytest.mark.parametrize("op", REFERENCES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "int64"])
def test_every_operation_and_dtype(op, dtype):
    a = inputs(16, 32, dtype)
    wide = a.double() if a.dtype.is_floating_point else a.long()
    check(reduction(op, 16, 32, dtype), a, REFERENCES[op](wide, 1))


@pytest.mark.devices
@pytest.mark.parametrize("op", REFERENCES)
@pytest.mark.parametrize(
    "scopes", [("fragment", "shared"), ("shared", "fragment"), ("shared",) * 2]
)
def test_source_and_destination_may_be_shared(op, scopes):
    a = inputs(16, 32, "float32")
    check(reduction(op, 16, 32, src=scopes[0], dst=scopes[1]), a, REFERENCES[op](a, 1))


@pytest.mark.devices
@pytest.mark.parametrize("threads", [8, 64, 256])
def test_blocks_of_8_to_256_threads(threads):
    a = inputs(64, 128, "float32")
    check(reduction("sum", 64, 128, threads=threads), a, a.sum(1))


@pytest.mark.devices
@pytest.mark.parametrize("batch", [2, 4, 8])
@pytest.mark.parametrize("op", ["sum", "max"])
def test_a_batch_does_not_change_the_result(op, batch):
    a = inputs(16, 128, "float32")
    check(reduction(op, 16, 128, threads=128, batch=batch), a, REFERENCES[op](a, 1))


@pytest.mark.devices
@pytest.mark.parametrize(
    ("op", "fill", "expected"),
    [
        ("sum", 1.0, lambda a: a.sum(1) + 1),
        ("max", -float("inf"), lambda a: a.amax(1)),
        ("max", 2.0, lambda a: a.amax(1).clamp(min=2.0)),
        ("min", -2.0, lambda a: a.amin(1).clamp(max=-2.0)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_clear_false_combines_with_what_is_there(op, fill, expected, dtype):
    a = inputs(16, 32, dtype)
    check(reduction(op, 16, 32, dtype, fill=fill), a, expected(a.float()))


@pytest.mark.devices
@pytest.mark.parametrize("width", [32, 64, 128])
def test_rows_as_wide_as_several_warps(width):
    a = inputs(4, width, "float32")
    check(reduction("sum", 4, width, threads=width), a, a.sum(1))


@pytest.mark.devices
@pytest.mark.parametrize("op", ["sum", "max"])
def test_columns_over_dimension_zero(op):
    a = inputs(64, 2, "float32")
    check(reduction(op, 64, 2, threads=128, dim=0), a, REFERENCES[op](a, 0))


@pytest.mark.devices
@pytest.mark.parametrize("width", [1, 3, 17, 48, 96])
def test_widths_that_are_no_powers_of_two(width):
    a = inputs(4, width, "float32")
    check(reduction("sum", 4, width, threads=96), a, a.sum(1))


# One row on each group of threads: the first 64 of 128, two groups of 64, from thread 32 on.
PLACEMENTS = {
    "first-64-of-128": (128, 1, lambda i, j: j),
    "two-groups-in-128": (128, 2, lambda i, j: i * 64 + j),
    "two-groups-in-256": (256, 2, lambda i, j: i * 64 + j),
    "from-thread-32": (128, 1, lambda i, j: j + 32),
    "inside-a-warp": (128, 1, lambda i, j: j + 8),
}


def placed(placement):
    threads, rows, thread_of = PLACEMENTS[placement]

    @T.prim_func
    def main(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows,), "float32")):
        with T.Kernel(1, threads=threads):
            source = T.alloc_fragment((rows, 64), "float32")
            result = T.alloc_fragment((rows,), "float32")
            T.annotate_layout(
                {source: T.Fragment((rows, 64), forward_fn=lambda i, j: (thread_of(i, j), 0))}
            )
            T.copy(A, source)
            T.reduce_sum(source, result, dim=1)
            T.copy(result, B)

    return main, inputs(rows, 64, "float32")


@pytest.mark.devices
@pytest.mark.parametrize("placement", ["first-64-of-128", "two-groups-in-128", "two-groups-in-256"])
def test_fragments_placed_on_some_threads_of_the_block(placement):
    main, a = placed(placement)
    check(main, a, a.sum(1))


@pytest.mark.parametrize("placement", ["from-thread-32", "inside-a-warp"])
def test_fragments_placed_from_a_thread_on(placement):
    main, a = placed(placement)
    check(main, a, a.sum(1))


@pytest.mark.devices
def test_a_replicated_fragment_counts_every_element_once():
    @T.prim_func
    def main(A: T.Tensor((8, 32), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=128):
            source = T.alloc_fragment((8, 32), "float32")
            result = T.alloc_fragment((8,), "float32")
            layout = T.Fragment((8, 32), forward_fn=lambda i, j, r: (r * 32 + j, i), replicate=4)
            T.annotate_layout({source: layout})
            T.copy(A, source)
            T.reduce_sum(source, result, dim=1)
            T.copy(result, B)

    a = inputs(8, 32, "float32")
    check(main, a, a.sum(1))


@pytest.mark.devices
@pytest.mark.parametrize("op", ["sum", "max", "min"])
@pytest.mark.parametrize("dim", [0, 1])
def test_local_buffers_of_float16(op, dim):
    @T.prim_func
    def main(A: T.Tensor((8, 16), "float16"), B: T.Tensor(((16, 8)[dim],), "float16")):
        with T.Kernel(1, threads=1):
            source = T.alloc_local((8, 16), "float16")
            result = T.alloc_local(((16, 8)[dim],), "float16")
            T.copy(A, source)
            getattr(T, f"reduce_{op}")(source, result, dim=dim)
            T.copy(result, B)

    a = inputs(8, 16, "float16")
    check(main, a, REFERENCES[op](a.float(), dim))


@pytest.mark.devices
def test_a_local_buffer_into_a_variable():
    @T.prim_func
    def main(A: T.Tensor((16,), "float16"), B: T.Tensor((1,), "float16")):
        with T.Kernel(1, threads=1):
            source = T.alloc_local((16,), "float16")
            largest = T.alloc_var("float16")
            T.copy(A, source)
            T.reduce_max(source, largest, dim=0)
            B[0] = largest

    a = inputs(1, 16, "float16")[0]
    check(main, a, a.amax().reshape(1))


@pytest.mark.devices
def test_a_lone_extreme_in_a_reshaped_fragment_with_a_layout():
    @T.prim_func
    def main(A: T.Tensor((1024,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            flat = T.alloc_fragment((1024,), "float32")
            T.annotate_layout(
                {
                    flat: T.Fragment(
                        (1024,), forward_fn=lambda i: (i // 4 % 32, i // 128 * 4 + i % 4)
                    )
                }
            )
            rows = T.reshape(flat, (8, 128))
            result = T.alloc_fragment((8,), "float32")
            T.copy(A, flat)
            T.reduce_absmax(rows, result, dim=1)
            T.copy(result, B)

    for position in (0, 77, 517, 1023):
        a = torch.zeros(1024)
        a[position] = -9.0
        check(main, a, a.view(8, 128).abs().amax(1))


@pytest.mark.devices
def test_a_sum_after_a_reshape_across_threads():
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_fragment((64, 32), "float32")
            result = T.alloc_fragment((128,), "float32")
            T.copy(A, tile)
            T.reduce_sum(T.reshape(tile, (128, 16)), result, dim=1)
            T.copy(result, B)

    a = inputs(64, 32, "float32")
    check(main, a, a.view(128, 16).sum(1))


@pytest.mark.devices
def test_fp8_input_with_a_float16_maximum_is_exact():
    @T.prim_func
    def main(A: T.Tensor((16, 32), "float8_e4m3fn"), B: T.Tensor((16,), "float16")):
        with T.Kernel(1, threads=32):
            source = T.alloc_fragment((16, 32), "float8_e4m3fn")
            result = T.alloc_fragment((16,), "float16")
            T.copy(A, source)
            T.reduce_absmax(source, result, dim=1)
            T.copy(result, B)

    a = torch.randn(16, 32).to(torch.float8_e4m3fn)
    found = tilelang.compile(main, out_idx=-1)(a)
    assert torch.equal(found, a.half().abs().amax(1))


@pytest.mark.devices
@pytest.mark.parametrize("op", ["max", "min", "absmax"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("batch", [1, 4])
def test_nan_propagates_on_request_and_only_in_its_row(op, dtype, batch):
    a = inputs(16, 32, dtype)
    a[3, 5] = a[7, 0] = a[15, 31] = float("nan")
    program = reduction(op, 16, 32, dtype, nan_propagate=True, batch=batch)
    found = tilelang.compile(program, out_idx=-1)(a)
    assert found.isnan().nonzero().flatten().tolist() == [3, 7, 15]
    rest = ~found.isnan()
    assert torch.equal(found[rest], REFERENCES[op](a, 1)[rest])


@pytest.mark.devices
def test_without_the_request_a_maximum_passes_over_nan():
    a = inputs(16, 32, "float16")
    a[3, 5] = float("nan")
    check(reduction("max", 16, 32, "float16"), a, a.nan_to_num(nan=-float("inf")).amax(1))


@pytest.mark.devices
def test_copy_takes_disable_tma():
    @T.prim_func
    def main(A: T.Tensor((16, 32), "float32"), B: T.Tensor((16, 32), "float32")):
        with T.Kernel(1, threads=32):
            tile = T.alloc_shared((16, 32), "float32")
            T.copy(A, tile, disable_tma=True)
            T.copy(tile, B, disable_tma=True)

    a = inputs(16, 32, "float32")
    check(main, a, a)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: reduction("sum", 8, 16, batch=0), "batch"),
        (lambda: reduction("sum", 8, 16, dim=2), "dim"),
        (lambda: reduction("abssum", 8, 16, fill=0.0), "clear"),
    ],
)
def test_wrong_reductions_are_refused(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        change()
