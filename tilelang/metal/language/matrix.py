"""Matrix primitives of Metal: 8x8 simdgroup matrices and cooperative tensors (Metal 4).

Each function appends a statement with the arguments of the TVM op of the same name.
"""

from __future__ import annotations

from typing import Any

from tilelang.ir import intrin

__all__ = [
    "cooperative_tensor_fill",
    "cooperative_tensor_load",
    "cooperative_tensor_multiply_accumulate",
    "cooperative_tensor_store",
    "make_filled_simdgroup_matrix",
    "simdgroup_load",
    "simdgroup_multiply_accumulate",
    "simdgroup_store",
]


def make_filled_simdgroup_matrix(*args: Any) -> None:
    """Set a matrix to one value."""
    intrin.get("make_filled_simdgroup_matrix").emit(*args)


def simdgroup_load(*args: Any) -> None:
    """Load a matrix from memory."""
    intrin.get("simdgroup_load").emit(*args)


def simdgroup_store(*args: Any) -> None:
    """Store a matrix to memory."""
    intrin.get("simdgroup_store").emit(*args)


def simdgroup_multiply_accumulate(*args: Any) -> None:
    """``D = A * B + C`` of matrices."""
    intrin.get("simdgroup_multiply_accumulate").emit(*args)


def cooperative_tensor_fill(*args: Any) -> None:
    """Set a cooperative tensor to one value."""
    intrin.get("cooperative_tensor_fill").emit(*args)


def cooperative_tensor_load(*args: Any) -> None:
    """Load a cooperative tensor from memory."""
    intrin.get("cooperative_tensor_load").emit(*args)


def cooperative_tensor_store(*args: Any) -> None:
    """Store a cooperative tensor to memory."""
    intrin.get("cooperative_tensor_store").emit(*args)


def cooperative_tensor_multiply_accumulate(*args: Any) -> None:
    """``D = A * B + C`` of cooperative tensors."""
    intrin.get("cooperative_tensor_multiply_accumulate").emit(*args)
