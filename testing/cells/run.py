"""Running cells: many in one program, one launch each."""

from __future__ import annotations

import importlib.util
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tilelang
from testing.cells.cell import Cell
from tilelang.env import env
from tilelang.interpreter import interpret

__all__ = ["EMULATED", "batches", "check_cells", "program_of"]

EMULATED = {"kind": "cuda", "arch": "sm_90a"}
"""The target whose code the emulator runs."""

_COUNTER = itertools.count()
_PER_PROGRAM = 16
# What a C compiler does to a cell is not the point: the cheap level shows what we print.
_C_FLAGS = ["-O1"]
_CHECKS = "race,bounds,uninit"


def program_of(cells: Sequence[Cell]) -> Any:
    """One program with a launch a cell; its parameters are the tensors of all cells in order."""
    parameters, launches = [], []
    for number, cell in enumerate(cells):
        names = [f"t{number}_{i}" for i in range(len(cell.operands))]
        parameters += [
            f"{name}: cells[{number}].operands[{i}].annotation" for i, name in enumerate(names)
        ]
        launches += [
            f"        with T.Kernel(cells[{number}].grid, threads=cells[{number}].threads) as bx:",
            f"            cells[{number}].body({', '.join(['bx', *names])})",
        ]
    lines = ["import tilelang.language as T", "", "def make(cells):", "    @T.prim_func"]
    lines += [f"    def batch({', '.join(parameters)}):", *launches, "    return batch", ""]
    with tempfile.TemporaryDirectory(prefix="tilelang-cells-") as folder:
        path = Path(folder) / f"cells_{next(_COUNTER)}.py"
        path.write_text("\n".join(lines))  # tracing reads it
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.make(list(cells))


def batches(cells: Sequence[Cell]) -> Iterator[Sequence[Cell]]:
    """The cells in groups that share a program."""
    for start in range(0, len(cells), _PER_PROGRAM):
        yield cells[start : start + _PER_PROGRAM]


def _execute(program: Any, cells: Sequence[Cell], target: str) -> list[list[torch.Tensor]]:
    tensors = [cell.tensors() for cell in cells]
    flat = [tensor for group in tensors for tensor in group]
    if target == "interpreter":
        interpret(program, *flat, externs={"fabsf": np.abs})
        return tensors
    settings = {"TILELANG_DISABLE_CACHE": "1"}
    options: dict[str, Any] = {"target": target}
    if target == "c":
        options["compile_flags"] = _C_FLAGS
    elif target == "emulator":
        options = {"target": EMULATED, "execution_backend": "emulator"}
        settings["TILELANG_EMULATOR_CHECKS"] = _CHECKS
    with env.scope(**settings):
        tilelang.compile(program, **options)(*flat)
    return tensors


def check_cells(cells: Sequence[Cell], target: str) -> None:
    """Run cells in the interpreter and on ``target`` and compare.

    Raises
    ------
    AssertionError
        Naming every cell and element that differs.
    """
    problems: list[str] = []
    for group in batches(cells):
        program = program_of(group)
        expected = _execute(program, group, "interpreter")
        actual = _execute(program, group, target)
        for cell, a, e in zip(group, actual, expected, strict=True):
            difference = cell.differences(a, e, gpu=target == "emulator")
            if difference:
                problems.append(difference)
    assert not problems, "\n".join(problems)
