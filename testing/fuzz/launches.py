"""Several launches that pass data on through workspaces, some under a condition of the host."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from testing.fuzz.expressions import expression
from testing.fuzz.program import FLOATS, INTEGERS, Program, hints, indented

__all__ = ["launch_programs"]


@st.composite
def _launch(draw: st.DrawFn, source: str, target: str, size: str, integer: bool) -> str:
    """One launch that computes ``target`` of ``source``, element by element or by tiles."""
    width = draw(st.integers(1, 40))
    shift = draw(st.integers(-3, 3))
    expr = draw(expression(["i", "b", "s"], integer, depth=1))
    body = (
        f"for i in T.Parallel({width}, coalesced_width=WIDTH):\n"
        f"    x = {source}[b * {width} + i]\n"
        f"    y = {source}[b * {width} + i + {shift}]\n"
        f"    {target}[b * {width} + i] = {expr}"
    )
    if draw(st.booleans()):
        body = (
            f"X = T.alloc_shared(({width},), D)\nT.copy({source}[b * {width}], X)\n"
            + body.replace(f"x = {source}[b * {width} + i]", "x = X[i]")
        )
    return f"with T.Kernel(T.ceildiv({size}, {width}), threads=THREADS) as b:\n{indented(body)}"


@st.composite
def launch_programs(draw: st.DrawFn) -> Program:
    """A chain of launches A -> W -> V -> C, where V may be changed in place more than once."""
    dtype = draw(st.sampled_from(INTEGERS + FLOATS))
    integer = dtype in INTEGERS
    dynamic = draw(st.booleans())
    lines = ["W = T.alloc_global((N,), D)", "V = T.alloc_global((N,), D)"]
    lines.append(draw(_launch("A", "W", "N", integer)))
    lines.append(draw(_launch("W", "V", "N", integer)))
    extra = draw(
        st.sampled_from(("", "if s > 0:", "if s > N:", "for r in T.serial(2):", "if N % 2 == 0:"))
    )
    if extra:
        again = f"{draw(_launch('V', 'W', 'N', integer))}\n{draw(_launch('W', 'V', 'N', integer))}"
        lines += [extra, indented(again)]
    lines.append(draw(_launch("V", "C", "N", integer)))
    constants: dict[str, Any] = {"D": dtype}
    least = 0 if dynamic and draw(st.integers(0, 5)) == 0 else 1
    calls = [
        {"s": draw(st.integers(-3, 9)), **({"N": draw(st.integers(least, 90))} if dynamic else {})}
        for _ in range(draw(st.integers(1, 3)))
    ]
    if not dynamic:
        constants["N"] = draw(st.integers(1, 90))
    return Program(
        constants=constants,
        parameters=("A: T.Tensor((N,), D)", "s: T.int32", "C: T.Tensor((N,), D)"),
        body="\n".join(lines),
        symbols=("N",) if dynamic else (),
        calls=tuple(calls),
        hints=draw(hints()),
        values=draw(st.sampled_from(("small", "extreme" if integer else "special"))),
    )
