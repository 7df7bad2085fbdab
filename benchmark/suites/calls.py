"""What a call costs before the kernel runs, against a bare tvm-ffi call in the same process."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import tvm_ffi

import tilelang
import tilelang.language as T
from benchmark import programs
from benchmark.measure import Row, interleaved, per_call_us

__all__ = ["run"]


@tilelang.jit
def eager_add(a, b):  # noqa: ANN001, ANN202  (declared in the body)
    n = T.const("n")
    a: T.Tensor((n,), "float32")  # type: ignore[no-redef]
    b: T.Tensor((n,), "float32")  # type: ignore[no-redef]
    c = T.empty((n,), "float32")
    with T.Kernel(1, threads=1):
        for i in T.Parallel(n):
            c[i] = a[i] + b[i]
    return c


def run(quick: bool) -> Iterator[Row]:
    """Overheads in microseconds; the arrays are tiny, so that the work itself is nothing."""
    n = 8
    a, b, c = (torch.zeros(n) for _ in range(3))
    bare = tvm_ffi.get_global_func("testing.nop")
    kernel = tilelang.compile(programs.add(n, n), target="llvm")
    seconds = 1.0 if quick else 5.0
    times = interleaved(
        [
            lambda: bare(a, b, c),
            lambda: kernel(a, b, c),
            lambda: eager_add(a, b),
            lambda: torch.empty(n),
            lambda: torch.add(a, b),
        ],
        seconds,
    )
    floor, plain, eager, empty, peer = map(per_call_us, times)
    extra = {"bare_us": floor, "kernel_us": plain, "torch_add_us": peer, "torch_empty_us": empty}
    yield Row("calls", "3 tensors, over a bare call", plain - floor, "us", 0.5, extra=extra)
    yield Row("calls", "eager, one output", eager, "us", 2.5, extra=extra)
