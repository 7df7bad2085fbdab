"""Run one program source through several executions and compare the results."""

from __future__ import annotations

import importlib.util
import itertools
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import tilelang

__all__ = ["Mismatch", "check_source", "load_source", "make_inputs", "run"]

_COUNTER = itertools.count()


class Mismatch(AssertionError):
    """Two executions of one program disagree."""


def load_source(source: str, folder: Path | None = None) -> ModuleType:
    """Import ``source`` from a file of its own, so that errors show its lines."""
    folder = folder or Path(tempfile.mkdtemp(prefix="tilelang-fuzz-"))
    path = folder / f"program_{next(_COUNTER)}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_inputs(module: ModuleType, seed: int = 0) -> list[torch.Tensor]:
    """A and B of small integers, C of a constant below them all."""
    generator = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, module.D)
    low = 0 if module.D.startswith("uint") else -8
    shape = (module.M, module.N)
    a, b = (torch.randint(low, 9, shape, generator=generator).to(dtype) for _ in range(2))
    return [a, b, torch.full(shape, low, dtype=torch.int64).to(dtype)]


def run(module: ModuleType, how: str, seed: int = 0) -> torch.Tensor:
    """The output of ``module.main`` under ``how``: ``interpreter``, ``llvm`` or ``c``."""
    inputs = make_inputs(module, seed)
    if how == "interpreter":
        tilelang.interpret(module.main, *inputs)
    else:
        kernel: Any = tilelang.compile(module.main, target=how)
        kernel(*inputs)
    return inputs[-1]


def check_source(source: str, ways: Iterable[str] = ("interpreter", "llvm")) -> None:
    """Run ``source`` in every way and compare with the first, bit for bit.

    Raises
    ------
    Mismatch
        Showing the first element that differs and the whole source.
    """
    module = load_source(source)
    first, *others = ways
    expected = run(module, first)
    for how in others:
        found = run(module, how)
        different = (found != expected) & ~((found != found) & (expected != expected))
        if bool(different.any()):
            where = tuple(int(i) for i in different.nonzero()[0])
            raise Mismatch(
                f"{first} and {how} differ at {where}: {expected[where].item()} and "
                f"{found[where].item()}\n{source}"
            )
