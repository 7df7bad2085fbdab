"""``T.im2col``, ``T.transpose``, views and reshapes on the emulator."""

from __future__ import annotations

import pytest
import torch
from emulated_ops import compiles, emulate

import tilelang.language as T
from tilelang.errors import LayoutError
from tilelang.layout import make_swizzled_layout


def convolution(image, filters, kernel, stride, dilation, pad, threads=128):
    batch, height, width, channels = image
    reach = dilation * (kernel - 1) + 1
    out = [(extent + 2 * pad - reach) // stride + 1 for extent in (height, width)]
    rows, depth, block = batch * out[0] * out[1], kernel * kernel * channels, 32

    @T.prim_func
    def main(
        A: T.Tensor(image, "float16"),
        W: T.Tensor((depth, filters), "float16"),
        C: T.Tensor((rows, filters), "float32"),
    ):
        with T.Kernel(T.ceildiv(filters, 32), T.ceildiv(rows, block), threads=threads) as (bx, by):
            columns = T.alloc_shared((block, 32), "float16")
            weights = T.alloc_shared((32, 32), "float16")
            total = T.alloc_fragment((block, 32), "float32")
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(depth, 32), num_stages=2):
                T.im2col(A, columns, by, k, kernel, stride, dilation, pad)
                T.copy(W[k * 32, bx * 32], weights)
                T.gemm(columns, weights, total)
            T.copy(total, C[by * block, bx * 32])

    return main


@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "pad"),
    [(3, 1, 1, 1), (3, 2, 1, 0), (1, 1, 1, 0), (3, 1, 2, 2)],
)
def test_im2col_and_gemm_are_a_convolution(kernel, stride, dilation, pad):
    a = torch.randint(-4, 5, (2, 8, 9, 16)).half()
    w = torch.randint(-4, 5, (kernel, kernel, 16, 24)).half()
    program = convolution(a.shape, 24, kernel, stride, dilation, pad)
    expected = torch.nn.functional.conv2d(
        a.permute(0, 3, 1, 2).float(), w.permute(3, 2, 0, 1).float(),
        stride=stride, padding=pad, dilation=dilation,
    )  # fmt: skip
    found = emulate(program, a, w.reshape(-1, 24))
    assert torch.equal(found, expected.permute(0, 2, 3, 1).reshape(-1, 24))
    compiles(program)


@pytest.mark.parametrize("where", ["shared", "fragment"])
@pytest.mark.parametrize(("shape", "threads"), [((48, 80), 96), ((3, 17), 32), ((2, 16, 32), 128)])
def test_transpose(where, shape, threads):
    alloc = T.alloc_shared if where == "shared" else T.alloc_fragment
    turned = (*shape[:-2], shape[-1], shape[-2])

    @T.prim_func
    def program(A: T.Tensor(shape, "float16"), B: T.Tensor(turned, "float16")):
        with T.Kernel(1, threads=threads):
            a, b = alloc(shape, "float16"), alloc(turned, "float16")
            T.copy(A, a)
            T.transpose(a, b)
            T.copy(b, B)

    a = torch.randn(shape).half()
    assert torch.equal(emulate(program, a), a.transpose(-1, -2).contiguous())


@pytest.mark.parametrize("where", ["shared", "swizzled", "fragment"])
def test_views_of_another_shape_and_dtype(where):
    alloc = T.alloc_fragment if where == "fragment" else T.alloc_shared
    swizzled = where == "swizzled"

    @T.prim_func
    def program(
        A: T.Tensor((32, 64), "float32"),
        B: T.Tensor((2048,), "float32"),
        C: T.Tensor((32, 128), "uint16"),
        D: T.Tensor((16, 64), "uint64"),
    ):
        with T.Kernel(1, threads=96):
            tile = alloc((32, 64), "float32")
            if swizzled:
                T.annotate_layout({tile: make_swizzled_layout(tile)})
            line = T.reshape(tile, (2048,))
            halves = T.view(tile, (32, 128), "uint16")
            pairs = T.view(tile, (16, 64), "uint64")
            T.copy(A, tile)
            for i in T.Parallel(2048):
                B[i] = line[2047 - i]
            T.copy(halves, C)
            T.copy(pairs, D)

    a = torch.randn(32, 64)
    b, c, d = emulate(program, a, out_idx=[1, 2, 3])
    assert torch.equal(b, a.reshape(-1).flip(0))
    assert torch.equal(c.view(torch.int16), a.view(torch.int16))
    assert torch.equal(d.view(torch.int64), a.reshape(16, 128).view(torch.int64))
    compiles(program)


def test_writing_through_a_view_of_a_matrix_operand():
    @T.prim_func
    def program(
        A: T.Tensor((64, 32), "float16"), W: T.Tensor((64, 32), "float16"),
        C: T.Tensor((32, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a, w = T.alloc_shared((32, 64), "float16"), T.alloc_shared((64, 32), "float16")
            total = T.alloc_fragment((32, 32), "float32")
            T.annotate_layout({a: make_swizzled_layout(a)})
            T.copy(A, T.reshape(a, (64, 32)))
            T.copy(W, w)
            T.clear(total)
            T.gemm(a, w, total)
            T.copy(total, C)

    a, w = (torch.randint(-4, 5, (64, 32)).half() for _ in range(2))
    assert torch.equal(emulate(program, a, w), a.reshape(32, 64).float() @ w.float())


def test_a_view_that_would_join_what_lies_apart_is_refused():
    def build():
        @T.prim_func
        def program(A: T.Tensor((32, 32), "int16"), B: T.Tensor((32, 16), "int32")):
            with T.Kernel(1, threads=32):
                tile = T.alloc_shared((32, 32), "int16")
                T.annotate_layout({tile: T.Layout((32, 32), lambda i, j: [j, i])})
                wide = T.view(tile, (32, 16), "int32")
                T.copy(A, tile)
                T.copy(wide, B)

        return compiles(program)

    with pytest.raises(LayoutError, match="another name of tile"):
        build()
