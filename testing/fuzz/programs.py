"""Random tile programs as data: drawn by hypothesis, rendered as the source a user would write.

A program is a grid of blocks over an (M, N) tensor. Every block loads a tile, runs a few steps on
it and stores it. Values are small integers, also in floating tiles, so that sums and products are
exact and every execution must agree bit for bit; the few steps that round are marked and compared
within a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

__all__ = ["INTEGERS", "Program", "programs", "render"]

INTEGERS = ("int8", "uint8", "int16", "int32", "uint32", "int64")
FLOATS = ("float32", "float16", "bfloat16", "float64")


@dataclass(frozen=True)
class Program:
    """A program: sizes, dtype, launch hints and steps (lines of kernel source)."""

    M: int
    N: int
    block_M: int
    block_N: int
    threads: int
    dtype: str
    scope: str
    stages: int
    steps: tuple[str, ...]
    rounds: bool = False
    extra: tuple[str, ...] = field(default=())  # declarations the steps need


@st.composite
def _integer_expr(draw: st.DrawFn, depth: int = 2) -> str:
    """An expression over x (the element), i and j (its place) of the tile's integer dtype."""
    if depth == 0:
        return draw(
            st.sampled_from(("x", "x", "y", "T.cast(i, D)", "T.cast(j, D)", "T.cast(3, D)"))
        )
    inner = _integer_expr(depth=depth - 1)
    a, b = draw(inner), draw(inner)
    form = draw(
        st.sampled_from(
            (
                "({a} + {b})",
                "({a} - {b})",
                "({a} * {b})",
                "({a} // {b})",
                "({a} % {b})",
                "T.min({a}, {b})",
                "T.max({a}, {b})",
                "({a} & {b})",
                "({a} | {b})",
                "({a} ^ {b})",
                "({a} << T.cast(2, D))",
                "({a} >> T.cast(1, D))",
                "T.if_then_else({a} < {b}, {a}, {b})",
                "T.if_then_else({a} == {b}, {b}, x)",
                "T.cast(T.cast({a}, 'float32'), D)",
                "T.cast(T.cast({a}, 'int8'), D)",
            )
        )
    )
    return form.format(a=a, b=b)


@st.composite
def _float_expr(draw: st.DrawFn, depth: int = 2) -> str:
    """Exact on small integers: no division, no functions."""
    if depth == 0:
        leaves = ("x", "x", "y", "T.cast(i % 4, D)", "T.cast(j % 3, D)", "T.cast(2, D)")
        return draw(st.sampled_from(leaves))
    inner = _float_expr(depth=depth - 1)
    a, b = draw(inner), draw(inner)
    form = draw(
        st.sampled_from(
            (
                "({a} + {b})",
                "({a} - {b})",
                "T.min({a}, {b})",
                "T.max({a}, {b})",
                "T.abs({a})",
                "T.floor({a})",
                "T.if_then_else({a} < {b}, {a}, {b})",
                "T.if_then_else({a} == {b}, {b}, x)",
                "T.cast(T.cast({a}, 'int32'), D)",
                "(-{a})",
            )
        )
    )
    return form.format(a=a, b=b)


def _elementwise(expr: str) -> str:
    lines = (
        "for i, j in T.Parallel(BM, BN):",
        "    x = X[i, j]",
        "    y = Y[i, j]",
        f"    Z[i, j] = {expr}",
        "T.copy(Z, X)",
    )
    return "\n".join(lines)


def _masked(expr: str, cond: str) -> str:
    lines = (
        "for i, j in T.Parallel(BM, BN):",
        f"    if {cond}:",
        "        x = X[i, j]",
        "        y = Y[i, j]",
        f"        X[i, j] = {expr}",
    )
    return "\n".join(lines)


def _reduction(kind: str, dim: int, clear: bool) -> str:
    row = "R" if dim == 1 else "Q"
    index = "i" if dim == 1 else "j"
    lines = (
        f"T.fill({row}, 1)",
        f"T.reduce_{kind}(X, {row}, dim={dim}, clear={clear})",
        "for i, j in T.Parallel(BM, BN):",
        f"    X[i, j] = T.max(X[i, j], {row}[{index}])"
        if kind in ("max", "absmax")
        else f"    X[i, j] = T.min(X[i, j], {row}[{index}])",
    )
    return "\n".join(lines)


def _serial_loop(trips: int, expr: str) -> str:
    body = "\n".join(f"    {line}" for line in _elementwise(expr).splitlines())
    return f"for k in T.serial({trips}):\n{body}"


def _pipelined_sum(tiles: int) -> str:
    lines = (
        f"for k in T.Pipelined({tiles}, num_stages=STAGES):",
        "    T.copy(A[(by + k) * BM, bx * BN], S)",
        "    for i, j in T.Parallel(BM, BN):",
        "        X[i, j] = T.min(X[i, j] + S[i, j], T.cast(50, D))",
    )
    return "\n".join(lines)


_CONDITIONS = ("i < j", "(i + j) % 2 == 0", "by * BM + i < M - 1", "j > 0 and i > 0", "bx == 0")
_SCANS = ("T.cummax(X, dim={dim}, reverse={reverse})",)
_ATOMICS = (
    "for i, j in T.Parallel(BM, BN):\n    T.atomic_max(C[by * BM + i, bx * BN + j], X[i, j])",
    "T.atomic_max(C[by * BM, bx * BN], X)",
)


@st.composite
def _step(draw: st.DrawFn, integer: bool, square: bool) -> str:
    expr = _integer_expr() if integer else _float_expr()
    choices = ["elementwise", "masked", "reduce", "scan", "loop", "pipeline", "shift", "copy"]
    if square:
        choices.append("transpose")
    kind = draw(st.sampled_from(choices))
    if kind == "elementwise":
        return _elementwise(draw(expr))
    if kind == "masked":
        return _masked(draw(expr), draw(st.sampled_from(_CONDITIONS)))
    if kind == "reduce":
        kinds = ("max", "min", "absmax") + (("bitor", "bitand", "bitxor") if integer else ())
        return _reduction(
            draw(st.sampled_from(kinds)), draw(st.integers(0, 1)), draw(st.booleans())
        )
    if kind == "scan":
        scan = draw(st.sampled_from(_SCANS))
        return scan.format(dim=draw(st.integers(0, 1)), reverse=draw(st.booleans()))
    if kind == "loop":
        return _serial_loop(draw(st.integers(0, 3)), draw(expr))
    if kind == "pipeline":
        return _pipelined_sum(draw(st.integers(0, 4)))
    if kind == "shift":
        rows, cols = draw(st.integers(-3, 3)), draw(st.integers(-3, 3))
        return (
            "for i, j in T.Parallel(BM, BN):\n"
            f"    X[i, j] = T.max(X[i, j], A[by * BM + i + {rows}, bx * BN + j + {cols}])"
        )
    if kind == "transpose":
        return "T.transpose(X, S)\nT.copy(S, X)"
    return "T.copy(X, S)\nT.copy(S, Y)"


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A random program."""
    dtype = draw(st.sampled_from(INTEGERS + FLOATS))
    integer = dtype in INTEGERS
    block_M = draw(st.integers(1, 20))
    block_N = draw(st.one_of(st.integers(1, 40), st.just(block_M)))
    step = _step(integer, block_M == block_N)
    steps = draw(st.lists(step, min_size=1, max_size=4))
    if draw(st.booleans()) and draw(st.booleans()):
        steps.append(draw(st.sampled_from(_ATOMICS)))
    return Program(
        M=draw(st.integers(1, 45)),
        N=draw(st.integers(1, 70)),
        block_M=block_M,
        block_N=block_N,
        threads=draw(st.sampled_from((32, 48, 128))),
        dtype=dtype,
        scope=draw(st.sampled_from(("alloc_fragment", "alloc_shared"))),
        stages=draw(st.integers(0, 4)),
        steps=tuple(steps),
    )


def render(program: Program) -> str:
    """The source of a module that defines ``main``, the program as a ``T.prim_func``."""
    p = program
    body = "\n".join(step for step in p.steps)
    indented = "\n".join(f"        {line}" for line in body.splitlines())
    return f"""\
import tilelang.language as T

M, N, BM, BN, D, STAGES = {p.M}, {p.N}, {p.block_M}, {p.block_N}, {p.dtype!r}, {p.stages}


@T.prim_func
def main(A: T.Tensor((M, N), D), B: T.Tensor((M, N), D), C: T.Tensor((M, N), D)):
    with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads={p.threads}) as (bx, by):
        X = T.{p.scope}((BM, BN), D)
        Y = T.alloc_fragment((BM, BN), D)
        Z = T.alloc_fragment((BM, BN), D)
        S = T.alloc_shared((BM, BN), D)
        R = T.alloc_fragment((BM,), D)
        Q = T.alloc_fragment((BN,), D)
        T.copy(A[by * BM, bx * BN], X)
        T.copy(B[by * BM, bx * BN], Y)
{indented}
        T.copy(X, C[by * BM, bx * BN])
"""
