"""Matrix products: small tiles of whole numbers, whose sums are exact in any order."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from testing.fuzz.program import Program, hints, indented

__all__ = ["product_programs"]

_DTYPES = (
    ("float32", "float32"),
    ("float16", "float32"),
    ("bfloat16", "float32"),
    ("float64", "float64"),
    ("int8", "int32"),
    ("uint8", "int32"),
    ("float16", "float16"),
    ("float8_e4m3fn", "float32"),
)
_EPILOGUES = (
    "",
    "Z[i, j] = T.max(Z[i, j], T.cast(0, E))",
    "Z[i, j] = Z[i, j] + T.cast(i - j, E)",
    "Z[i, j] = T.if_then_else(i < j, Z[i, j], -Z[i, j])",
)


@st.composite
def product_programs(draw: st.DrawFn) -> Program:
    """``C = op(A) @ op(B)`` by tiles, with an epilogue."""
    dtype, acc = draw(st.sampled_from(_DTYPES))
    trans_a, trans_b, clear = (draw(st.booleans()) for _ in range(3))
    staged = (
        draw(st.integers(0, 3)) == 0
    )  # the operands are slices of buffers with three dimensions
    a_shape, a_tile, a_at = "(M, K)", "BM, BK", "by * BM, k * BK"
    b_shape, b_tile, b_at = "(K, N)", "BK, BN", "k * BK, bx * BN"
    if trans_a:
        a_shape, a_tile, a_at = "(K, M)", "BK, BM", "k * BK, by * BM"
    if trans_b:
        b_shape, b_tile, b_at = "(N, K)", "BN, BK", "bx * BN, k * BK"
    if staged:
        a_ref = "X[k % 2, {}]".format(", ".join(f"0:{e}" for e in a_tile.split(", ")))
        b_ref = "Y[k % 2, {}]".format(", ".join(f"0:{e}" for e in b_tile.split(", ")))
        a_tile, b_tile = f"2, {a_tile}", f"2, {b_tile}"
    else:
        a_ref, b_ref = "X", "Y"
    flags = f"transpose_A={trans_a}, transpose_B={trans_b}, policy=POLICY, clear_accum={clear}"
    epilogue = draw(st.sampled_from(_EPILOGUES))
    start = draw(st.sampled_from(("T.clear(Z)", "T.fill(Z, 1)")))
    loop = f"T.copy(A[{a_at}], {a_ref})\nT.copy(B[{b_at}], {b_ref})\n"
    loop += f"T.gemm({a_ref}, {b_ref}, Z, {flags})"
    lines = [
        "T.use_swizzle(max(SWIZZLE, 1), enable=SWIZZLE > 0)",
        f"X = T.alloc_shared(({a_tile}), D)",
        f"Y = T.alloc_shared(({b_tile}), D)",
        "Z = T.alloc_fragment((BM, BN), E)",
        start,
        "for k in T.Pipelined(T.ceildiv(K, BK), num_stages=STAGES):",
        indented(loop),
    ]
    if epilogue:
        lines += ["for i, j in T.Parallel(BM, BN, coalesced_width=WIDTH):", indented(epilogue)]
    lines.append("T.copy(Z, C[by * BM, bx * BN])")
    body = "with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=THREADS) as (bx, by):\n"
    sizes = [
        {
            "M": draw(st.integers(1, 40)),
            "N": draw(st.integers(1, 50)),
            "K": draw(st.integers(1, 45)),
        }
        for _ in range(2)
    ]
    constants: dict[str, Any] = {"D": dtype, "E": acc}
    constants.update({name: draw(st.integers(1, 36)) for name in ("BM", "BN", "BK")})
    dynamic = draw(st.booleans())
    if not dynamic:
        constants.update(sizes[0])
    return Program(
        constants=constants,
        parameters=(
            f"A: T.Tensor({a_shape}, D)",
            f"B: T.Tensor({b_shape}, D)",
            "C: T.Tensor((M, N), E)",
        ),
        body=body + indented("\n".join(lines)),
        symbols=("M", "N", "K") if dynamic else (),
        calls=tuple(sizes) if dynamic else ({},),
        hints=draw(hints((32, 48, 64, 96, 128, 192, 256))),
        offset=draw(st.sampled_from((0, 0, 1, 3))),
    )
