"""Intrinsics of particular GPUs: asynchronous copies, barriers in memory, matrix units, registers.

They have no host meaning: the interpreter and the CPU refuse them by name. Rows are short on
purpose; the language functions document the arguments.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilelang.ir.intrin.record import NVIDIA, PURE, READ, UPDATE, Intrinsic, Kind, define

__all__: list[str] = []

CUDA = frozenset({"cuda"})
ROCM = frozenset({"rocm"})
METAL = frozenset({"metal"})
COPY_ASYNC = NVIDIA | ROCM
ANYTHING: tuple[Kind, ...] = ("any",)


def _declare(
    names: str | Iterable[str],
    args: tuple[Kind, ...] = (),
    result: str = "void",
    backends: frozenset[str] = NVIDIA,
    effect: int = UPDATE,
    optional: int = 0,
    variadic: bool = False,
    op_prefix: str = "tl.",
    lanes: bool = False,
) -> None:
    for name in names.split() if isinstance(names, str) else names:
        define(
            Intrinsic(
                name, f"{op_prefix}{name}", args, result, effect, optional=optional,
                variadic=variadic, lanes=lanes, asynchronous=True, backends=backends,
            )
        )  # fmt: skip


# Clusters of blocks, launch control, dependent launches.
_declare("cluster_arrive_relaxed cluster_arrive cluster_wait cluster_sync")
_declare("block_rank_in_cluster", result="int32", effect=PURE)
_declare("clc_try_cancel clc_try_cancel_multicast", ("pointer", "pointer"))
_declare("clc_is_canceled", ("pointer",), "bool", effect=READ)
_declare(
    "clc_get_first_ctaid_x clc_get_first_ctaid_y clc_get_first_ctaid_z",
    ("pointer",),
    "int32",
    effect=READ,
)
_declare("pdl_trigger pdl_sync")
_declare("named_barrier_arrive", ("int32", "int32"), backends=CUDA)

# The text of a kernel that is written in CUDA: all that its launch does.
_declare("CUDASourceCodeKernel", ("text",), backends=CUDA)

# Random numbers.
_declare("rng_init", ("any", "any", "any", "text"), backends=CUDA)
_declare("rng_rand", result="uint32", backends=CUDA)
_declare("rng_rand_float", ("text",), "given", CUDA)

# Barriers in memory.
_declare("mbarrier_wait_parity", ("pointer", "int32"))
_declare("mbarrier_arrive", ("pointer", "int32"), optional=1)
_declare("mbarrier_expect_tx mbarrier_arrive_expect_tx", ("pointer", "int32"))
_declare("ptx_arrive_cluster_barrier", ("pointer", "int32"))
_declare("cp_async_barrier_noinc", ("pointer",))
_declare("fence_proxy_async")
_declare("create_barriers", ("int32",))
_declare("ptx_init_barrier_thread_count", ("any", "int32"))
_declare("ptx_arrive_barrier ptx_cp_async_barrier", ("any",))
_declare("ptx_arrive_barrier_expect_tx", ("any", "int32"))
_declare("ptx_wait_barrier", ("any", "int32"), optional=1)
_declare("ptx_fence_barrier_init")

# Asynchronous copies.
_declare(
    "ptx_cp_async", ("pointer", "pointer", "int32", "predicate"), backends=COPY_ASYNC, optional=1
)
_declare("ptx_commit_group", backends=COPY_ASYNC)
_declare("ptx_wait_group", ("int32",), backends=COPY_ASYNC)
_declare("ptx_cp_async_bulk", ANYTHING, variadic=True)
_declare("create_tma_descriptor", ANYTHING, "handle", variadic=True, effect=PURE)
_declare("tma_load tma_load_2sm", ANYTHING, variadic=True)
_declare("tma_store_arrive")
_declare("tma_store_wait", ("int32", "predicate"))

# Warp-group matrix products.
_declare("warpgroup_arrive warpgroup_commit_batch")
_declare("warpgroup_wait wait_wgmma", ("int32",))
_declare("warpgroup_fence_operand", ("pointer", "int32", "int32", "text"))
_declare("initialize_wgmma_descriptor", ("element", "pointer", "int32", "int32", "int32"))
_declare(
    "initialize_tcgen05_descriptor",
    ("element", "pointer", "int32", "int32", "int32", "predicate", "int32"),
)
_declare("increase_descriptor_offset", ("element", "int32"))
_declare("tcgen05_mma_arrive", ("pointer", "predicate"))
_declare("tcgen05_before_thread_sync tcgen05_after_thread_sync")
_declare("tcgen05_cp_warpx4", ("pointer", "any", "int32", "predicate"))
_declare("tcgen05_sf_warp_transpose", ("pointer",))
_declare("deallocate_tmem", ("pointer",))
_declare("set_max_nreg", ("int32", "predicate"))

# Matrix instructions and their operands. Backends decode the PTX-like argument lists.
# The lanes of a warp issue them together.
_declare(
    "ptx_mma ptx_mma_sm70 ptx_ldmatrix mma_fill mma_store", ANYTHING, variadic=True, lanes=True
)
_declare("ptx_mma_sp ptx_mma_block_scale", ANYTHING, backends=CUDA, variadic=True, lanes=True)
_declare("ptx_wgmma_ss ptx_wgmma_rs", ANYTHING, variadic=True)
_declare("ptx_wgmma_sp_ss ptx_wgmma_sp_rs", ANYTHING, backends=CUDA, variadic=True)
_declare(
    "ptx_tcgen05_mma_ss ptx_tcgen05_mma_ts ptx_tcgen05_mma_blockscaled_ss", ANYTHING, variadic=True
)

# TVM's names for WMMA fragments.
_declare("tvm_load_matrix_sync", ANYTHING, "given", CUDA, READ, variadic=True, op_prefix="tirx.")
_declare(
    "tvm_mma_sync tvm_bmma_sync tvm_fill_fragment tvm_store_matrix_sync",
    ANYTHING,
    backends=CUDA,
    variadic=True,
    op_prefix="tirx.",
)

# Explicit memory accesses of a width in bits.
for _bits in (32, 64, 128, 256):
    _vector = "uint32" if _bits == 32 else f"uint32x{_bits // 32}"
    _declare(f"ldg{_bits}", ("pointer", "predicate"), _vector, CUDA, READ, optional=1)
    _declare(f"stg{_bits}", ("pointer", "any", "predicate"), backends=CUDA, optional=1)
    if _bits <= 128:
        _declare(f"lds{_bits}", ("pointer",), _vector, CUDA, READ)
        _declare(f"sts{_bits}", ("pointer", "any"), backends=CUDA)

# AMD matrix cores and transposing reads of local memory.
_declare("ds_read_tr16_b64", ("pointer",), "float16x4", ROCM, READ)
_declare("ds_read_tr8_b64", ("pointer",), "uint8x8", ROCM, READ)
_declare(
    "tvm_mfma tvm_mfma_store tvm_rdna_wmma tvm_rdna_wmma_store",
    ANYTHING,
    backends=ROCM,
    variadic=True,
)

# Metal matrices; TVM owns the ops.
_declare(
    "make_filled_simdgroup_matrix simdgroup_load simdgroup_store simdgroup_multiply_accumulate "
    "cooperative_tensor_fill cooperative_tensor_load cooperative_tensor_store "
    "cooperative_tensor_multiply_accumulate",
    ANYTHING,
    backends=METAL,
    variadic=True,
    op_prefix="tirx.",
)
