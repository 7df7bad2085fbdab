"""Products with 2:4 sparse operands: metadata, scopes, transposed operands, small tiles."""

from pathlib import Path

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang.layout import make_swizzled_layout

ROOT = Path(__file__).parents[3]


@pytest.fixture
def utils(monkeypatch):
    """The helper module next to the examples, as scripts at the repository root import it."""
    monkeypatch.syspath_prepend(str(ROOT))
    from examples.gemm_sp import sparse_utils

    return sparse_utils


def sparse_gemm(
    size,
    block,
    factor,
    types=("float16", "int16", "float32", "float32"),
    transposed=(False, False, False),
    scopes=(False, False),
    stages=2,
    swizzled=False,
):
    (M, N, K), (block_M, block_N, block_K) = size, block
    dtype, meta, out_dtype, accum = types
    trans_A, trans_E, trans_B = transposed
    A_in_fragment, B_in_fragment = scopes

    def matrix(rows, columns, flip):
        return (columns, rows) if flip else (rows, columns)

    A_shape, A_tile = matrix(M, K // 2, trans_A), matrix(block_M, block_K // 2, trans_A)
    E_shape, E_tile = matrix(M, K // factor, trans_E), matrix(block_M, block_K // factor, trans_E)
    B_shape, B_tile = matrix(K, N, trans_B), matrix(block_K, block_N, trans_B)

    @T.prim_func
    def main(
        A: T.Tensor(A_shape, dtype),
        E: T.Tensor(E_shape, meta),
        B: T.Tensor(B_shape, dtype),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared(A_tile, dtype)
            E_shared = T.alloc_shared(E_tile, meta)
            B_shared = T.alloc_shared(B_tile, dtype)
            A_frag, B_frag = T.alloc_fragment(A_tile, dtype), T.alloc_fragment(B_tile, dtype)
            C_frag = T.alloc_fragment((block_M, block_N), accum)
            if swizzled:
                T.annotate_layout(
                    {
                        A_shared: make_swizzled_layout(A_shared),
                        B_shared: make_swizzled_layout(B_shared),
                    }
                )
            T.clear(C_frag)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
                T.copy(E[matrix(by * block_M, k * block_K // factor, trans_E)], E_shared)
                T.copy(A[matrix(by * block_M, k * block_K // 2, trans_A)], A_shared)
                T.copy(B[matrix(k * block_K, bx * block_N, trans_B)], B_shared)
                if A_in_fragment:
                    T.copy(A_shared, A_frag)
                if B_in_fragment:
                    T.copy(B_shared, B_frag)
                T.gemm_sp(
                    A_frag if A_in_fragment else A_shared,
                    E_shared,
                    B_frag if B_in_fragment else B_shared,
                    C_frag,
                    trans_A,
                    trans_E,
                    trans_B,
                )
            T.copy(C_frag, C[by * block_M, bx * block_N])

    return main


def check(utils, size=(64, 48, 128), block=(32, 16, 64), **options):
    M, N, K = size
    dtype, meta, out_dtype, _ = options.get("types", ("float16", "int16", "float32", "float32"))
    torch_dtype, torch_out = T.dtype(dtype).as_torch(), T.dtype(out_dtype).as_torch()
    factor = utils.get_e_factor(dtype, meta)
    if torch_dtype.is_floating_point:
        a, b = utils.randn_semi_sparse(M, K, torch_dtype), torch.randn(K, N).to(torch_dtype)
    else:
        a = utils.randint_semi_sparse(M, K, -8, 8, torch_dtype)
        b = torch.randint(-8, 8, (K, N)).to(torch_dtype)
    kept, metadata = utils.compress(a, meta_dtype=T.dtype(meta).as_torch())
    inputs = [
        operand.T.contiguous() if flip else operand
        for operand, flip in zip(
            (kept, metadata, b), options.get("transposed", (False,) * 3), strict=True
        )
    ]
    kernel = tilelang.compile(
        sparse_gemm(size, block, factor, **options),
        out_idx=[3],
        pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True},
    )
    found, expected = kernel(*inputs), (a.double() @ b.double()).to(torch_out)
    tilelang.testing.torch_assert_close(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.devices
def test_compressed_operand_and_metadata(utils):
    kept, metadata = utils.compress(utils.randn_semi_sparse(32, 64))
    assert kept.shape == (32, 32) and metadata.shape == (32, 64 // 16)
    check(utils)


@pytest.mark.parametrize(
    ("dtype", "meta", "factor"),
    [
        ("float16", "int16", 16),
        ("bfloat16", "int32", 32),
        ("int8", "int8", 8),
        ("float8_e5m2", "int32", 32),
        ("float32", "int16", 8),
    ],
)
def test_metadata_factor(utils, dtype, meta, factor):
    assert utils.get_e_factor(T.dtype(dtype), T.dtype(meta)) == factor


@pytest.mark.devices
@pytest.mark.parametrize("swizzled", [False, True])
@pytest.mark.parametrize("scopes", [(False, False), (True, False), (False, True), (True, True)])
def test_operands_in_shared_memory_and_fragments_also_with_layouts(utils, scopes, swizzled):
    check(utils, scopes=scopes, swizzled=swizzled)


@pytest.mark.devices
@pytest.mark.parametrize(
    ("dtype", "meta", "out_dtype", "accum"),
    [
        ("float16", "int8", "float32", "float32"),
        ("float16", "int16", "float16", "float32"),
        ("float16", "int32", "float32", "float32"),
        ("bfloat16", "int8", "float32", "float32"),
        ("bfloat16", "int16", "float32", "float32"),
        ("bfloat16", "int32", "float32", "float32"),
        ("int8", "int8", "int32", "int32"),
        ("int8", "int16", "int32", "int32"),
        ("int8", "int32", "int32", "int32"),
        ("float8_e5m2", "int32", "float32", "float32"),
    ],
)
def test_inputs_metadata_and_accumulators(utils, dtype, meta, out_dtype, accum):
    check(utils, types=(dtype, meta, out_dtype, accum))


@pytest.mark.devices
@pytest.mark.parametrize("trans_A", [False, True])
@pytest.mark.parametrize("trans_B", [False, True])
def test_transposed_operands(utils, trans_A, trans_B):
    check(utils, transposed=(trans_A, trans_A, trans_B))


@pytest.mark.devices
def test_int8_with_both_operands_transposed(utils):
    check(utils, types=("int8", "int32", "int32", "int32"), transposed=(True, True, True))


@pytest.mark.devices
@pytest.mark.parametrize(
    ("size", "block", "stages"),
    [
        ((32, 8, 64), (32, 8, 64), 2),
        ((32, 24, 64), (32, 8, 64), 2),
        ((32, 16, 64), (16, 16, 64), 3),
    ],
)
def test_narrow_tiles_and_one_block_along_k(utils, size, block, stages):
    check(utils, size=size, block=block, stages=stages)


def test_dense_operands_and_odd_sizes_are_not_compressed(utils):
    with pytest.raises(ValueError, match="more than 2 nonzeros"):
        utils.compress(torch.ones(4, 32, dtype=torch.float16))
    with pytest.raises(ValueError, match="multiple of 16"):
        utils.compress(torch.zeros(4, 24, dtype=torch.float16))


def test_tiles_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="gemm_sp"):
        sparse_gemm((64, 48, 128), (32, 16, 64), factor=32)
