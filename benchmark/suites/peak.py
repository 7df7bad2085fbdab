"""The FMA peak of one core, by a loop that does nothing else.

It is C with vector extensions, compiled by the system's compiler, so that the yardstick owes
nothing to our code generator. Independent accumulators hide the latency of the instruction. The
factor is an argument: a compiler that knew it to be 1 would leave the multiplications out.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

__all__ = ["fma_peak_gflops"]

_LOOP = 1 << 16
_OPERANDS = (0.5, 0.25)  # the sums stay finite and normal
_SOURCE = """
#ifdef __AVX512F__
#define W 16
#elif defined(__AVX__)
#define W 8
#else
#define W 4
#endif
typedef float vec __attribute__((vector_size(4 * W)));
enum { N = 12 };
float peak(long loops, float factor, float term) {
  vec acc[N], x, y;
  for (int i = 0; i < W; ++i) { x[i] = factor; y[i] = term; }
  for (int n = 0; n < N; ++n) acc[n] = x * (float)n;
  for (long i = 0; i < loops; ++i) {
#pragma GCC unroll 12
    for (int n = 0; n < N; ++n) acc[n] = acc[n] * x + y;
  }
  float sum = 0;
  for (int n = 0; n < N; ++n) for (int i = 0; i < W; ++i) sum += acc[n][i];
  return sum;
}
int flops_per_loop(void) { return 2 * W * N; }
"""


@functools.cache
def fma_peak_gflops() -> float | None:
    """GFLOP/s of float32 multiply-adds on one core, or None without a C compiler."""
    compiler = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "peak.c", Path(folder) / "peak.so"
        source.write_text(_SOURCE)
        flags = ["-O3", "-march=native", "-ffp-contract=fast", "-mprefer-vector-width=512"]
        command = [compiler, *flags, "-shared", "-fPIC", str(source), "-o", str(library)]
        built = subprocess.run(command, capture_output=True, check=False)
        if built.returncode:
            command.remove("-mprefer-vector-width=512")
            subprocess.run(command, capture_output=True, check=True)
        loaded = ctypes.CDLL(str(library))
    loaded.peak.argtypes = [ctypes.c_long, ctypes.c_float, ctypes.c_float]
    loaded.peak.restype = ctypes.c_float
    flops = loaded.flops_per_loop() * _LOOP
    loaded.peak(_LOOP, *_OPERANDS)
    rates = []
    for _ in range(50):
        started = time.thread_time()
        loaded.peak(_LOOP, *_OPERANDS)
        rates.append(flops / (time.thread_time() - started) * 1e-9)
    # The clock of a shared core varies; the upper quartile is what the core does undisturbed. Time
    # of the thread leaves out when others had the core.
    return statistics.quantiles(rates, n=4)[2]
