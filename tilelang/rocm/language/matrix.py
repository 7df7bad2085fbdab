"""AMD matrix cores (MFMA on CDNA, WMMA on RDNA) and transposing reads of local memory.

The matrix functions take the argument lists of the instructions; the backend checks them.
"""

from __future__ import annotations

from typing import Any

from tvm import ir

from tilelang.ir import intrin

__all__ = [
    "ds_read_tr8_b64",
    "ds_read_tr16_b64",
    "mfma",
    "mfma_store",
    "rdna_wmma",
    "rdna_wmma_store",
    "tvm_mfma",
    "tvm_mfma_store",
    "tvm_rdna_wmma",
    "tvm_rdna_wmma_store",
]


def tvm_mfma(*args: Any) -> None:
    """One matrix product of a wave on CDNA."""
    intrin.get("tvm_mfma").emit(*args)


def tvm_mfma_store(*args: Any) -> None:
    """Store an accumulator of :func:`tvm_mfma`."""
    intrin.get("tvm_mfma_store").emit(*args)


def tvm_rdna_wmma(*args: Any) -> None:
    """One matrix product of a wave on RDNA."""
    intrin.get("tvm_rdna_wmma").emit(*args)


def tvm_rdna_wmma_store(*args: Any) -> None:
    """Store an accumulator of :func:`tvm_rdna_wmma`."""
    intrin.get("tvm_rdna_wmma_store").emit(*args)


mfma = tvm_mfma
mfma_store = tvm_mfma_store
rdna_wmma = tvm_rdna_wmma
rdna_wmma_store = tvm_rdna_wmma_store


def ds_read_tr16_b64(src: Any) -> ir.Expr:
    """Read 4 transposed 16-bit elements from local memory (gfx950)."""
    return intrin.get("ds_read_tr16_b64")(src)


def ds_read_tr8_b64(src: Any) -> ir.Expr:
    """Read 8 transposed 8-bit elements from local memory (gfx950)."""
    return intrin.get("ds_read_tr8_b64")(src)
