"""A random program as data, and the source a user would write for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

__all__ = ["FLOATS", "INTEGERS", "Hints", "Program", "hints", "indented", "render"]

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float32", "float16", "bfloat16", "float64")


_THREADS = (1, 32, 48, 64, 96, 128, 160, 256, 100, (16, 2), (8, 3, 4))


@dataclass(frozen=True)
class Hints:
    """What may change how a program runs, never what it computes.

    The body of a program names them in capitals: ``THREADS``, ``STAGES``, ``POLICY``, ``SWIZZLE``,
    ``WIDTH``, and ``SCOPE``, the allocator of its main tile.
    """

    threads: int | tuple[int, ...] = 128
    stages: int = 0
    policy: str = "Square"
    swizzle: int = 0
    width: int | None = None
    scope: str = "alloc_fragment"


@dataclass(frozen=True)
class Program:
    """A program: named constants, sizes known at the call, parameters, and the body of ``main``.

    ``body`` is source, indented as inside ``main``. ``calls``, ``values`` and ``offset`` are those
    of :class:`testing.fuzz.execute.Case`. ``free_threads``: the number of threads is a hint.
    """

    constants: Mapping[str, Any]
    parameters: tuple[str, ...]
    body: str
    symbols: tuple[str, ...] = ()
    calls: tuple[Mapping[str, Any], ...] = ({},)
    hints: Hints = Hints()
    values: str = "small"
    offset: int = 0
    free_threads: bool = True

    def hinted(self, **changes: Any) -> Program:
        """The same program with other hints."""
        return dataclasses.replace(self, hints=dataclasses.replace(self.hints, **changes))


def indented(text: str, levels: int = 1) -> str:
    """Move a block of source to the right."""
    return "\n".join("    " * levels + line for line in text.splitlines())


def hints(threads: tuple[Any, ...] = _THREADS) -> st.SearchStrategy[Hints]:
    """Random hints."""
    return st.builds(
        Hints,
        threads=st.sampled_from(threads),
        stages=st.integers(0, 4),
        policy=st.sampled_from(("Square", "FullRow", "FullCol")),
        swizzle=st.sampled_from((0, 0, 2, 3)),
        width=st.sampled_from((None, None, 1, 2, 4)),
        scope=st.sampled_from(("alloc_fragment", "alloc_shared")),
    )


def render(program: Program) -> str:
    """The source of a module that defines ``main`` and how to call it."""
    p, h = program, program.hints
    settings = {
        "THREADS": h.threads,
        "STAGES": h.stages,
        "SWIZZLE": h.swizzle,
        "WIDTH": h.width,
    }
    lines = ["import tilelang.language as T", ""]
    lines += [
        f"{name} = {value!r}"
        for name, value in {**p.constants, **settings}.items()
        if name in p.body or any(name in parameter for parameter in p.parameters)
    ]
    if "POLICY" in p.body:
        lines.append(f"POLICY = T.GemmWarpPolicy.{h.policy}")
    if "SCOPE" in p.body:
        lines.append(f"SCOPE = T.{h.scope}")
    if p.symbols:
        names = ", ".join(p.symbols)
        lines.append(f'{names} = T.dynamic("{names}")')
    lines += [
        f"CALLS = {[dict(call) for call in p.calls]!r}",
        f"VALUES, OFFSET = {p.values!r}, {p.offset}",
        "",
        "",
        "@T.prim_func",
        "def main(",
        *(f"    {parameter}," for parameter in p.parameters),
        "):",
        indented(p.body),
    ]
    return "\n".join(lines) + "\n"
