"""Matrix instructions: warp-level MMA, warp-group MMA (sm_90), tcgen05 (sm_100), their descriptors.

The ``ptx_*`` functions take the argument lists of the PTX instructions; the backend checks them.
Each appends a statement.
"""

from __future__ import annotations

from typing import Any

from tvm import ir

from tilelang.errors import TraceTypeError
from tilelang.ir import intrin
from tilelang.ir.dtype import AnyDType, dtype
from tilelang.ir.expr import dtype_of
from tilelang.ir.span import user_span

__all__ = [
    "increase_descriptor_offset",
    "initialize_tcgen05_descriptor",
    "initialize_wgmma_descriptor",
    "mma_fill",
    "mma_store",
    "ptx_ldmatrix",
    "ptx_mma",
    "ptx_mma_block_scale",
    "ptx_mma_sm70",
    "ptx_mma_sp",
    "ptx_tcgen05_mma_blockscaled_ss",
    "ptx_tcgen05_mma_ss",
    "ptx_tcgen05_mma_ts",
    "ptx_wgmma_rs",
    "ptx_wgmma_sp_rs",
    "ptx_wgmma_sp_ss",
    "ptx_wgmma_ss",
    "tcgen05_after_thread_sync",
    "tcgen05_before_thread_sync",
    "tcgen05_cp_warpx4",
    "tcgen05_mma_arrive",
    "tcgen05_sf_warp_transpose",
    "wait_wgmma",
    "warpgroup_arrive",
    "warpgroup_commit_batch",
    "warpgroup_fence_operand",
    "warpgroup_wait",
]

_dtype = dtype


def ptx_mma(*args: Any) -> None:
    """``mma.sync``: result dtype, shape, layouts, dtypes of A, B, C, then pointers and offsets."""
    intrin.get("ptx_mma").emit(*args)


def ptx_mma_sm70(*args: Any) -> None:
    """``mma.sync.m8n8k4`` of Volta."""
    intrin.get("ptx_mma_sm70").emit(*args)


def ptx_mma_sp(*args: Any) -> None:
    """``mma.sp``: :func:`ptx_mma` with a 2:4 sparse A and its metadata."""
    intrin.get("ptx_mma_sp").emit(*args)


def ptx_mma_block_scale(*args: Any) -> None:
    """``mma.sync`` with block scales (sm_120)."""
    intrin.get("ptx_mma_block_scale").emit(*args)


def ptx_ldmatrix(*args: Any) -> None:
    """``ldmatrix``: load 8x8 matrices from shared memory into the registers of a warp."""
    intrin.get("ptx_ldmatrix").emit(*args)


def mma_fill(*args: Any) -> None:
    """Set the registers of an MMA accumulator."""
    intrin.get("mma_fill").emit(*args)


def mma_store(*args: Any) -> None:
    """Store an MMA accumulator to memory."""
    intrin.get("mma_store").emit(*args)


def ptx_wgmma_ss(*args: Any) -> None:
    """``wgmma.mma_async`` with both operands in shared memory."""
    intrin.get("ptx_wgmma_ss").emit(*args)


def ptx_wgmma_rs(*args: Any) -> None:
    """``wgmma.mma_async`` with A in registers."""
    intrin.get("ptx_wgmma_rs").emit(*args)


def ptx_wgmma_sp_ss(*args: Any) -> None:
    """``wgmma.mma_async.sp`` with both operands in shared memory."""
    intrin.get("ptx_wgmma_sp_ss").emit(*args)


def ptx_wgmma_sp_rs(*args: Any) -> None:
    """``wgmma.mma_async.sp`` with A in registers."""
    intrin.get("ptx_wgmma_sp_rs").emit(*args)


def ptx_tcgen05_mma_ss(*args: Any) -> None:
    """``tcgen05.mma`` with both operands in shared memory."""
    intrin.get("ptx_tcgen05_mma_ss").emit(*args)


def ptx_tcgen05_mma_ts(*args: Any) -> None:
    """``tcgen05.mma`` with A in tensor memory."""
    intrin.get("ptx_tcgen05_mma_ts").emit(*args)


def ptx_tcgen05_mma_blockscaled_ss(*args: Any) -> None:
    """``tcgen05.mma`` with block scales and both operands in shared memory."""
    intrin.get("ptx_tcgen05_mma_blockscaled_ss").emit(*args)


def warpgroup_arrive() -> None:
    """Order register accesses before the next warp-group products (``wgmma.fence``)."""
    intrin.get("warpgroup_arrive").emit()


def warpgroup_commit_batch() -> None:
    """Close the group of warp-group products started so far."""
    intrin.get("warpgroup_commit_batch").emit()


def warpgroup_wait(n: int) -> None:
    """Wait until at most ``n`` groups of warp-group products are pending."""
    intrin.get("warpgroup_wait").emit(n)


def wait_wgmma(id: int) -> None:
    """The same as :func:`warpgroup_wait`."""
    intrin.get("wait_wgmma").emit(id)


def warpgroup_fence_operand(
    buffer_or_ptr: Any, offset: Any = 0, num_regs: int | None = None, dtype: AnyDType | None = None
) -> None:
    """Keep the compiler from moving accesses of accumulator registers across this point.

    Parameters
    ----------
    buffer_or_ptr : buffer, element or pointer
    offset : int32 expression
        First register.
    num_regs : int, optional
        Number of 32-bit registers; by default the whole buffer.
    dtype : AnyDType, optional
        Element type; needed for a pointer.

    Raises
    ------
    TraceTypeError
        If a pointer comes without ``num_regs`` and ``dtype``.
    """
    is_pointer = isinstance(getattr(buffer_or_ptr, "ty", None), ir.PointerType)
    if is_pointer and (num_regs is None or dtype is None):
        raise TraceTypeError(
            "T.warpgroup_fence_operand: a pointer needs num_regs= and dtype=", user_span()
        )
    kind = _dtype(dtype) if dtype is not None else _dtype(dtype_of(buffer_or_ptr))
    if num_regs is None:
        elements = 1
        for extent in buffer_or_ptr.shape:
            elements *= int(extent)
        num_regs = max(1, elements * kind.bits // 32)
    intrin.get("warpgroup_fence_operand").emit(buffer_or_ptr, offset, num_regs, str(kind))


def initialize_wgmma_descriptor(
    descriptor: Any,
    start_address: Any,
    layout_type_: int = 0,
    leading_byte_offset: int = 0,
    stride_byte_offset: int = 0,
) -> None:
    """Write a matrix descriptor for warp-group products.

    Parameters
    ----------
    descriptor : element
        The cell of ``T.alloc_wgmma_desc`` that receives it.
    start_address : pointer, buffer or element in shared memory
    layout_type_ : int
        Swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes.
    leading_byte_offset, stride_byte_offset : int
        Distances of 8x8 cores in units of 16 bytes.
    """
    intrin.get("initialize_wgmma_descriptor").emit(
        descriptor, start_address, layout_type_, leading_byte_offset, stride_byte_offset
    )


def initialize_tcgen05_descriptor(
    descriptor: Any,
    start_address: Any,
    leading_byte_offset: int,
    stride_byte_offset: int,
    base_offset: int = 0,
    leading_is_absolute: bool = False,
    swizzle_mode: int = 0,
) -> None:
    """Write a matrix descriptor for ``tcgen05.mma``; see :func:`initialize_wgmma_descriptor`."""
    intrin.get("initialize_tcgen05_descriptor").emit(
        descriptor,
        start_address,
        leading_byte_offset,
        stride_byte_offset,
        base_offset,
        leading_is_absolute,
        swizzle_mode,
    )


def increase_descriptor_offset(descriptor: Any, offset: Any) -> None:
    """Advance the address in a descriptor by ``offset`` bytes."""
    intrin.get("increase_descriptor_offset").emit(descriptor, offset)


def tcgen05_mma_arrive(mbar: Any, arrive_2cta: bool = False) -> None:
    """Arrive at a barrier when the ``tcgen05`` products started so far are complete."""
    intrin.get("tcgen05_mma_arrive").emit(mbar, arrive_2cta)


def tcgen05_before_thread_sync() -> None:
    """Order ``tcgen05`` operations before a following barrier."""
    intrin.get("tcgen05_before_thread_sync").emit()


def tcgen05_after_thread_sync() -> None:
    """Order ``tcgen05`` operations after a preceding barrier."""
    intrin.get("tcgen05_after_thread_sync").emit()


def tcgen05_cp_warpx4(
    smem_src: Any, tmem_dst: Any, tmem_col_offset: Any = 0, *, use_2cta: bool = False
) -> None:
    """Copy scale factors from shared to tensor memory, repeated for the four warps."""
    intrin.get("tcgen05_cp_warpx4").emit(smem_src, tmem_dst, tmem_col_offset, use_2cta)


def tcgen05_sf_warp_transpose(smem_src: Any) -> None:
    """Transpose scale factors in shared memory, in place, by one warp."""
    intrin.get("tcgen05_sf_warp_transpose").emit(smem_src)
