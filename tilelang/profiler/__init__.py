"""Timing kernels, and comparing them with references."""

from tilelang.profiler.bench import do_bench
from tilelang.profiler.profiler import Profiler
from tilelang.utils.tensor import TensorSupplyType

__all__ = ["Profiler", "TensorSupplyType", "do_bench"]
