"""``T.gemm`` on the emulator: dtypes, transposes, scopes of operands, sizes, policies."""

from __future__ import annotations

import logging

import pytest
import torch
from emulated_ops import compiles, emulate, source_of

import tilelang.language as T

SUB_BYTE = ("int4", "uint4")
DTYPES = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float32",
    "float64": "float64",
    "int8": "int32",
    "uint8": "int32",
    "float8_e4m3fn": "float32",
    "float8_e5m2": "float32",
    "int4": "int32",
    "uint4": "int32",
}


def turned(rows, columns, flip):
    return (columns, rows) if flip else (rows, columns)


def product(
    dtypes, accum, size=(32, 32, 64), flips=(False, False), scopes="ssf", clear=False, threads=128,
    policy=T.GemmWarpPolicy.Square, steps=1,
):  # fmt: skip
    M, N, K = size
    block = K // steps
    flip_a, flip_b = flips
    alloc = [T.alloc_shared if s == "s" else T.alloc_fragment for s in scopes]

    @T.prim_func
    def main(
        A: T.Tensor(turned(M, K, flip_a), dtypes[0]),
        B: T.Tensor(turned(K, N, flip_b), dtypes[1]),
        C: T.Tensor((M, N), accum),
        D: T.Tensor((M, N), accum),
    ):
        with T.Kernel(1, threads=threads):
            a = alloc[0](turned(M, block, flip_a), dtypes[0])
            b = alloc[1](turned(block, N, flip_b), dtypes[1])
            c = alloc[2]((M, N), accum)
            T.copy(C, c)
            for k in T.serial(steps):
                T.copy(A[turned(0, k * block, flip_a)], a)
                T.copy(B[turned(k * block, 0, flip_b)], b)
                T.gemm(a, b, c, flip_a, flip_b, clear_accum=clear, policy=policy)
            T.copy(c, D)

    return main


def values(dtype, *shape):
    low, high = {"int4": (-8, 8), "uint4": (0, 16), "uint8": (0, 9)}.get(dtype, (-4, 5))
    return torch.randint(low, high, shape)


def stored(x, dtype, flip=False):
    """As a tensor of the kernel; two elements a byte for the narrowest types."""
    x = (x.T if flip else x).contiguous()
    if dtype in SUB_BYTE:
        return (x[:, ::2] & 15 | (x[:, 1::2] & 15) << 4).to(torch.uint8).view(torch.int8)
    return x.to(getattr(torch, dtype))


def check(
    dtypes, accum, size=(32, 32, 64), flips=(False, False), clear=False, arch=None, **options
):
    dtypes = (dtypes, dtypes) if isinstance(dtypes, str) else dtypes
    M, N, K = size
    a, b, c = values(dtypes[0], M, K), values(dtypes[1], K, N), values("int32", M, N)
    main = product(dtypes, accum, size, flips, clear=clear, **options)
    operands = (stored(x, d, f) for x, d, f in zip((a, b), dtypes, flips, strict=True))
    found = emulate(main, *operands, stored(c, accum), arch=arch)
    expected = a.double() @ b.double() + (0 if clear else c.double())
    assert torch.equal(found.double(), expected)
    return main


@pytest.mark.parametrize("flips", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_and_transposes(dtype, flips):
    main = check(dtype, DTYPES[dtype], flips=flips)
    assert "mma_" in source_of(main)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_device_compiler_takes_it(dtype):
    compiles(product((dtype, dtype), DTYPES[dtype]))


@pytest.mark.parametrize("scopes", ["sss", "sff", "fsf", "fff", "ffs"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_scopes_of_operands(dtype, scopes):
    check(dtype, DTYPES[dtype], flips=(False, dtype == "int8"), scopes=scopes)


@pytest.mark.parametrize(
    ("dtypes", "accum"),
    [
        ("float16", "float16"),
        ("bfloat16", "bfloat16"),
        ("float8_e4m3fn", "float16"),
        (("int8", "uint8"), "int32"),
        (("uint4", "int4"), "int32"),
        (("float8_e5m2", "float8_e4m3fn"), "float32"),
    ],
)
def test_accumulators_and_mixed_operands(dtypes, accum):
    # Small enough for a bfloat16 to hold the sums.
    main = check(dtypes, accum, (32, 32, 64) if accum != "bfloat16" else (32, 32, 16))
    assert "mma_" in source_of(main)


@pytest.mark.parametrize("policy", T.GemmWarpPolicy)
@pytest.mark.parametrize("threads", [32, 96, 256])
def test_policies(policy, threads):
    check("float16", "float32", (64, 64, 32), policy=policy, threads=threads, steps=2)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])
@pytest.mark.parametrize("dtype", ["float16", "int8", "int4"])
def test_older_devices(dtype, arch):
    main = check(dtype, DTYPES[dtype], arch=arch, clear=True)
    compiles(main, arch)


@pytest.mark.parametrize(
    ("dtype", "size", "threads", "why"),
    [
        ("float16", (17, 19, 23), 128, "is no multiple of the instruction's"),
        ("int8", (64, 24, 40), 128, "is no multiple of the instruction's"),
        ("float16", (32, 32, 32), 48, "no whole number of warps"),
        ("int16", (32, 32, 32), 64, "has no matrix instruction"),
    ],
)
def test_what_no_instruction_fits_is_computed_and_says_why(dtype, size, threads, why, caplog):
    accum = {"float16": "float32"}.get(dtype, "int32")
    with caplog.at_level(logging.WARNING, "tilelang.cuda"):
        main = check(dtype, accum, size, threads=threads)
    assert why in caplog.text and "T.gemm(a, b, c" in caplog.text
    assert "mma_" not in source_of(main)


@pytest.mark.parametrize("scopes", ["ssf", "fff"])
def test_tf32_operands_are_rounded_to_nearest(scopes):
    a = torch.full((16, 8), 1 + 2.0**-11 + 2.0**-12)  # between 1 and the next tf32, nearer to it
    b, zero = torch.eye(8), torch.zeros(16, 8)
    main = product(("float32", "float32"), "float32", (16, 8, 8), scopes=scopes, threads=32)
    assert (emulate(main, a, b, zero) == 1 + 2.0**-10).all()
