"""What the bodies of the CPU's tile ops may ask for, and the blocks they are built from."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import DataType, ir

from tilelang.cpu.features import Features
from tilelang.transform.loops import (
    accumulator_dtype,
    alloc,
    load,
    moving_extents,
    nest,
    serial,
    store,
    vectorized,
)

__all__ = [
    "Lowering",
    "accumulator_dtype",
    "alloc",
    "load",
    "moving_extents",
    "nest",
    "serial",
    "store",
    "vectorized",
]


@dataclass(frozen=True)
class Lowering:
    """What the body of an op may ask about the machine and the code generator.

    Parameters
    ----------
    features : Features
        Of the target's CPU.
    blocked : bool
        Whether the code generator keeps explicit vectors and register blocks in registers.
    upcoming : tuple of tvm.ir.TensorRegion
        Parts of tensors that are read soon: a long op may bring them nearer meanwhile.
    """

    features: Features
    blocked: bool = True
    upcoming: tuple[ir.TensorRegion, ...] = ()

    @property
    def vector_registers(self) -> int:
        """Number of vector registers."""
        return self.features.vector_registers

    def lanes(self, dtype: str) -> int:
        """Elements of ``dtype`` in one vector register."""
        return max(1, self.features.vector_bytes * 8 // DataType(dtype).bits)
