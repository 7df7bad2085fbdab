"""Tile ops: one record and one file each. :mod:`.base` says how they are declared and decoded."""

from tilelang.ir.op.atomic import ATOMIC, ELEMENT_ATOMIC, AtomicAttrs
from tilelang.ir.op.base import Operand, TileAttrs, TileCall, TileOp, find_tile_op, tile_ops
from tilelang.ir.op.copy import COPY, CopyAttrs
from tilelang.ir.op.fill import FILL, FillAttrs
from tilelang.ir.op.gemm import GEMM, GemmAttrs, GemmWarpPolicy
from tilelang.ir.op.gemm_sp import GEMM_SP, GemmSPAttrs
from tilelang.ir.op.im2col import IM2COL, Im2colAttrs
from tilelang.ir.op.logical import LOGICAL, LogicalAttrs
from tilelang.ir.op.reduce import REDUCE, ReduceAttrs
from tilelang.ir.op.reducer import FINALIZE_REDUCER, REDUCER_INIT, REDUCER_UPDATE, ReducerAttrs
from tilelang.ir.op.scan import SCAN, ScanAttrs
from tilelang.ir.op.transpose import TRANSPOSE, TransposeAttrs

__all__ = [
    "ATOMIC",
    "COPY",
    "ELEMENT_ATOMIC",
    "FILL",
    "FINALIZE_REDUCER",
    "GEMM",
    "GEMM_SP",
    "IM2COL",
    "LOGICAL",
    "REDUCE",
    "REDUCER_INIT",
    "REDUCER_UPDATE",
    "SCAN",
    "TRANSPOSE",
    "AtomicAttrs",
    "CopyAttrs",
    "FillAttrs",
    "GemmAttrs",
    "GemmSPAttrs",
    "GemmWarpPolicy",
    "Im2colAttrs",
    "LogicalAttrs",
    "Operand",
    "ReduceAttrs",
    "ReducerAttrs",
    "ScanAttrs",
    "TileAttrs",
    "TileCall",
    "TileOp",
    "TransposeAttrs",
    "find_tile_op",
    "tile_ops",
]
