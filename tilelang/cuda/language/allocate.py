"""Memory that only NVIDIA GPUs have: cluster barriers, tensor memory, matrix descriptors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tvm import ir
from tvm import tirx as T

from tilelang.errors import TraceError, TraceTypeError
from tilelang.ir import builder, intrin
from tilelang.ir.dtype import AnyDType, dtype
from tilelang.ir.expr import is_buffer
from tilelang.ir.span import user_span
from tilelang.language.allocate import alloc_buffer
from tilelang.language.tensor import declare_buffer

__all__ = [
    "alloc_cluster_barrier",
    "alloc_descriptor",
    "alloc_tcgen05_instr_desc",
    "alloc_tcgen05_instruction_desc",
    "alloc_tcgen05_smem_desc",
    "alloc_tmem",
    "alloc_wgmma_desc",
    "deallocate_tmem",
]

_dtype = dtype
_KINDS = ("wgmma", "tcgen05_smem", "tcgen05_instr")


def alloc_cluster_barrier(arrive_count: int | Sequence[int]) -> ir.Var:
    """Barriers that all blocks of a cluster may arrive at (sm_90).

    Parameters
    ----------
    arrive_count : int or sequence of int
        Arrivals that complete a phase, one a barrier.

    Raises
    ------
    TraceError
        If a count is below 1, or outside of ``T.Kernel``.
    """
    counts = [arrive_count] if isinstance(arrive_count, int) else list(arrive_count)
    if not counts or any(not isinstance(count, int) or count < 1 for count in counts):
        raise TraceError(
            f"T.alloc_cluster_barrier: arrive counts must be >= 1, found {arrive_count!r}",
            user_span(),
        )
    active, span = builder.current("T.alloc_cluster_barrier"), user_span()
    name, scope = active.take_name("mbarrier"), "shared.cluster_barrier"
    barriers = declare_buffer([len(counts)], _dtype("uint64"), name, scope, span=span)
    active.emit(T.AllocBuffer(barriers, {"arrive_count": counts}, span))
    return barriers


def alloc_tmem(shape: Sequence[int], dtype: AnyDType) -> ir.Var:
    """A tile in the tensor memory of Blackwell (sm_100); freed at the end of the block.

    Parameters
    ----------
    shape : sequence of int
        At least two extents: lanes and columns last, copies of them before.
    dtype : AnyDType

    Raises
    ------
    TraceError
        If there are fewer than two extents, or outside of ``T.Kernel``.
    """
    if not isinstance(shape, (tuple, list)) or len(shape) < 2:
        raise TraceError(f"T.alloc_tmem needs at least two extents, found {shape!r}", user_span())
    return alloc_buffer(tuple(shape), dtype, "shared.tmem")


def deallocate_tmem(tmem: Any) -> None:
    """Free tensor memory before the end of the block.

    Raises
    ------
    TraceTypeError
        If ``tmem`` does not come from :func:`alloc_tmem`.
    """
    if not is_buffer(tmem) or tmem.scope() != "shared.tmem":
        raise TraceTypeError("T.deallocate_tmem expects a buffer of T.alloc_tmem", user_span())
    intrin.get("deallocate_tmem").emit(tmem)


def alloc_descriptor(
    kind: Literal["wgmma", "tcgen05_smem", "tcgen05_instr"] = "wgmma", dtype: AnyDType = "uint64"
) -> ir.Var:
    """A cell for the descriptor of a matrix operand or instruction.

    Raises
    ------
    TraceError
        For another kind, or outside of ``T.Kernel``.
    """
    if kind not in _KINDS:
        raise TraceError(
            f"T.alloc_descriptor: kind must be one of {', '.join(_KINDS)}, found {kind!r}",
            user_span(),
        )
    return alloc_buffer((1,), _dtype(dtype), f"local.descriptor.{kind}")


def alloc_wgmma_desc(dtype: AnyDType = "uint64") -> ir.Var:
    """A cell for the descriptor of an operand of a warp-group product (sm_90)."""
    return alloc_descriptor("wgmma", dtype)


def alloc_tcgen05_smem_desc(dtype: AnyDType = "uint64") -> ir.Var:
    """A cell for the descriptor of an operand of ``tcgen05.mma`` (sm_100)."""
    return alloc_descriptor("tcgen05_smem", dtype)


def alloc_tcgen05_instruction_desc(dtype: AnyDType = "uint32") -> ir.Var:
    """A cell for the instruction descriptor of ``tcgen05.mma`` (sm_100)."""
    return alloc_descriptor("tcgen05_instr", dtype)


alloc_tcgen05_instr_desc = alloc_tcgen05_instruction_desc
