"""CUDA bodies of the tile ops, by op name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tilelang.cuda.op.gemm import lower_gemm
from tilelang.transform.simt.logical import lower_logical
from tilelang.transform.simt.lower import OpBody
from tilelang.transform.simt.reduce import lower_reduce
from tilelang.transform.simt.reducer import lower_finalize_reducer, lower_reducer_init
from tilelang.transform.simt.scan import lower_scan

__all__ = ["bodies"]


def bodies(arch: int) -> Mapping[str, OpBody]:
    """The bodies for a compute capability such as 90."""
    return {
        "gemm": partial(lower_gemm, arch=arch),
        "finalize_reducer": lower_finalize_reducer,
        "logical": lower_logical,
        "reduce": lower_reduce,
        "reducer_init": lower_reducer_init,
        "scan": lower_scan,
    }
