"""Reducers: epochs of init, updates and finalize; the older assignment style; every mistake."""

import pytest
import torch

import tilelang
import tilelang.language as T

BASELINE = {tilelang.PassConfigKey.TL_REDUCER_FORCE_BASELINE: True}


def compiled(program, **options):
    return tilelang.compile(program, out_idx=-1, **options)


def column_reduction(op, M=16, N=24, dtype="float32", start=None, threads=128):
    """Reduce the rows of ``A``; ``start`` counts once in every output."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_shared((M, N), dtype)
            result = T.alloc_fragment((N,), dtype)
            r = T.alloc_reducer((N,), dtype, op=op)
            T.copy(A, tile)
            if start is None:
                T.reducer_init(r)
            else:
                T.reducer_init(r, start)
            for i, j in T.Parallel(M, N):
                T.reducer_update(r[j], tile[i, j])
            T.finalize_reducer(r, result)
            T.copy(result, B)

    return main


def fold(op, a):
    rows = list(a)
    combine = {
        "sum": torch.add,
        "max": torch.maximum,
        "min": torch.minimum,
        "bitand": torch.bitwise_and,
        "bitor": torch.bitwise_or,
        "bitxor": torch.bitwise_xor,
    }[op]
    total = rows[0]
    for row in rows[1:]:
        total = combine(total, row)
    return total


@pytest.mark.devices("llvm", "c")
@pytest.mark.parametrize("op", ["sum", "max", "min"])
def test_an_epoch_on_floats(op):
    a = torch.randn(16, 24)
    found = compiled(column_reduction(op))(a)
    if op == "sum":
        torch.testing.assert_close(found, a.sum(0), rtol=1e-5, atol=1e-5)
    else:
        assert torch.equal(found, fold(op, a))


@pytest.mark.devices
@pytest.mark.parametrize("op", ["sum", "max", "min", "bitand", "bitor", "bitxor"])
def test_integers_are_exact(op):
    a = torch.randint(-(2**31), 2**31 - 1, (16, 24), dtype=torch.int32)
    assert torch.equal(compiled(column_reduction(op, dtype="int32"))(a), fold(op, a))


@pytest.mark.devices
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats(dtype):
    a = torch.randn(16, 24).to(T.dtype(dtype).as_torch())
    found = compiled(column_reduction("sum", dtype=dtype))(a)
    torch.testing.assert_close(found, a.float().sum(0).to(a.dtype), rtol=2e-2, atol=5e-2)


@pytest.mark.devices
def test_replication_does_not_multiply_contributions():
    @T.prim_func
    def main(B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=128):
            result = T.alloc_fragment((1,), "float32")
            r = T.alloc_reducer((1,), "float32", op="sum")
            T.reducer_init(r)
            for i in T.Parallel(8):
                T.reducer_update(r[0], T.cast(i + 1, "float32"))
            T.finalize_reducer(r, result)
            T.copy(result, B)

    assert compiled(main)().item() == 36


@pytest.mark.devices
def test_one_epoch_spans_tiles_sites_and_pipelined_iterations():
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=32):
            tile = T.alloc_shared((64,), "float32")
            result = T.alloc_fragment((1,), "float32")
            r = T.alloc_reducer((1,), "float32", op="sum")
            T.reducer_init(r)
            for k in T.serial(4):
                T.copy(A[k, 0], tile)
                for i in T.Parallel(64):
                    T.reducer_update(r[0], tile[i])
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[4 + k, 0], tile)
                for i in T.Parallel(16):
                    T.reducer_update(r[0], tile[i])
                for i in T.Parallel(48):
                    T.reducer_update(r[0], tile[16 + i])
            T.finalize_reducer(r, result)
            T.copy(result, B)

    a = torch.randn(8, 64)
    configs = {tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True}
    found = compiled(main, pass_configs=configs)(a)
    torch.testing.assert_close(found[0], a.sum(), rtol=1e-4, atol=1e-4)


@pytest.mark.devices
@pytest.mark.parametrize("threads", [1, 32, 128])
@pytest.mark.parametrize(("op", "start"), [("sum", 3.0), ("max", 9.0), ("min", -9.0)])
def test_a_start_value_counts_once(op, start, threads):
    a = torch.randn(16, 24)
    expected = {
        "sum": a.sum(0) + 3.0,
        "max": a.amax(0).clamp(min=9.0),
        "min": a.amin(0).clamp(max=-9.0),
    }[op]
    found = compiled(column_reduction(op, start=start, threads=threads))(a)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.devices
def test_a_start_value_is_evaluated_at_the_init():
    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=32):
            result = T.alloc_fragment((1,), "float32")
            start = T.alloc_var("float32", init=5.0)
            r = T.alloc_reducer((1,), "float32", op="sum")
            T.reducer_init(r, start)
            start = 100.0
            for i in T.Parallel(16):
                T.reducer_update(r[0], A[i])
            T.finalize_reducer(r, result)
            B[0] = result[0]

    a = torch.randn(16)
    torch.testing.assert_close(compiled(main)(a)[0], a.sum() + 5, rtol=1e-5, atol=1e-5)


@pytest.mark.devices
@pytest.mark.parametrize(
    ("op", "dtype"),
    [("sum", "float32"), ("sum", "float16"), ("max", "float32"), ("bitxor", "int32")],
)
def test_the_forced_baseline_agrees_with_the_plan(op, dtype):
    torch_dtype = T.dtype(dtype).as_torch()
    a = torch.randn(16, 24) * 100
    program = column_reduction(op, dtype=dtype)
    a = a.to(torch_dtype)
    plan, baseline = compiled(program)(a), compiled(program, pass_configs=BASELINE)(a)
    if op == "sum":
        torch.testing.assert_close(plan, baseline, rtol=1e-2, atol=1e-2)
    else:
        assert torch.equal(plan, baseline)


@pytest.mark.devices
def test_indices_may_be_permuted_and_unit_dimensions_use_zero():
    @T.prim_func
    def main(A: T.Tensor((8, 12, 4), "float32"), B: T.Tensor((4, 1, 8), "float32")):
        with T.Kernel(1, threads=64):
            result = T.alloc_fragment((4, 1, 8), "float32")
            r = T.alloc_reducer((4, 1, 8), "float32", op="max")
            T.reducer_init(r)
            for i, j, k in T.Parallel(8, 12, 4):
                T.reducer_update(r[k, 0, i], A[i, j, k])
            T.finalize_reducer(r, result)
            T.copy(result, B)

    a = torch.randn(8, 12, 4)
    assert torch.equal(compiled(main)(a), a.amax(1).T.reshape(4, 1, 8))


def online_logsumexp(loop, N=64, blocks=8):
    @T.prim_func
    def main(A: T.Tensor((4, N), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(4, threads=32) as row:
            width = N // blocks
            tile = T.alloc_fragment((width,), "float32")
            largest = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            high, add = T.alloc_fragment((1,), "float32"), T.alloc_fragment((1,), "float32")
            T.fill(largest, -T.infinity("float32"))
            T.clear(total)
            for k in loop(blocks):
                T.copy(A[row, k * width], tile)
                r_max = T.alloc_reducer((1,), "float32", op="max")
                r_sum = T.alloc_reducer((1,), "float32", op="sum")
                T.reducer_init(r_max, largest[0])
                for i in T.Parallel(width):
                    T.reducer_update(r_max[0], tile[i])
                T.finalize_reducer(r_max, high)
                T.reducer_init(r_sum)
                for i in T.Parallel(width):
                    T.reducer_update(r_sum[0], T.exp(tile[i] - high[0]))
                T.finalize_reducer(r_sum, add)
                total[0] = total[0] * T.exp(largest[0] - high[0]) + add[0]
                largest[0] = high[0]
            B[row] = T.log(total[0]) + largest[0]

    return main


@pytest.mark.devices
@pytest.mark.parametrize(
    "loop", [T.serial, lambda n: T.Pipelined(n, num_stages=2)], ids=["serial", "pipelined"]
)
def test_a_whole_epoch_inside_a_loop(loop):
    a = torch.randn(4, 64) * 5
    found = compiled(online_logsumexp(loop))(a)
    torch.testing.assert_close(found, a.logsumexp(1), rtol=1e-4, atol=1e-4)


@pytest.mark.devices
def test_an_epoch_or_only_its_end_under_a_uniform_condition():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), flag: T.int32, B: T.Tensor((2,), "float32")):
        with T.Kernel(1, threads=32):
            result = T.alloc_fragment((1,), "float32")
            inner, outer = (
                T.alloc_reducer((1,), "float32", op="sum"),
                T.alloc_reducer((1,), "float32", op="max"),
            )
            T.clear(result)
            if flag > 0:
                T.reducer_init(inner)
                for i in T.Parallel(64):
                    T.reducer_update(inner[0], A[i])
                T.finalize_reducer(inner, result)
            B[0] = result[0]
            T.reducer_init(outer)
            for i in T.Parallel(64):
                T.reducer_update(outer[0], A[i])
            if flag > 0:
                T.finalize_reducer(outer, result)
            B[1] = result[0]

    kernel = tilelang.compile(main, out_idx=-1)
    a = torch.randn(64)
    torch.testing.assert_close(kernel(a, 1), torch.stack([a.sum(), a.amax()]), rtol=1e-5, atol=1e-5)
    assert kernel(a, 0).tolist() == [0, 0]


def serially_indexed(legacy, stage):
    """Rows are updated from a serial loop; ``stage`` converts the result before it is stored."""
    options = {"replication": "all"} if legacy else {}

    @T.prim_func
    def main(A: T.Tensor((8, 32), "float32"), B: T.Tensor((9,), "float16")):
        with T.Kernel(1, threads=32):
            r = T.alloc_reducer((8,), "float32", op="sum", **options)
            result = T.alloc_fragment((8,), "float32")
            staged = T.alloc_fragment((8,), "float16")
            if legacy:
                T.clear(r)
            else:
                T.reducer_init(r)
            for i in T.serial(8):
                for j in T.Parallel(32):
                    if legacy:
                        r[i] += A[i, j]
                    else:
                        T.reducer_update(r[i], A[i, j])
            if legacy:
                T.finalize_reducer(r)
                T.copy(r, result)
            else:
                T.finalize_reducer(r, result)
            if stage:
                T.copy(result, staged)
                T.copy(staged, B[0:8])
            else:
                T.copy(result, B[0:8])
            B[8] = result[3] * 2.0

    return main


@pytest.mark.devices
@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("stage", [False, True])
def test_indices_of_serial_loops_and_further_consumers(legacy, stage):
    a = torch.randn(8, 32)
    found = compiled(serially_indexed(legacy, stage))(a)
    expected = torch.cat([a.sum(1), a[3:4].sum(1) * 2]).half()
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)


# The older style.


def legacy_reduction(op, M=16, N=24, batch=1, options=None, threads=128):
    options = {"replication": "all"} if options is None else options

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=threads):
            r = T.alloc_reducer((N,), "float32", op=op, **options)
            if op == "sum":
                T.clear(r)
            else:
                T.fill(r, -T.infinity("float32") if op == "max" else T.infinity("float32"))
            for i, j in T.Parallel(M, N):
                if op == "sum":
                    r[j] += A[i, j]
                elif op == "max":
                    r[j] = T.max(r[j], A[i, j])
                else:
                    r[j] = T.min(r[j], A[i, j])
            T.finalize_reducer(r, batch=batch)
            T.copy(r, B)

    return main


@pytest.mark.devices
@pytest.mark.parametrize("op", ["sum", "max", "min"])
@pytest.mark.parametrize("options", [{"replication": "all"}, {"replication": "none"}, {}])
def test_the_older_style(op, options):
    a = torch.randn(16, 24)
    found = compiled(legacy_reduction(op, options=options))(a)
    torch.testing.assert_close(found, fold(op, a), rtol=1e-5, atol=1e-5)


@pytest.mark.devices
@pytest.mark.parametrize("batch", [1, 2, 8])
def test_a_batch_does_not_change_the_result(batch):
    a = torch.randn(16, 24)
    found = compiled(legacy_reduction("sum", batch=batch), pass_configs=BASELINE)(a)
    torch.testing.assert_close(found, a.sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.devices
def test_an_extent_far_below_the_number_of_threads():
    a = torch.randn(8, 1)
    found = compiled(legacy_reduction("sum", 8, 1, threads=256))(a)
    torch.testing.assert_close(found[0], a.sum(), rtol=1e-5, atol=1e-5)


@pytest.mark.devices
def test_several_update_loops_read_as_elements_afterwards():
    @T.prim_func
    def main(A: T.Tensor((40,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=64):
            r = T.alloc_reducer(1, "float32", op="sum", replication="all")
            T.clear(r)
            for i in T.Parallel(8):
                r[0] += A[i]
            for i in T.Parallel(32):
                r[0] += A[8 + i]
            T.finalize_reducer(r)
            B[0] = r[0] * 2.0

    a = torch.randn(40)
    torch.testing.assert_close(compiled(main)(a)[0], a.sum() * 2, rtol=1e-5, atol=1e-5)


@pytest.mark.devices
def test_log_sum_exp_reopened_in_every_pipelined_iteration():
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            tile = T.alloc_shared((64,), "float32")
            highest = T.alloc_reducer(1, "float32", op="max", replication="all")
            total = T.alloc_reducer(1, "float32", op="sum", replication="all")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k, 0], tile)
                T.fill(highest, -T.infinity("float32"))
                for i in T.Parallel(64):
                    highest[0] = T.max(highest[0], tile[i])
                T.finalize_reducer(highest)
                T.clear(total)
                for i in T.Parallel(64):
                    total[0] += T.exp(tile[i] - highest[0])
                T.finalize_reducer(total)
                B[k] = T.log(total[0]) + highest[0]

    a = torch.randn(4, 64) * 5
    torch.testing.assert_close(compiled(main)(a), a.logsumexp(1), rtol=1e-4, atol=1e-4)


@pytest.mark.devices
def test_the_older_style_finalised_in_one_branch():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), flag: T.int32, B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=32):
            r = T.alloc_reducer(1, "float32", op="sum", replication="all")
            T.clear(r)
            for i in T.Parallel(64):
                r[0] += A[i]
            if flag > 0:
                T.finalize_reducer(r)
                B[0] = r[0]
            else:
                B[0] = -1.0

    kernel, a = compiled(main), torch.randn(64)
    torch.testing.assert_close(kernel(a, 1)[0], a.sum(), rtol=1e-5, atol=1e-5)
    assert kernel(a, 0).item() == -1


# Mistakes.


@pytest.mark.parametrize("op", ["bitand", "bitor", "bitxor"])
def test_bitwise_operations_need_integers(op):
    with pytest.raises(AssertionError, match="integer dtype"):
        column_reduction(op, dtype="float32")


def test_a_start_value_of_another_dtype():
    with pytest.raises(ValueError, match="does not match reducer"):

        @T.prim_func
        def main(A: T.Tensor((8,), "float16")):
            with T.Kernel(1, threads=32):
                r = T.alloc_reducer((1,), "float32", op="sum")
                T.reducer_init(r, A[0])


@pytest.mark.parametrize("batch", [0, -1])
def test_a_batch_below_one_is_refused_where_it_is_written(batch):
    with pytest.raises(ValueError, match="batch must be >= 1"):
        legacy_reduction("sum", batch=batch)


@pytest.mark.devices
@pytest.mark.parametrize(
    ("batch", "message"), [(48, "exceeds total output elements"), (7, "must evenly divide")]
)
def test_batches_that_do_not_fit_the_outputs(batch, message):
    with pytest.raises(ValueError, match=message):
        compiled(legacy_reduction("sum", batch=batch))


def broken(statements):
    """A program around ``statements(r, A, out)``, a macro that makes one mistake."""

    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=32):
            r = T.alloc_reducer((1,), "float32", op="sum")
            out = T.alloc_fragment((1,), "float32")
            T.clear(out)
            statements(r, A, out)
            B[0] = out[0]

    return main


@T.macro
def update_before_init(r, A, out):
    for i in T.Parallel(16):
        T.reducer_update(r[0], A[i])
    T.reducer_init(r)
    T.finalize_reducer(r, out)


@T.macro
def no_finalize(r, A, out):
    T.reducer_init(r)
    for i in T.Parallel(16):
        T.reducer_update(r[0], A[i])


@T.macro
def ordinary_store(r, A, out):
    T.reducer_init(r)
    for i in T.Parallel(16):
        r[0] = A[i]
    T.finalize_reducer(r, out)


@T.macro
def ordinary_read(r, A, out):
    T.reducer_init(r)
    for i in T.Parallel(1):
        out[i] = r[0]
    T.finalize_reducer(r, out)


@T.macro
def read_by_copy(r, A, out):
    T.reducer_init(r)
    T.copy(r, out)
    T.finalize_reducer(r, out)


@T.macro
def clear_a_handle(r, A, out):
    T.clear(r)
    T.reducer_init(r)
    T.finalize_reducer(r, out)


@T.macro
def update_outside_parallel(r, A, out):
    T.reducer_init(r)
    for i in T.serial(16):
        T.reducer_update(r[0], A[i])
    T.finalize_reducer(r, out)


@T.macro
def two_inits(r, A, out):
    T.reducer_init(r)
    T.reducer_init(r)
    T.finalize_reducer(r, out)


@T.macro
def finalize_outside_the_loop(r, A, out):
    for _ in T.serial(2):
        T.reducer_init(r)
        for i in T.Parallel(16):
            T.reducer_update(r[0], A[i])
    T.finalize_reducer(r, out)


@T.macro
def finalize_in_an_extra_loop(r, A, out):
    T.reducer_init(r)
    for i in T.Parallel(16):
        T.reducer_update(r[0], A[i])
    for _ in T.serial(2):
        T.finalize_reducer(r, out)


@pytest.mark.devices
@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (update_before_init, r"before T\.reducer_init"),
        (no_finalize, "never finalized"),
        (ordinary_store, "illegal (store to|read of) reducer"),
        (ordinary_read, "illegal read of reducer"),
        (read_by_copy, "illegal read of reducer"),
        (clear_a_handle, "illegal store to reducer"),
        (update_outside_parallel, r"outside any T\.Parallel"),
        (two_inits, r"double T\.reducer_init"),
        (finalize_outside_the_loop, r"not in the scope of its T\.reducer_init"),
        (finalize_in_an_extra_loop, r"not in the scope of its T\.reducer_init"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_mistakes_are_named_with_their_line(statements, message):
    with pytest.raises(ValueError, match=message) as caught:
        compiled(broken(statements))
    assert "test_behaviour_reducer.py" in str(caught.value)
