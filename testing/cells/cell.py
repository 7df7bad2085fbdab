"""A cell: one use of an op, small enough to share a compilation with others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

import tilelang.language as T
from tilelang.interpreter.accuracy import sum_bound, ulp_bound, ulp_distance

__all__ = [
    "EXACT",
    "FLOATS",
    "FP8",
    "INTEGERS",
    "PACKED",
    "Cell",
    "Comparison",
    "Exact",
    "Operand",
    "Sum",
    "Ulp",
    "random_values",
]

FLOATS = ("float16", "bfloat16", "float32", "float64")
FP8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
PACKED = ("int4", "uint4", "float4_e2m1fn")
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def is_float(dtype: str) -> bool:
    """Whether a dtype name is one of floats."""
    return dtype.startswith(("float", "bfloat", "tfloat"))


def random_values(dtype: str, count: int, kind: str, seed: int) -> torch.Tensor:
    """``count`` elements of ``dtype``.

    ``kind`` is ``bits`` (any pattern), ``small`` (integers from -8, or 0, to 8), ``unit`` (floats
    of about 1), ``mixed`` (half ``bits``, half ``unit``), ``zero``, or ``metadata2`` and
    ``metadata4`` (which elements of such a group are kept, four bits each).
    """
    generator = torch.Generator().manual_seed(seed)
    storage = T.dtype(dtype).as_torch()
    if kind == "zero":
        return torch.zeros_like(random_values(dtype, count, "bits", seed).view(torch.uint8)).view(
            storage
        )
    if kind.startswith("metadata"):
        codes = torch.tensor([0x4, 0xE] if kind == "metadata2" else [0x4, 0x8, 0xC, 0x9, 0xD, 0xE])
        picked = codes[
            torch.randint(0, len(codes), (count * storage.itemsize, 2), generator=generator)
        ]
        return (picked[:, 0] | picked[:, 1] << 4).to(torch.uint8).view(storage)
    if dtype in PACKED or kind == "bits" or (kind == "mixed" and not is_float(dtype)):
        size = (count + 1) // 2 if dtype in PACKED else count * storage.itemsize
        raw = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=generator)
        return raw % 2 == 1 if dtype == "bool" else raw.view(storage)
    if kind == "small" or not is_float(dtype):
        low = 0 if dtype.startswith("uint") or dtype == "bool" else -8
        return torch.randint(low, 9, (count,), generator=generator).to(storage)
    unit = (torch.randn(count, generator=generator, dtype=torch.float64) * 2).to(storage)
    if kind == "unit":
        return unit
    unit[::2] = random_values(dtype, count, "bits", seed)[::2]
    return unit


@dataclass(frozen=True)
class Operand:
    """A tensor of a cell: shape, dtype, and what it holds before the run."""

    shape: tuple[int, ...]
    dtype: str
    kind: str = "bits"

    @property
    def annotation(self) -> Any:
        """How a program declares it."""
        return T.Tensor(self.shape, self.dtype)

    def make(self, seed: int) -> torch.Tensor:
        """A tensor for one run."""
        count = int(np.prod(self.shape, dtype=np.int64))
        values = random_values(self.dtype, count, self.kind, seed)
        if self.dtype in PACKED:
            return values.view(*self.shape[:-1], (self.shape[-1] + 1) // 2)
        return values.view(self.shape)


# --- comparisons --------------------------------------------------------------------------------


class Comparison:
    """How a result must agree with the interpreter's."""

    def difference(self, actual: torch.Tensor, expected: torch.Tensor, dtype: str) -> str | None:
        """Text of the first difference that is not allowed, or None."""
        wrong = self._wrong(actual, expected, dtype)
        if not wrong.any():
            return None
        at = tuple(wrong.nonzero()[0].tolist())
        return (
            f"{int(wrong.sum())} of {wrong.numel()} elements, first {list(at)}: "
            f"{actual[at].item()!r} instead of {expected[at].item()!r}"
        )

    def _wrong(self, actual: torch.Tensor, expected: torch.Tensor, dtype: str) -> torch.Tensor:
        raise NotImplementedError


@dataclass(frozen=True)
class Exact(Comparison):
    """Bit for bit; all NaN are one value."""

    def _wrong(self, actual: torch.Tensor, expected: torch.Tensor, dtype: str) -> torch.Tensor:
        if actual.dtype == torch.bool:
            return actual != expected
        bits = _BITS[actual.itemsize]
        wrong = actual.contiguous().view(bits) != expected.contiguous().view(bits)
        if is_float(dtype) and dtype not in PACKED:
            wrong &= ~(_wide(actual).isnan() & _wide(expected).isnan())
        return wrong


@dataclass(frozen=True)
class Ulp(Comparison):
    """Within the accuracy table's bound of a function; the interpreter rounds correctly."""

    function: str

    def _wrong(self, actual: torch.Tensor, expected: torch.Tensor, dtype: str) -> torch.Tensor:
        allowed = np.floor(ulp_bound(self.function, dtype) + 0.5)
        arrays = [_as_numpy(tensor, dtype) for tensor in (actual, expected)]
        with np.errstate(invalid="ignore"):
            distance = ulp_distance(*arrays, dtype)
        return torch.from_numpy(np.atleast_1d(distance > allowed))


@dataclass(frozen=True)
class Sum(Comparison):
    """Within the rounding of a sum of ``terms`` numbers whose sizes add up to ``magnitude``.

    ``inexact`` is the relative error that every term has already.
    """

    terms: int
    magnitude: float
    accumulator: str = "float32"
    inexact: float = 0.0

    def _wrong(self, actual: torch.Tensor, expected: torch.Tensor, dtype: str) -> torch.Tensor:
        # Both sides round.
        allowed = 2 * float(sum_bound(self.terms, self.magnitude, self.accumulator, dtype))
        allowed += self.inexact * self.magnitude
        a, b = _wide(actual), _wide(expected)
        return ~(((a - b).abs() <= allowed) | (a == b) | (a.isnan() & b.isnan()))


EXACT = Exact()


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.float64) if tensor.itemsize > 1 else tensor.float().double()


def _as_numpy(tensor: torch.Tensor, dtype: str) -> np.ndarray:
    carrier = T.dtype(dtype).as_numpy()
    return tensor.contiguous().view(torch.uint8).numpy().view(carrier).reshape(tensor.shape)


# --- cells --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Cell:
    """One use of an op.

    Parameters
    ----------
    op : str
        Name of the record it belongs to.
    name : str
        What distinguishes it from the other cells of the op.
    operands : tuple of Operand
    body : macro
        Called with the block index and the tensors, inside of a launch.
    compare : Comparison
    threads, grid : int
    slow : bool
        Only in the full matrix.
    on_gpus : Comparison, optional
        In place of ``compare``, where GPUs are less exact than the interpreter.
    """

    op: str
    name: str
    operands: tuple[Operand, ...]
    body: Callable[..., Any]
    compare: Comparison = EXACT
    threads: int = 128
    grid: int = 1
    slow: bool = False
    on_gpus: Comparison | None = None

    @property
    def label(self) -> str:
        """For messages and test names."""
        return f"{self.op}-{self.name}"

    @cached_property
    def seed(self) -> int:
        """Every cell has data of its own."""
        return sum(ord(c) * 31**i for i, c in enumerate(self.label)) % 2**31

    def tensors(self) -> list[torch.Tensor]:
        """Fresh tensors; the same for every execution."""
        return [operand.make(self.seed + i) for i, operand in enumerate(self.operands)]

    def differences(
        self,
        actual: Iterable[torch.Tensor],
        expected: Iterable[torch.Tensor],
        gpu: bool = False,
    ) -> str:
        """What is wrong with a result, of GPU code if ``gpu``; empty if nothing is."""
        lines = []
        compare = (self.on_gpus or self.compare) if gpu else self.compare
        for i, (a, e, o) in enumerate(zip(actual, expected, self.operands, strict=True)):
            difference = compare.difference(a, e, o.dtype)
            if difference is not None:
                lines.append(f"{self.label}: operand {i} ({o.dtype}): {difference}")
        return "\n".join(lines)

    def only_slow(self) -> Cell:
        """The same cell, in the full matrix only."""
        return dataclasses.replace(self, slow=True)
