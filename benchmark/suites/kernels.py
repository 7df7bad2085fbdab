"""Kernels against torch on one thread: ratios of medians, after a check of the result."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

import tilelang
from benchmark import programs
from benchmark.measure import Row, interleaved, missed, ratio
from benchmark.suites.peak import fma_peak_gflops

__all__ = ["elementwise", "gemm_bfloat16", "gemm_float32", "gemm_int8", "rows"]

_BLOCKS = [
    *((64, 64, 32), (64, 64, 64), (128, 128, 64), (128, 128, 128)),
    *((256, 256, 64), (256, 256, 128), (512, 256, 128)),
]
_EPS = 1e-6
_DOT = {"bfloat16": ("avx512_bf16", "amx_bf16"), "int8": ("avx512_vnni", "avx_vnni", "amx_int8")}


def gemm_float32(quick: bool) -> Iterator[Row]:
    """Float32 GEMMs against torch and the FMA peak."""
    peak = fma_peak_gflops()
    if peak is not None:
        yield Row("gemm", "FMA peak of the core", peak, "GFLOP/s")
    for size in (1024,) if quick else (1024, 2048):
        yield from _float_gemm(size, peak, _seconds(quick))


def gemm_bfloat16(quick: bool) -> Iterator[Row]:
    """A bfloat16 GEMM against torch."""
    yield from _short_gemm("bfloat16", "float32", _seconds(quick))


def gemm_int8(quick: bool) -> Iterator[Row]:
    """An int8 GEMM against torch."""
    yield from _short_gemm("int8", "int32", _seconds(quick))


def rows(quick: bool) -> Iterator[Row]:
    """Softmax and RMSNorm against torch."""
    yield from _rows(_seconds(quick))


def elementwise(quick: bool) -> Iterator[Row]:
    """An addition that is bound by memory, against torch."""
    yield _add(_seconds(quick))


def _timed(calls: list[Callable[[], Any]], seconds: float) -> list[list[float]]:
    """Times of the thread: a GEMM is bound by its core, which others may want too."""
    return interleaved(calls, seconds, clock=time.thread_time)


def _seconds(quick: bool) -> float:
    return 1.0 if quick else 4.0


def _best_gemm(
    size: int, dtype: str, accum: str, a: torch.Tensor, b: torch.Tensor
) -> tuple[Any, tuple[int, int, int]]:
    """The fastest of a few tile shapes, as an author would choose; results are checked."""
    reference = (a.double() @ b.double()).to(getattr(torch, accum))
    found: list[tuple[float, Any, tuple[int, int, int]]] = []
    for block in _BLOCKS:
        program = programs.gemm(size, size, size, block, dtype, accum)
        kernel = tilelang.compile(program, out_idx=-1, target="llvm")
        tolerance = 0.0 if accum == "int32" else 1e-3 * size**0.5
        torch.testing.assert_close(kernel(a, b), reference, atol=tolerance, rtol=1e-3)
        (times,) = _timed([lambda kernel=kernel: kernel(a, b)], 0.3)  # type: ignore[misc]
        found.append((statistics.median(times), kernel, block))
    _, kernel, block = min(found, key=lambda entry: entry[0])
    return kernel, block


def _float_gemm(size: int, peak: float | None, seconds: float) -> Iterator[Row]:
    a, b = torch.randn(size, size), torch.randn(size, size)
    kernel, block = _best_gemm(size, "float32", "float32", a, b)
    theirs, mine = _timed([lambda: a @ b, lambda: kernel(a, b)], seconds)
    rate = 2 * size**3 / statistics.median(mine) * 1e-9
    extra = {"ours_gflops": rate, "torch_gflops": 2 * size**3 / statistics.median(theirs) * 1e-9}
    name, note = f"float32 {size}^3", f"tile {block}"
    if peak is not None:
        note += f"; torch is at {extra['torch_gflops'] / peak:.2f} of the peak"
    yield Row("gemm", f"{name} / torch", ratio(theirs, mine), "x", 1.5, "higher", note, extra)
    if peak is None:
        yield missed("gemm", f"{name} / peak", "no C compiler to measure the peak with")
    else:
        yield Row("gemm", f"{name} / peak", rate / peak, "x", 0.65, "higher", note, extra)


def _short_gemm(dtype: str, accum: str, seconds: float) -> Iterator[Row]:
    size, name = 1024, f"{dtype} 1024^3 / torch"
    flags = _cpu_flags()
    if dtype == "int8":
        a, b = (torch.randint(-128, 128, (size, size), dtype=torch.int8) for _ in range(2))
        peer: Callable[[], Any] = lambda: torch._int_mm(a, b)  # noqa: E731
    else:
        a, b = (torch.randn(size, size).bfloat16() for _ in range(2))
        peer = lambda: a @ b  # noqa: E731
    dot = [flag for flag in _DOT[dtype] if flag in flags]
    kernel, block = _best_gemm(size, dtype, accum, a, b)
    theirs, mine = _timed([peer, lambda: kernel(a, b)], seconds)
    note = f"tile {block}; CPU has {', '.join(dot) or 'no dot instructions, so no target'}"
    extra = {"ours_gops": 2 * size**3 / statistics.median(mine) * 1e-9,
             "torch_gops": 2 * size**3 / statistics.median(theirs) * 1e-9}  # fmt: skip
    target = 1.0 if dot else None
    yield Row("gemm", name, ratio(theirs, mine), "x", target, "higher", note, extra)


def _cpu_flags() -> set[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            line = next((line for line in file if line.startswith(("flags", "Features"))), "")
    except OSError:
        return set()
    return set(line.split())


def _rows(seconds: float) -> Iterator[Row]:
    count, columns = 4096, 1024
    x, w = torch.randn(count, columns), torch.randn(columns)
    cases: list[tuple[str, Any, Callable[[], Any], tuple[torch.Tensor, ...]]] = [
        ("softmax", programs.softmax(count, columns), lambda: torch.softmax(x, -1), (x,)),
        (
            "RMSNorm",
            programs.rms_norm(count, columns, _EPS),
            lambda: torch.nn.functional.rms_norm(x, (columns,), w, _EPS),
            (x, w),
        ),
    ]
    for name, program, peer, inputs in cases:
        kernel = tilelang.compile(program, out_idx=-1, target="llvm")
        torch.testing.assert_close(kernel(*inputs), peer(), atol=1e-4, rtol=1e-4)
        calls = [peer, lambda kernel=kernel, inputs=inputs: kernel(*inputs)]
        theirs, mine = interleaved(calls, seconds)
        rate = 2 * x.numel() * 4 / statistics.median(mine) * 1e-9
        yield Row(
            "rows", f"{name} {count} x {columns} / torch", ratio(theirs, mine), "x", 1.2, "higher",
            extra={"ours_gb_s": rate},
        )  # fmt: skip


def _add(seconds: float) -> Row:
    n = 1 << 24
    a, b, c = torch.randn(n), torch.randn(n), torch.empty(n)
    kernel = tilelang.compile(programs.add(n, 4096), target="llvm")
    kernel(a, b, c)
    torch.testing.assert_close(c, a + b, atol=0, rtol=0)
    theirs, mine = interleaved([lambda: torch.add(a, b, out=c), lambda: kernel(a, b, c)], seconds)
    extra = {"ours_gb_s": 3 * n * 4 / statistics.median(mine) * 1e-9}
    return Row(
        "elementwise", "add 2^24 / torch", ratio(theirs, mine), "x", 0.97, "higher", extra=extra
    )
