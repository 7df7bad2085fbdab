"""CPU bodies of the tile ops, by op name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tvm import tirx as T

from tilelang.cpu.op.gemm import lower_gemm
from tilelang.cpu.op.gemm_sp import lower_gemm_sp
from tilelang.cpu.op.loops import Lowering
from tilelang.cpu.op.reduction import lower_logical, lower_reduce, lower_scan
from tilelang.ir.op import TileCall
from tilelang.transform.elementwise import (
    lower_atomic,
    lower_copy,
    lower_fill,
    lower_finalize_reducer,
    lower_im2col,
    lower_reducer_init,
    lower_transpose,
)

__all__ = ["BODIES", "Lowering"]

BODIES: Mapping[str, Callable[[TileCall, Lowering], T.Stmt]] = MappingProxyType(
    {
        "atomic": lower_atomic,
        "copy": lower_copy,
        "fill": lower_fill,
        "finalize_reducer": lower_finalize_reducer,
        "gemm": lower_gemm,
        "gemm_sp": lower_gemm_sp,
        "im2col": lower_im2col,
        "logical": lower_logical,
        "reduce": lower_reduce,
        "reducer_init": lower_reducer_init,
        "scan": lower_scan,
        "transpose": lower_transpose,
    }
)
