"""Atomics on target ``c``: element forms, vectors, tiles, previous values, refusals."""

import pytest
import torch

import tilelang
import tilelang.language as T

TORCH = {"float32": torch.float32, "float16": torch.float16, "int32": torch.int32}


def compiled(program, **options):
    return tilelang.compile(program, target="c", **options)


def values(n, dtype):
    return torch.randint(-20, 20, (n,)).to(TORCH[dtype])


def update_one_cell(update, dtype, n=64):
    """Every iteration of a parallel loop updates ``B[0]`` with its element."""

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((1,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                update(B[0], A[i])

    return main


@pytest.mark.parametrize("dtype", TORCH)
def test_add_to_one_cell_from_a_parallel_loop(dtype):
    a, b = values(64, dtype), torch.zeros(1, dtype=TORCH[dtype])
    kernel = compiled(update_one_cell(T.atomic_add, dtype))
    kernel(a, b)
    assert b.item() == a.sum().item()
    assert "elem" not in kernel.get_kernel_source()


@pytest.mark.parametrize(
    "order", ["relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"]
)
def test_a_memory_order_changes_nothing(order):
    a, b = values(64, "float32"), torch.zeros(1)
    compiled(update_one_cell(lambda d, v: T.atomic_add(d, v, memory_order=order), "float32"))(a, b)
    assert b.item() == a.sum().item()


def test_an_unknown_memory_order():
    with pytest.raises(ValueError, match="unknown memory order 'soon'"):
        update_one_cell(lambda d, v: T.atomic_add(d, v, memory_order="soon"), "float32")


PREVIOUS = {
    "add": (T.atomic_add, 0, lambda old, v: old + v),
    "max": (T.atomic_max, -(2**31), max),
    "min": (T.atomic_min, 2**31 - 1, min),
}


@pytest.mark.parametrize("kind", PREVIOUS)
def test_the_previous_value_is_a_running_prefix(kind):
    update, start, combine = PREVIOUS[kind]

    @T.prim_func
    def main(A: T.Tensor((16,), "int32"), B: T.Tensor((1,), "int32"), P: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(16):
                P[i] = update(B[0], A[i], return_prev=True)

    a, b = values(16, "int32"), torch.tensor([start], dtype=torch.int32)
    prefixes, running = [], start
    for value in a.tolist():
        prefixes.append(running)
        running = combine(running, value)
    assert compiled(main, out_idx=-1)(a, b).tolist() == prefixes
    assert b.item() == running


def test_an_int_is_converted_to_the_dtype_of_a_float_cell():
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(8):
                T.atomic_add(B[0], A[i])
            T.atomic_add(B[0], 3)

    a, b = values(8, "int32"), torch.full((1,), 0.5)
    compiled(main)(a, b)
    assert b.item() == a.sum().item() + 3.5


@pytest.mark.parametrize("dtype", TORCH)
@pytest.mark.parametrize(("update", "fold"), [(T.atomic_max, torch.max), (T.atomic_min, torch.min)])
def test_max_and_min(dtype, update, fold):
    a, b = values(64, dtype), torch.zeros(1, dtype=TORCH[dtype])
    start = b.clone()
    compiled(update_one_cell(update, dtype))(a, b)
    assert torch.equal(b, fold(torch.cat([a, start])).reshape(1))


def test_or():
    a, b = 1 << torch.randint(0, 31, (64,), dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    compiled(update_one_cell(T.atomic_or, "int32"))(a, b)
    expected = 0
    for value in a.tolist():
        expected |= value
    assert b.item() == expected


def test_load_acquires_and_store_releases():
    @T.prim_func
    def main(A: T.Tensor((16,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(16):
                T.atomic_store(
                    B[i], T.atomic_load(A[i], memory_order="acquire") + 1, memory_order="release"
                )

    a = values(16, "int32")
    assert torch.equal(compiled(main, out_idx=-1)(a), a + 1)


def test_addx2_adds_a_whole_buffer_of_two():
    @T.prim_func
    def main(A: T.Tensor((2,), "float16"), B: T.Tensor((2,), "float16")):
        with T.Kernel(1, threads=1):
            pair = T.alloc_local((2,), "float16")
            for i in T.serial(2):
                pair[i] = A[i]
            T.atomic_addx2(B, pair)

    a, b = values(2, "float16"), torch.ones(2, dtype=torch.float16)
    compiled(main)(a, b)
    assert torch.equal(b, a + 1)


def test_addx4_adds_slices():
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, threads=1):
            for i, j in T.grid(4, 2):
                T.atomic_addx4(B[i, j * 4 : j * 4 + 4], A[i, j * 4 : j * 4 + 4])

    a, b = torch.randn(4, 8), torch.randn(4, 8)
    expected = a + b
    compiled(main)(a, b)
    assert torch.equal(b, expected)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("options", [{}, {"annotations": {"memory_order": "relaxed"}}])
def test_a_tile_is_added_to_a_global_tile(dtype, options):
    @T.prim_func
    def main(A: T.Tensor((4, 8), dtype), B: T.Tensor((4, 8), dtype)):
        with T.Kernel(3, threads=32):
            tile = T.alloc_local((4, 8), dtype)
            T.copy(A, tile)
            T.atomic_add(B, tile, **options)

    a, b = values(32, dtype).view(4, 8), torch.ones(4, 8, dtype=TORCH[dtype])
    compiled(main)(a, b)
    assert torch.equal(b, a * 3 + 1)


@pytest.mark.parametrize(
    ("update", "fold"), [(T.atomic_max, torch.maximum), (T.atomic_min, torch.minimum)]
)
def test_max_and_min_into_a_local_tile(update, fold):
    @T.prim_func
    def main(
        A: T.Tensor((4, 8), "float32"),
        B: T.Tensor((4, 8), "float32"),
        C: T.Tensor((4, 8), "float32"),
    ):
        with T.Kernel(1, threads=1):
            a_tile, b_tile = T.alloc_local((4, 8), "float32"), T.alloc_local((4, 8), "float32")
            T.copy(A, a_tile)
            T.copy(B, b_tile)
            update(a_tile, b_tile)
            T.copy(a_tile, C)

    a, b = torch.randn(4, 8), torch.randn(4, 8)
    assert torch.equal(compiled(main, out_idx=-1)(a, b), fold(a, b))


def test_a_scalar_is_added_to_a_whole_tile():
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32")):
        with T.Kernel(2, threads=1):
            T.atomic_add(A, 1.5)

    a = torch.randn(4, 8)
    expected = a + 1.5 + 1.5
    compiled(main)(a)
    assert torch.equal(a, expected)


def test_a_destination_slice_with_an_offset():
    @T.prim_func
    def main(A: T.Tensor((2, 4), "float32"), B: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=1):
            tile = T.alloc_local((2, 4), "float32")
            T.copy(A, tile)
            T.atomic_add(B[3:5, 2:6], tile)

    a, b = torch.randn(2, 4), torch.randn(8, 8)
    expected = b.clone()
    expected[3:5, 2:6] += a
    compiled(main)(a, b)
    assert torch.equal(b, expected)


def test_a_tma_reduction_is_refused():
    def build():
        @T.prim_func
        def main(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32")):
            with T.Kernel(1, threads=32):
                tile = T.alloc_shared((4, 8), "float32")
                T.copy(A, tile)
                T.atomic_add(B, tile, use_tma=True)

        return compiled(main)

    with pytest.raises(Exception, match="use_tma"):
        build()


@pytest.mark.parametrize(("update", "lanes"), [(T.atomic_addx2, 2), (T.atomic_addx4, 4)])
def test_a_vector_has_no_previous_value(update, lanes):
    def build():
        @T.prim_func
        def main(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=1):
                update(B[0:lanes], A[0:lanes], return_prev=True)

        return compiled(main)

    with pytest.raises(ValueError, match="return_prev"):
        build()


def test_two_previous_values_in_one_statement_are_taken_in_order():
    @T.prim_func
    def main(B: T.Tensor((1,), "int32"), P: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(8):
                P[i] = T.atomic_add(B[0], 1, return_prev=True) * 100 + T.atomic_add(
                    B[0], 10, return_prev=True
                )

    b = torch.zeros(1, dtype=torch.int32)
    found = compiled(main, out_idx=-1)(b)
    assert found.tolist() == [11 * i * 100 + 11 * i + 1 for i in range(8)]
    assert b.item() == 88


def test_several_outputs_are_returned_together():
    @T.prim_func
    def main(
        A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32"), C: T.Tensor((16,), "float32")
    ):
        with T.Kernel(1, threads=1):
            T.fill(B, 1.0)
            T.fill(C, 2.0)
            for i in T.serial(16):
                T.atomic_add(B[i], A[i])
                T.atomic_max(C[i], A[i])

    a = torch.randn(16)
    b, c = compiled(main, out_idx=[1, 2])(a)
    assert torch.equal(b, a + 1) and torch.equal(c, a.clamp(min=2.0))
