"""Helpers of the front-end tests: run a program in the interpreter, look into it, expect errors."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_walk

from tilelang.errors import TileLangError
from tilelang.interpreter import interpret

#: Stands at the end of the line that an error must point to.
MARK = "# BAD"


@contextmanager
def refused(kind: type[TileLangError], *words: str) -> Iterator[None]:
    """Expect an error of ``kind`` that contains ``words`` and points to a line marked ``# BAD``."""
    with pytest.raises(kind) as caught:
        yield
    error = caught.value
    for word in words:
        assert word in error.message, f"{word!r} not in {error.message!r}"
    assert error.span is not None, "the error has no location"
    line = linecache.getline(error.span.source_name.name, error.span.line)
    assert MARK in line, f"points to {line!r}"


def run_ints(
    program: T.PrimFunc, *scalars: Any, size: int = 16, data: list[int] | None = None
) -> list[int]:
    """Run ``program(A, B, *scalars)`` on int32 tensors; A counts from 0, the result is B."""
    a = (
        torch.arange(size, dtype=torch.int32)
        if data is None
        else torch.tensor(data, dtype=torch.int32)
    )
    b = torch.zeros(size, dtype=torch.int32)
    interpret(program, a, b, *scalars)
    return b.tolist()


def nodes(program: T.PrimFunc, kind: Any) -> list[Any]:
    """All nodes of ``kind`` in the body, outermost first."""
    found: list[Any] = []
    structural_walk(program.body, (kind, found.append), order="pre")
    return found


def loops(program: T.PrimFunc) -> list[T.For]:
    """The loops that are not launch indices."""
    return [f for f in nodes(program, T.For) if f.kind != T.ForKind.THREAD_BINDING]


def binds(program: T.PrimFunc) -> list[str]:
    """Names of the temporaries, in order."""
    return [b.var.name for b in nodes(program, T.Bind)]


def allocations(program: T.PrimFunc) -> list[tuple[str, str, str]]:
    """Name, scope and dtype of the allocated buffers."""
    buffers = [a.buffer for a in nodes(program, T.AllocBuffer)]
    return [(b.name, b.scope(), str(b.dtype)) for b in buffers]


def line_of(node: ir.Expr | T.Stmt) -> str:
    """The source line that the span of ``node`` points to."""
    return linecache.getline(node.span.source_name.name, node.span.line).strip()
