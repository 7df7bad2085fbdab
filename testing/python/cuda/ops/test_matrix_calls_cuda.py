"""Matrix instructions given by their PTX argument lists."""

from __future__ import annotations

import pytest
import torch
from emulated_ops import TARGET, compiles, emulate, source_of

import tilelang
import tilelang.language as T
from tilelang.errors import DeviceCompileError, LoweringError, UnsupportedError


def product(warps=1, shape="m16n8k16", types=("fp16", "fp16", "fp32"), layouts=("row", "col")):
    """C = A B^T of 16 x 16 tiles, one a warp, with every instruction written out."""

    @T.prim_func
    def program(
        A: T.Tensor((warps * 16, 16), "float16"),
        B: T.Tensor((16, 16), "float16"),
        C: T.Tensor((warps * 16, 16), "float32"),
    ):
        with T.Kernel(1, threads=32 * warps):
            tx = T.get_thread_binding()
            lane, warp = tx % 32, tx // 32
            a_tile = T.alloc_shared((warps * 16, 16), "float16")
            b_tile = T.alloc_shared((16, 16), "float16")
            a = T.alloc_local((8,), "float16")
            b = T.alloc_local((8,), "float16")
            c = T.alloc_local((8,), "float32")
            T.copy(A, a_tile)
            T.copy(B, b_tile)
            T.mma_fill("float32", 8, c.data, 0)
            T.ptx_ldmatrix(
                "float16", False, 4, ".b16", a.data, 0,
                T.address_of(a_tile[warp * 16, 0]),
                T.get_ldmatrix_offset("A", lane, 0, 16, "float16", False),
            )  # fmt: skip
            T.ptx_ldmatrix(
                "float16", False, 4, ".b16", b.data, 0, b_tile.data,
                T.get_ldmatrix_offset("B", lane, 0, 16, "float16", True),
            )  # fmt: skip
            for half in T.serial(2):
                T.ptx_mma(
                    "float32", shape, *layouts, *types,
                    a.data, 0, b.data, half * 4, T.access_ptr(c, "rw"), half * 4, False,
                )  # fmt: skip
            T.mma_store("float32", 16, 16, T.address_of(C[warp * 16, 0]), c.data, 0, 16)

    return program


@pytest.mark.parametrize("warps", [1, 2])
def test_product_of_instructions(warps):
    program = product(warps)
    compiles(program)
    a, b = torch.randn(warps * 16, 16).half(), torch.randn(16, 16).half()
    torch.testing.assert_close(emulate(program, a, b), a.float() @ b.float().T)
    text = source_of(program)
    assert "tl::mma_m16n8k16_f32_f16_f16_f32(" in text and "tl::ldmatrix_x4<false>(" in text


@pytest.mark.parametrize(
    ("options", "arch", "message"),
    [
        ({"shape": "m16n8k4"}, "sm_90a", "no mma.sync m16n8k4 of f16 and f16 .* m16n8k8, m16n8k16"),
        ({"types": ("fp16", "bf16", "fp32")}, "sm_90a", "there is no shape of these types"),
        ({"layouts": ("col", "col")}, "sm_90a", "write 'row', 'col'"),
        ({}, "sm_75", "needs sm_80, the target is sm_75"),
    ],
)
def test_instruction_the_device_lacks_is_refused(options, arch, message):
    with pytest.raises(UnsupportedError, match=message):
        source_of(product(**options), arch)


def test_unknown_element_type_is_refused():
    with pytest.raises(LoweringError, match=r"T\.ptx_mma: unknown element type 'fp17'"):
        source_of(product(types=("fp17", "fp16", "fp32")))


def one_call(call):
    @T.prim_func
    def program(A: T.Tensor((32,), "float16")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            a = T.alloc_local((8,), "float16")
            a[0] = A[tx]
            call(a)
            A[tx] = a[0]

    return program


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda a: T.ptx_mma("float32", "m16n8k16"), LoweringError, "takes 13 to 15 arguments"),
        (lambda a: T.mma_fill("float16", 8, 3, 0), LoweringError, "expected a pointer into a"),
        (
            lambda a: T.ptx_ldmatrix("float16", False, 3, ".b16", a, 0, a, 0),
            LoweringError,
            "1, 2 or 4 matrices",
        ),
        (
            lambda a: T.ptx_ldmatrix("float16", False, 1, ".b8", a, 0, a, 0),
            UnsupportedError,
            "elements are .b16",
        ),
        (
            lambda a: T.mma_store("float16", 8, 8, a, a, 0, 8),
            UnsupportedError,
            "16 x 8 or 16 x 16 elements",
        ),
        (lambda a: T.ptx_mma_sm70(a), UnsupportedError, "instructions of Volta"),
        (lambda a: T.ptx_mma_block_scale(a), UnsupportedError, "which devices have from sm_120"),
    ],
)
def test_malformed_calls_are_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        source_of(one_call(call))


SPARSE = [
    ("m16n8k32", "fp16", "fp32", "float16", "float32"),
    ("m16n8k32", "bf16", "fp32", "bfloat16", "float32"),
    ("m16n8k16", "tf32", "fp32", "float32", "float32"),
    ("m16n8k64", "int8", "int32", "int8", "int32"),
    ("m16n8k64", "uint8", "int32", "uint8", "int32"),
]


def sparse_product(shape, kind, sums, dtype, accum, selector=0):
    """Registers go straight from and to global memory."""
    count = 128 // torch.empty(0, dtype=getattr(torch, dtype)).element_size() // 8

    @T.prim_func
    def program(
        A: T.Tensor((32, count), dtype),
        B: T.Tensor((32, count), dtype),
        E: T.Tensor((32,), "uint32"),
        C: T.Tensor((32, 4), accum),
    ):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            a = T.alloc_local((count,), dtype)
            b = T.alloc_local((count,), dtype)
            e = T.alloc_local((1,), "uint32")
            c = T.alloc_local((4,), accum)
            for i in T.serial(count):
                a[i] = A[tx, i]
                b[i] = B[tx, i]
            e[0] = E[tx]
            T.mma_fill(accum, 4, c.data, 0)
            T.ptx_mma_sp(
                accum, shape, "row", "col", kind, kind, sums,
                a.data, 0, b.data, 0, c.data, 0, e.data, 0, selector, False,
            )  # fmt: skip
            for i in T.serial(4):
                C[tx, i] = c[i]

    return program


@pytest.mark.parametrize(("shape", "kind", "sums", "dtype", "accum"), SPARSE)
def test_sparse_instruction_compiles(shape, kind, sums, dtype, accum):
    program = sparse_product(shape, kind, sums, dtype, accum)
    compiles(program, "sm_80")
    assert f"tl::mma_sp_{shape}_" in source_of(program)


def test_emulator_refuses_sparse_instructions_by_name():
    program = sparse_product(*SPARSE[0])
    with pytest.raises(DeviceCompileError, match=r"T\.ptx_mma_sp: the emulator has no sparse"):
        tilelang.compile(program, out_idx=-1, target=TARGET, execution_backend="emulator")


@pytest.mark.parametrize(
    ("given", "arch", "kind", "message"),
    [
        ({"shape": "m16n8k8"}, "sm_90a", UnsupportedError, "there is no mma.sp m16n8k8_f32_f16"),
        ({}, "sm_75", UnsupportedError, "mma.sp needs sm_80, the target is sm_75"),
        ({"selector": 4}, "sm_90a", LoweringError, "a constant from 0 to 3, found 4"),
    ],
)
def test_sparse_instruction_the_device_lacks_is_refused(given, arch, kind, message):
    names = ("shape", "kind", "sums", "dtype", "accum")
    with pytest.raises(kind, match=message):
        source_of(sparse_product(**{**dict(zip(names, SPARSE[0], strict=True)), **given}), arch)
