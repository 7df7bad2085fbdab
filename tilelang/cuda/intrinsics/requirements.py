"""Architectures that intrinsics need, as data, and the refusal made from it."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_walk

from tilelang.errors import UnsupportedError
from tilelang.ir.intrin import find

__all__ = ["REQUIREMENTS", "Requirement", "check_requirements"]


@dataclass(frozen=True)
class Requirement:
    """What an intrinsic needs.

    Parameters
    ----------
    min_arch : int
        The oldest architecture that has it, 90 for ``sm_90``.
    unit : str
        What of the device it uses.
    issued : bool
        Whether this version generates code for it.
    """

    min_arch: int
    unit: str
    issued: bool = True


_CLUSTER = Requirement(90, "clusters of blocks")
_DEPENDENT = Requirement(90, "programmatic dependent launch")
_BARRIER = Requirement(90, "transaction barriers in shared memory", issued=False)
_BULK = Requirement(90, "bulk asynchronous copies (TMA)", issued=False)
_WARP_GROUP = Requirement(90, "warp-group matrix units (WGMMA)", issued=False)
_LAUNCH_CONTROL = Requirement(100, "cluster launch control", issued=False)
_TENSOR_MEMORY = Requirement(100, "matrix units with tensor memory (tcgen05)", issued=False)
_VOLTA = Requirement(70, "the m8n8k4 instructions of Volta", issued=False)
_BLOCK_SCALE = Requirement(120, "matrix instructions with block scales", issued=False)

#: By the name of the intrinsic; one not listed runs on every supported architecture.
REQUIREMENTS: dict[str, Requirement] = {
    **dict.fromkeys(
        ("cluster_arrive_relaxed", "cluster_arrive", "cluster_wait", "cluster_sync",
         "block_rank_in_cluster"),
        _CLUSTER,
    ),
    **dict.fromkeys(("pdl_trigger", "pdl_sync"), _DEPENDENT),
    **dict.fromkeys(
        ("mbarrier_expect_tx", "mbarrier_arrive_expect_tx", "mbarrier_wait_parity",
         "mbarrier_arrive", "ptx_arrive_cluster_barrier", "cp_async_barrier_noinc",
         "create_barriers", "ptx_init_barrier_thread_count", "ptx_arrive_barrier",
         "ptx_cp_async_barrier", "ptx_arrive_barrier_expect_tx", "ptx_wait_barrier",
         "ptx_fence_barrier_init"),
        _BARRIER,
    ),
    **dict.fromkeys(
        ("ptx_cp_async_bulk", "create_tma_descriptor", "tma_load", "tma_load_2sm",
         "tma_store_arrive", "tma_store_wait", "fence_proxy_async"),
        _BULK,
    ),
    **dict.fromkeys(
        ("warpgroup_arrive", "warpgroup_commit_batch", "warpgroup_wait", "wait_wgmma",
         "warpgroup_fence_operand", "initialize_wgmma_descriptor", "increase_descriptor_offset",
         "ptx_wgmma_ss", "ptx_wgmma_rs", "ptx_wgmma_sp_ss", "ptx_wgmma_sp_rs"),
        _WARP_GROUP,
    ),
    **dict.fromkeys(
        ("clc_try_cancel", "clc_try_cancel_multicast", "clc_is_canceled", "clc_get_first_ctaid_x",
         "clc_get_first_ctaid_y", "clc_get_first_ctaid_z"),
        _LAUNCH_CONTROL,
    ),
    **dict.fromkeys(
        ("initialize_tcgen05_descriptor", "tcgen05_mma_arrive", "tcgen05_before_thread_sync",
         "tcgen05_after_thread_sync", "tcgen05_cp_warpx4", "tcgen05_sf_warp_transpose",
         "deallocate_tmem", "ptx_tcgen05_mma_ss", "ptx_tcgen05_mma_ts",
         "ptx_tcgen05_mma_blockscaled_ss"),
        _TENSOR_MEMORY,
    ),
    "ptx_mma_block_scale": _BLOCK_SCALE,
    "ptx_mma_sm70": _VOLTA,
}  # fmt: skip


def check_requirements(func: T.PrimFunc, arch: int) -> T.PrimFunc:
    """Refuse the first intrinsic that ``sm_<arch>`` lacks or that has no code here yet.

    Raises
    ------
    UnsupportedError
        Names the intrinsic, the unit and the architecture it needs.
    """
    problems: list[UnsupportedError] = []

    def on_call(call: ir.Call) -> None:
        record = find(call)
        need = REQUIREMENTS.get(record.name) if record is not None else None
        if record is None or need is None or problems:
            return
        if arch < need.min_arch:
            text = (
                f"T.{record.name} needs {need.unit}, which devices have from sm_{need.min_arch} "
                f"on; the target is sm_{arch}"
            )
        elif not need.issued:
            text = (
                f"T.{record.name} is not in this version: it needs {need.unit} (sm_{need.min_arch}"
                "), for which the CUDA backend generates no code yet"
            )
        else:
            return
        problems.append(UnsupportedError(text, call.span))

    structural_walk(func.body, (ir.Call, on_call))
    if problems:
        raise problems[0]
    return func
