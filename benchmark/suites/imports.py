"""What ``import tilelang`` costs over ``import tvm``, in fresh processes."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator

from benchmark.measure import Row, ratio

__all__ = ["run"]

_CODE = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def _seconds(module: str) -> float:
    command = [sys.executable, "-c", _CODE.format(module)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def run(quick: bool) -> Iterator[Row]:
    """Ratio of the two import times."""
    for module in ("tvm", "tilelang"):
        _seconds(module)  # fills the file cache
    pairs = [(_seconds("tvm"), _seconds("tilelang")) for _ in range(3 if quick else 9)]
    tvm, mine = ([pair[i] for pair in pairs] for i in (0, 1))
    extra = {"tvm_s": statistics.median(tvm), "tilelang_s": statistics.median(mine)}
    yield Row("import", "tilelang / tvm", ratio(mine, tvm), "x", 1.15, "lower", extra=extra)
