"""`T.view`: other shapes and dtypes of the same memory, with layouts too."""

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.errors import LayoutError

CUDA = {"kind": "cuda", "arch": "sm_90a"}


def view_copy(shape, dtype, view_shape, view_dtype):
    """Copy ``A`` to ``B`` element by element through views of both."""

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=32):
            source = T.view(A, view_shape, dtype=view_dtype)
            target = T.view(B, view_shape, dtype=view_dtype)
            T.copy(source, target)

    return main


@pytest.mark.devices("llvm", "c")
@pytest.mark.parametrize(
    ("shape", "dtype", "view_shape", "view_dtype"),
    [
        ((64,), "float32", (4, 16), None),
        ((4, 16), "float32", (64,), None),
        ((8, 16), "float32", (8, 32), "float16"),
        ((8, 32), "float16", (8, 16), "float32"),
    ],
)
def test_a_global_tensor_reshaped_and_retyped(shape, dtype, view_shape, view_dtype):
    program = view_copy(shape, dtype, view_shape, view_dtype)
    a = torch.randn(*shape).to(T.dtype(dtype).as_torch())
    assert torch.equal(tilelang.compile(program, out_idx=-1)(a), a)


@pytest.mark.devices
def test_a_reshaped_output_has_the_values_in_order():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((4, 16), "float32")):
        with T.Kernel(1, threads=32):
            T.copy(T.view(A, (4, 16)), B)

    a = torch.randn(64)
    assert torch.equal(tilelang.compile(main, out_idx=-1)(a), a.view(4, 16))


@pytest.mark.parametrize(
    ("shape", "view_shape", "view_dtype"),
    [((64,), (4, 15), None), ((8, 16), (8, 16), "float16"), ((8, 16), (8, 33), "float16")],
)
def test_a_size_mismatch_is_an_assertion_when_the_function_is_built(shape, view_shape, view_dtype):
    with pytest.raises(AssertionError):
        view_copy(shape, "float32", view_shape, view_dtype)


@pytest.mark.devices
def test_a_float4_buffer_viewed_as_bytes_shares_its_memory():
    shapes = []

    @T.prim_func
    def main(A: T.Tensor((8, 32), "float4_e2m1fn"), B: T.Tensor((8, 16), "uint8")):
        with T.Kernel(1, threads=32):
            as_bytes = T.view(A, (8, 16), dtype="uint8")
            shapes.append([int(extent) for extent in as_bytes.shape])
            T.copy(B, as_bytes)
            for j in T.serial(32):
                A[0, j] = A[1, j]

    assert shapes == [[8, 16]]
    storage = T.dtype("float4_e2m1fn").as_torch()
    a = torch.zeros(8, 16, dtype=torch.int8).view(storage)
    b = torch.randint(0, 256, (8, 16), dtype=torch.uint8)
    tilelang.compile(main)(a, b)
    expected = torch.cat([b[1:2], b[1:]])
    assert torch.equal(a.view(torch.uint8), expected)


def test_the_last_extent_follows_the_dtype_where_no_shape_is_given():
    shapes = []

    @T.prim_func
    def main(A: T.Tensor((8, 32), "float4_e2m1fn"), B: T.Tensor((8, 32), "float32")):
        with T.Kernel(1, threads=32):
            shapes.append([int(extent) for extent in T.view(A, dtype="uint8").shape])
            shapes.append([int(extent) for extent in T.view(B, dtype="float16").shape])
            T.clear(B)

    assert shapes == [[8, 16], [8, 64]]


def through_shared(dtype, view_dtype, layout, write_view, N=32, M=16):
    """Write a shared tile in one type and read it in another."""
    scale = T.dtype(dtype).bits / T.dtype(view_dtype).bits
    width = int(N * scale)

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, width), view_dtype)):
        with T.Kernel(1, threads=64):
            tile = T.alloc_shared((M, N), dtype)
            other = T.view(tile, (M, width), dtype=view_dtype)
            if layout == "allocation":
                T.annotate_layout({tile: tilelang.layout.make_swizzled_layout(tile)})
            elif layout == "view":
                T.annotate_layout({other: T.Layout((M, width), lambda i, j: (j, i))})
            if write_view:
                for i, j in T.Parallel(M, width):
                    other[i, j] = T.view(A, (M, width), dtype=view_dtype)[i, j]
                T.copy(tile, T.view(B, (M, N), dtype=dtype))
            else:
                T.copy(A, tile)
                for i, j in T.Parallel(M, width):
                    B[i, j] = other[i, j]

    return main


def check_bits(types, layout, write_view):
    dtype, view_dtype = types
    program = through_shared(dtype, view_dtype, layout, write_view)
    bits = torch.randint(-128, 128, (16, 32 * T.dtype(dtype).bits // 8), dtype=torch.int8)
    a = bits.view(T.dtype(dtype).as_torch())
    b = tilelang.compile(program, out_idx=-1)(a)
    assert b.dtype == T.dtype(view_dtype).as_torch()
    assert torch.equal(b.contiguous().view(torch.int8), bits)


TYPES = [("float32", "float16"), ("float16", "float32"), ("int32", "int8")]


@pytest.mark.devices
@pytest.mark.parametrize("layout", [None, "allocation"])
@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("write_view", [False, True])
def test_a_shared_tile_read_or_written_as_another_dtype_is_bit_exact(types, layout, write_view):
    check_bits(types, layout, write_view)


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("write_view", [False, True])
def test_a_layout_of_the_view_leaves_the_bits_alone(types, write_view):
    check_bits(types, "view", write_view)


@pytest.mark.parametrize("types", [("float32", "float16"), ("int32", "int8")])
def test_where_layouts_are_storage_one_that_splits_elements_is_refused(types):
    with pytest.raises(LayoutError, match="do not lie side by side"):
        tilelang.lower(through_shared(*types, "view", True), target=CUDA)


@pytest.mark.devices
def test_a_shared_float4_tile_viewed_as_bytes():
    @T.prim_func
    def main(A: T.Tensor((8, 32), "float4_e2m1fn"), B: T.Tensor((8, 16), "uint8")):
        with T.Kernel(1, threads=32):
            tile = T.alloc_shared((8, 32), "float4_e2m1fn")
            T.copy(A, tile)
            T.copy(T.view(tile, (8, 16), dtype="uint8"), B)

    a = torch.randint(-128, 128, (8, 16), dtype=torch.int8)
    storage = T.dtype("float4_e2m1fn").as_torch()
    b = tilelang.compile(main, out_idx=-1)(a.view(storage))
    assert torch.equal(b, a.view(torch.uint8))
