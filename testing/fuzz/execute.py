"""Run one program through several executions and compare everything they leave behind.

Tensors whose name starts with ``C`` are outputs and start at one constant, all others are inputs.
Every tensor lies inside a larger storage whose borders hold a value that no input has, so that a
read or write outside it shows.
"""

from __future__ import annotations

import importlib.util
import itertools
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from tvm import ir, sym
from tvm_ffi import structural_map

import tilelang
import tilelang.language as T
from tilelang.env import env
from tilelang.ir.expr import const_int, is_buffer

__all__ = ["WAYS", "Case", "Mismatch", "check", "compare", "execute", "load_source"]

Results = dict[str, np.ndarray]

WAYS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "interpreter": {},
        "llvm": {"target": "llvm"},
        "c": {"target": "c"},
        "cuda": {"target": {"kind": "cuda", "arch": "sm_90a"}, "execution_backend": "emulator"},
    }
)
"""Executions by name, with the options of the compiler; CUDA code runs in the emulator."""

_COUNTER = itertools.count()
_CHECKS = "race,bounds,uninit"
_BORDER = 2048  # elements on each side of a tensor
_BORDER_VALUE = 99
_ALIGNED = 16  # elements; of every dtype at least as many bytes
_SPARSE = 2**24  # elements beyond which what lies between those of a tensor is not looked at
_SPECIAL = (float("nan"), float("inf"), float("-inf"))


class Mismatch(AssertionError):
    """Two executions of one program disagree."""


@dataclass(frozen=True)
class Case:
    """A program and how to call it.

    Parameters
    ----------
    main : PrimFunc
    calls : sequence of mapping
        One a call, from the names of the program's sizes and scalars to their values.
    values : {"small", "extreme", "special"}
        What the inputs hold: integers from -8 to 8, the limits of integer types among them, or NaN
        and infinities among small floats.
    offset : int
        Elements by which every tensor is moved from an aligned address.
    """

    main: Any
    calls: Sequence[Mapping[str, Any]] = ({},)
    values: str = "small"
    offset: int = 0


def load_source(source: str) -> Case:
    """The case in a source: ``main``, and ``CALLS``, ``VALUES``, ``OFFSET`` where given."""
    with tempfile.TemporaryDirectory(prefix="tilelang-fuzz-") as folder:
        path = Path(folder) / f"program_{next(_COUNTER)}.py"
        path.write_text(source)  # tracing reads it
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    given = {name.lower(): getattr(module, name, None) for name in ("CALLS", "VALUES", "OFFSET")}
    return Case(module.main, **{name: value for name, value in given.items() if value is not None})


def _size(expr: Any, call: Mapping[str, Any]) -> int:
    """A shape or stride expression with the sizes of ``call``."""

    def on_var(var: ir.Var) -> ir.Expr:
        return T.cast(call[var.name], str(var.ty.dtype))

    value = const_int(sym.Analyzer().simplify(structural_map(expr, (ir.Var, on_var))))
    assert value is not None, f"{expr} is not known from {dict(call)}"
    return value


def _draw(
    name: str, kind: torch.dtype, count: int, values: str, generator: torch.Generator
) -> torch.Tensor:
    """``count`` elements of dtype ``kind`` for the tensor ``name``."""
    if kind == torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).to(kind)
    low = 0 if str(kind).startswith("torch.uint") else -8
    if name.startswith("C"):
        return torch.full((count,), low).to(kind)
    small = torch.randint(low, 9, (count,), generator=generator)
    odd = torch.rand(count, generator=generator) < 0.3
    if values == "extreme" and not kind.is_floating_point:
        numbers = np.dtype(str(kind).removeprefix("torch."))  # torch chooses no uint64
        limits = np.iinfo(numbers)
        chosen = small.numpy().astype(numbers)
        chosen[odd.numpy()] = np.where(small < 4, limits.min, limits.max)[odd.numpy()]
        return torch.from_numpy(chosen)
    if values == "special" and kind.is_floating_point:
        chosen = torch.tensor(_SPECIAL, dtype=torch.float64)[small.abs() % len(_SPECIAL)]
        return torch.where(odd, chosen, small.double()).to(kind)
    return small.to(kind)


class _Arguments:
    """The arguments of one call, made anew for every execution."""

    def __init__(self, case: Case, call: Mapping[str, Any]) -> None:
        self.values: list[Any] = []
        self.written: dict[str, torch.Tensor] = {}
        generator = torch.Generator().manual_seed(0)
        for param in case.main.params:
            if not is_buffer(param):
                self.values.append(call[param.name])
                continue
            shape = [_size(extent, call) for extent in param.shape]
            strides = [_size(stride, call) for stride in param.ty.strides] or [
                int(np.prod(shape[d + 1 :], dtype=np.int64)) for d in range(len(shape))
            ]
            reach = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
            reach = 0 if 0 in shape else reach
            kind = T.dtype(str(param.ty.dtype)).as_torch()
            start, sparse = _BORDER + case.offset, reach > _SPARSE
            storage = torch.empty(start + reach + _BORDER, dtype=kind)
            view = torch.as_strided(storage, shape, strides, start)
            if sparse:  # left to the system, which allocates only the pages that are used
                view.copy_(_draw(param.name, kind, view.numel(), "small", generator).view(shape))
            else:
                storage.copy_(torch.full_like(storage, _BORDER_VALUE, dtype=torch.int64))
                storage[start : start + reach] = _draw(
                    param.name, kind, reach, case.values, generator
                )
            self.values.append(view)
            self.written[param.name] = view if sparse else storage

    def results(self) -> Results:
        """Everything the program could have written, by the name of the tensor."""
        return {name: _comparable(tensor).copy() for name, tensor in self.written.items()}


def _comparable(tensor: torch.Tensor) -> np.ndarray:
    """As numpy: integers of their width (unsigned ones as signed), floats as float32 or wider."""
    if tensor.dtype.is_floating_point:
        return (tensor if tensor.dtype == torch.float64 else tensor.float()).numpy()
    if tensor.dtype == torch.bool:
        return tensor.numpy()
    signed = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.view(signed[tensor.dtype.itemsize]).numpy()


def execute(case: Case, how: str) -> list[Results]:
    """What every call leaves under ``how``, one of :data:`WAYS`."""
    kernel: Any = None
    if how != "interpreter":
        # The cache would answer for passes that were changed, and fill with one-time programs.
        with env.scope(TILELANG_DISABLE_CACHE="1", TILELANG_EMULATOR_CHECKS=_CHECKS):
            kernel = tilelang.compile(case.main, **WAYS[how])
    results = []
    for call in case.calls:
        arguments = _Arguments(case, call)
        if kernel is None:
            tilelang.interpret(case.main, *arguments.values)
        else:
            kernel(*arguments.values)
        results.append(arguments.results())
    return results


def compare(expected: list[Results], found: list[Results]) -> str | None:
    """The first difference, bit for bit but for NaN and the sign of zero; None if there is none."""
    for number, (one, two) in enumerate(zip(expected, found, strict=True)):
        for name, left in one.items():
            left, right = left.reshape(-1), two[name].reshape(-1)
            different = (left != right) & ~((left != left) & (right != right))
            if different.any():
                at = int(np.flatnonzero(different)[0])
                return (
                    f"{int(different.sum())} elements of {name} differ in call {number}, first at "
                    f"{at - _BORDER} of its storage: {left[at]} and {right[at]}"
                )
    return None


def check(source: str, ways: Iterable[str] = ("interpreter", "llvm")) -> None:
    """Run a source in every way and compare with the first.

    Raises
    ------
    Mismatch
        Showing the first element that differs and the source.
    """
    case = load_source(source)
    first, *others = ways
    if "cuda" in others:  # which refuses tensors that its wide accesses cannot reach
        case = replace(case, offset=_ALIGNED * case.offset)
    expected = execute(case, first)
    for how in others:
        difference = compare(expected, execute(case, how))
        if difference is not None:
            raise Mismatch(f"{first} and {how}: {difference}\n{source}")
