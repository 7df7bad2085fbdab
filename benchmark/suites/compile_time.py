"""Compiling the quick-start GEMM: cold, by stage, and again from the disk cache.

Each measurement is a fresh process, with everything imported before the clock starts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmark.measure import Row

__all__ = ["run"]

_PROBE = """
import json, time
import tilelang, torch
from benchmark import programs
start = time.perf_counter()
program = programs.quick_start()
traced = time.perf_counter()
kernel = tilelang.compile(program, out_idx=-1, target="llvm")
done = time.perf_counter()
a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
right = bool(torch.allclose(kernel(a, b), torch.relu(a @ b), atol=1e-2, rtol=1e-2))
called = time.perf_counter()
print(json.dumps({"trace": (traced - start) * 1e3, "compile": (done - traced) * 1e3,
                  "phases": dict(kernel.phases), "from_cache": kernel.from_cache, "right": right}))
"""


def _probe(cache: str) -> dict[str, Any]:
    environment = {**os.environ, "TILELANG_CACHE_DIR": cache, "TILELANG_PRINT_ON_COMPILATION": "0"}
    command = [sys.executable, "-c", _PROBE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if not result["right"]:
        raise RuntimeError("the quick-start GEMM computes a wrong result")
    return result


def run(quick: bool) -> Iterator[Row]:
    """Cold and warm compile times with their stages."""
    cold, warm = [], []
    for _ in range(2 if quick else 7):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_probe(cache))
            warm.append(_probe(cache))
    if any(r["from_cache"] for r in cold):
        raise RuntimeError("a kernel was found in a cache that had just been created")
    if not all(r["from_cache"] for r in warm):
        raise RuntimeError(
            "the second process found nothing in the cache; its key covers the compiler's sources, "
            "so nothing may edit them during the run"
        )
    totals = [r["trace"] + r["compile"] for r in cold]
    yield Row(
        "compile",
        "quick-start GEMM, cold",
        statistics.median(totals),
        "ms",
        300.0,
        extra=_stages(cold),
    )
    hits = [r["compile"] for r in warm]
    yield Row("compile", "disk cache hit", statistics.median(hits), "ms", 20.0, extra=_stages(warm))


def _stages(results: list[dict[str, Any]]) -> dict[str, float]:
    names = ["trace", *results[0]["phases"]]
    rows = [{"trace": r["trace"], **r["phases"]} for r in results]
    return {name: round(statistics.median(row[name] for row in rows), 3) for name in names}
