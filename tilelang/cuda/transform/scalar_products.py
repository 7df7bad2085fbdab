"""Matrix products that no matrix instruction covers become parallel nests."""

from __future__ import annotations

import logging
from typing import Any

from tvm import tirx as T
from tvm_ffi import structural_map

from tilelang.cuda.op.gemm import scalar_gemm
from tilelang.cuda.op.gemm_plan import plan_gemm
from tilelang.errors import render_span
from tilelang.ir.op import TileCall
from tilelang.transform.simt.launch import launch_of
from tilelang.transform.simt.notes import with_notes

__all__ = ["expand_scalar_products"]

logger = logging.getLogger("tilelang.cuda")


def expand_scalar_products(func: T.PrimFunc, arch: int) -> T.PrimFunc:
    """Replace every ``T.gemm`` without a plan by a nest, and say why.

    Before: ``T.gemm(A, B, C)`` of 24 x 24 x 8 tiles. After: ``for i, j in T.parallel(24, 24): C[i,
    j] += sum over k of A[i, k] * B[k, j]``.
    """
    threads = launch_of(func).threads
    notes: list[str] = []

    def expand(stmt: T.Evaluate) -> Any:
        call = TileCall.of(stmt)
        if call is None or call.name != "gemm":
            return stmt
        plan, reason = plan_gemm(call, threads, arch)
        if plan is not None:
            return stmt
        where = "" if call.span is None else f"\n{render_span(call.span)}"
        logger.warning("T.gemm runs on scalar units: %s%s", reason, where)
        # No line: a kernel in the cache serves programs of other places too.
        operands = ", ".join(str(call.operand(name).source.name) for name in "ABC")
        notes.append(f"T.gemm({operands}) runs on scalar units: {reason}")
        return scalar_gemm(call)

    return with_notes(func.with_body(structural_map(func.body, (T.Evaluate, expand))), notes)
