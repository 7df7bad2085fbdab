"""Tile programs: every block loads a tile, runs a few steps on it and stores it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from testing.fuzz.program import FLOATS, INTEGERS, Program, hints, indented
from testing.fuzz.steps import Frame, declarations, step

__all__ = ["tile_programs"]

_EXTENTS = {1: (70,), 2: (20, 40), 3: (4, 9, 20)}
_SIZES = {1: (200,), 2: (45, 70), 3: (7, 15, 33)}
_OTHER = ("int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")


@st.composite
def _extents(draw: st.DrawFn, rank: int) -> tuple[int, ...]:
    found = [draw(st.integers(1, most)) for most in _EXTENTS[rank]]
    if rank > 1 and draw(st.integers(0, 3)) == 0:
        found[-1] = found[-2]  # so that the tile can be transposed
    return tuple(found)


@st.composite
def _strides(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a tensor: with gaps, of a transposed one, or all of one element."""
    compact = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    kind = draw(st.sampled_from(("gaps", "transposed", "expanded", "every second")))
    if kind == "transposed":
        return tuple(math.prod(shape[:d]) for d in range(len(shape)))
    if kind == "expanded":
        dim = draw(st.integers(0, len(shape) - 1))
        return tuple(0 if d == dim else s for d, s in enumerate(compact))
    factor = 2 if kind == "every second" else 1
    gap = draw(st.integers(0, 5))
    return tuple(s * factor + (gap if d < len(shape) - 1 else 0) for d, s in enumerate(compact))


@st.composite
def _stored(draw: st.DrawFn, frame: Frame) -> str:
    """How the tile goes to the output, and maybe atomically to another one."""
    plain = f"T.copy(X, C[{frame.origin}])"
    looped = frame.loop(f"C[{frame.place()}] = X[{frame.at}]")
    source = draw(st.sampled_from((plain, looped)))
    kind = draw(st.sampled_from((None, None, "add", "max", "min", "or")))
    if kind is None or (not frame.integer and kind in ("add", "or")):
        return source
    # Kinds do not mix, so the order of the blocks does not matter.
    target = draw(st.sampled_from((f"C2[{frame.place()}]", f"C2[{frame.at}]", "tile", "previous")))
    value = f"X[{frame.at}]"
    if target == "tile" and kind != "or":
        return f"T.atomic_{kind}(C2[{frame.origin}], X)\n{source}"
    if target == "previous" and kind != "or":
        update = f"before = T.atomic_{kind}(C2[{frame.place()}], {value}, return_prev=True)"
        return frame.loop(f"{update}\n{value} = before") + f"\n{source}"
    target = f"C2[{frame.place()}]" if target in ("tile", "previous") else target
    return f"{frame.loop(f'T.atomic_{kind}({target}, {value})')}\n{source}"


@st.composite
def _calls(
    draw: st.DrawFn, names: list[str], rank: int, scalars: tuple[str, ...]
) -> tuple[Mapping[str, Any], ...]:
    """Sizes and scalars of one to three calls."""
    calls = []
    for _ in range(draw(st.integers(1, 3)) if names or scalars else 1):
        call: dict[str, Any] = {}
        if names:
            least = 0 if draw(st.integers(0, 7)) == 0 else 1
            shape = tuple(draw(st.integers(least, most)) for most in _SIZES[rank])
            call.update({f"N{d}": n for d, n in enumerate(shape)})
            if "SA0" in names:
                strides = draw(_strides(shape))
                call.update({f"SA{d}": stride for d, stride in enumerate(strides)})
        call.update({name: draw(st.integers(-5, 12)) for name in scalars})
        calls.append(call)
    return tuple(calls)


def _launched(rank: int, body: str) -> str:
    """A block for each tile."""
    blocks = [f"b{d}" for d in reversed(range(rank))]
    grid = ", ".join(f"T.ceildiv(N{d}, B{d})" for d in reversed(range(rank)))
    bound = blocks[0] if rank == 1 else f"({', '.join(blocks)})"
    return f"with T.Kernel({grid}, threads=THREADS) as {bound}:\n{indented(body)}"


def _persistent(rank: int, head: str, body: str) -> str:
    """A few blocks that share the tiles, each with one set of buffers for all of its own."""
    blocks = "".join(f"b{d}, " for d in range(rank))
    domain = ", ".join(f"T.ceildiv(N{d}, B{d})" for d in range(rank))
    loop = f"for {blocks}in T.Persistent([{domain}], WAVE, block, GROUP):\n{indented(body)}"
    return f"with T.Kernel(WAVE, threads=THREADS) as block:\n{indented(head)}\n{indented(loop)}"


@st.composite
def tile_programs(draw: st.DrawFn) -> Program:
    """A random tile program over tensors of one, two or three dimensions."""
    rank = draw(st.sampled_from((2, 2, 2, 1, 3)))
    dtype = draw(st.sampled_from(INTEGERS + FLOATS))
    second = draw(st.sampled_from((dtype, dtype, *_OTHER)))
    scalars = ("s",) if draw(st.integers(0, 2)) == 0 else ()
    extents = draw(_extents(rank))
    frame = Frame(extents, dtype, dtype in INTEGERS, scalars)
    steps = draw(st.lists(step(frame), min_size=1, max_size=4))
    stored = draw(_stored(frame))
    dynamic, strided = draw(st.booleans()), draw(st.integers(0, 3)) == 0

    shape = ", ".join(f"N{d}" for d in range(rank))
    symbols = [f"N{d}" for d in range(rank)] if dynamic else []
    symbols += [f"SA{d}" for d in range(rank)] if dynamic and strided else []
    constants: dict[str, Any] = {f"B{d}": extent for d, extent in enumerate(extents)}
    constants["D"] = dtype
    if not dynamic:
        sizes = tuple(draw(st.integers(1, most)) for most in _SIZES[rank])
        constants.update({f"N{d}": size for d, size in enumerate(sizes)})
        if strided:
            strides = draw(_strides(sizes))
            constants.update({f"SA{d}": stride for d, stride in enumerate(strides)})
    layout = ", ".join(f"SA{d}" for d in range(rank))
    first = f"T.Tensor(({shape},), D)"
    if strided:
        first = f"T.StridedTensor(({shape},), ({layout},), D)"
    parameters = [f"A: {first}", f"B: T.Tensor(({shape},), {second!r})"]
    parameters += ["s: T.int32"] if scalars else []
    parameters.append(f"C: T.Tensor(({shape},), D)")
    parameters += [f"C2: T.Tensor(({shape},), D)"] if "C2" in stored else []

    needed = frozenset().union(*(names for names, _ in steps))
    other = draw(st.sampled_from(_OTHER))
    head = ["T.use_swizzle(max(SWIZZLE, 1), enable=SWIZZLE > 0)"] if draw(st.booleans()) else []
    head += ["T.annotate_safe_value({A: 3})"] if draw(st.integers(0, 4)) == 0 else []
    head += [f"X = SCOPE(({frame.shape},), D)", f"Y = T.alloc_fragment(({frame.shape},), D)"]
    head += declarations(frame, needed, other)
    loads = [f"T.copy(A[{frame.origin}], X)", f"T.copy(B[{frame.origin}], Y)"]
    body = "\n".join([*loads, *(source for _, source in steps), stored])
    if draw(st.integers(0, 4)) == 0:
        constants |= {"WAVE": draw(st.integers(1, 5)), "GROUP": draw(st.sampled_from((1, 2, 3, 8)))}
        body = _persistent(rank, "\n".join(head), body)
    else:
        body = _launched(rank, "\n".join([*head, body]))
    values = draw(st.sampled_from(("small", "extreme" if frame.integer else "special")))
    return Program(
        constants=constants,
        parameters=tuple(parameters),
        body=body,
        symbols=tuple(symbols),
        calls=draw(_calls(symbols, rank, scalars)),
        hints=draw(hints()),
        values=values,
        offset=draw(st.sampled_from((0, 0, 1, 3))),
    )
