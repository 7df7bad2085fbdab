"""Compiling the kernels of the GPU suite for sm_90a, by stage; needs NVRTC but no GPU.

One process compiles them in turns, from tracing to a loadable binary, with the kernel cache off.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from benchmark.measure import Row, missed

__all__ = ["run"]

_PROBE = """
import json, sys, time
sys.path.insert(0, "benchmark/gpu")
import suite
import tilelang, tilelang.language as T
KERNELS = {
    "add": lambda: suite.k_add(T, tilelang, 1 << 28, 1024, 128, "float16"),
    "RMSNorm": lambda: suite.k_rms(T, tilelang, 16384, 8192, 2, 256, "float16"),
    "softmax": lambda: suite.k_softmax(T, tilelang, 16384, 8192, 256, "float16"),
    "GEMM": lambda: suite.k_gemm(
        T, tilelang, 8192, 8192, 8192, 128, 256, 64, 3, 256, "float16", False, 10),
    "attention": lambda: suite.k_fa(
        T, tilelang, 4, 16, 4096, 128, False, 128, 128, 2, 256, "float16"),
}
for name in KERNELS:
    KERNELS[name]()
for _ in range(int(sys.argv[1])):
    for name, make in KERNELS.items():
        start, used = time.perf_counter(), time.process_time()
        kernel = make()
        row = {"name": name, "ms": (time.perf_counter() - start) * 1e3,
               "cpu": (time.process_time() - used) * 1e3, **kernel.phases}
        print(json.dumps(row), flush=True)
"""
# Milliseconds on a machine with two cores, from the trace to the loaded binary.
_TARGETS = {"add": 200.0, "RMSNorm": 200.0, "softmax": 200.0, "GEMM": 350.0, "attention": 650.0}


def run(quick: bool) -> Iterator[Row]:
    """Cold compiles in a warm process."""
    environment = {
        **os.environ,
        "TILELANG_DISABLE_CACHE": "1",
        "TILELANG_DEFAULT_TARGET": json.dumps({"kind": "cuda", "arch": "sm_90a"}),
        "TILELANG_PRINT_ON_COMPILATION": "0",
    }
    command = [sys.executable, "-c", _PROBE, "2" if quick else "7"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        yield missed("cuda compile", "all", done.stderr.strip().splitlines()[-1])
        return
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        rows.setdefault(row.pop("name"), []).append(row)
    for name, found in rows.items():
        stages = {key: round(statistics.median(r[key] for r in found), 1) for key in found[0]}
        total = stages.pop("ms")
        yield Row("cuda compile", name, total, "ms", _TARGETS[name], extra=stages)
