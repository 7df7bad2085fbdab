"""Measure TileLang on this machine: ``python benchmark/run.py``.

Prints a table and writes one JSON line a result to ``benchmark/results/<date>.jsonl``. Everything
runs on one thread; each comparison is made within the run, in turns with its peer.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, TextIO

_ROOT = Path(__file__).resolve().parents[1]
_SUITES = {
    "import": "benchmark.suites.imports:run",
    "compile": "benchmark.suites.compile_time:run",
    "cuda-compile": "benchmark.suites.cuda_compile:run",
    "calls": "benchmark.suites.calls:run",
    "gemm": "benchmark.suites.kernels:gemm_float32",
    "gemm-bf16": "benchmark.suites.kernels:gemm_bfloat16",
    "gemm-int8": "benchmark.suites.kernels:gemm_int8",
    "rows": "benchmark.suites.kernels:rows",
    "elementwise": "benchmark.suites.kernels:elementwise",
}


def main() -> int:
    """Run the chosen suites; returns 1 if one failed. A missed target is no failure."""
    parser = argparse.ArgumentParser(description="measure TileLang on this machine")
    parser.add_argument("--only", default=",".join(_SUITES), help="suites, separated by commas")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and sizes")
    parser.add_argument("--out", type=Path, help="the JSON lines file")
    options = parser.parse_args()
    names = [name.strip() for name in options.only.split(",") if name.strip()]
    if unknown := sorted(set(names) - set(_SUITES)):
        parser.error(f"unknown suite {', '.join(unknown)}; known are {', '.join(_SUITES)}")
    out = options.out or _ROOT / "benchmark" / "results" / f"{datetime.date.today()}.jsonl"
    out.parent.mkdir(parents=True, exist_ok=True)
    failed = False
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"machine": _machine()}) + "\n")
        for name in names:
            failed |= not _run_suite(name, options.quick, file)
    print(f"\nwritten to {out}")
    return int(failed)


def _environment() -> dict[str, str]:
    """One thread everywhere, and the checkout on the path."""
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "TILELANG_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(paths),
    }


def _machine() -> dict[str, Any]:
    import torch
    import tvm

    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "cpu": str(tvm.get_global_func("target.llvm_get_system_cpu")()),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "tvm": tvm.__version__,
    }


def _run_suite(name: str, quick: bool, file: TextIO) -> bool:
    """Run a suite in a process of its own: a crash costs its numbers, not those of the others."""
    print(f"\n{name}\n{'-' * 92}")
    command = [sys.executable, "-m", "benchmark.child", _SUITES[name], *(["--quick"] * quick)]
    with subprocess.Popen(command, env=_environment(), stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            row = json.loads(line)
            file.write(line)
            file.flush()
            print(_line(row), flush=True)
    if child.returncode == 0:
        return True
    reason = f"exit status {child.returncode}"
    if child.returncode < 0:
        reason = f"killed by {signal.Signals(-child.returncode).name}"
    print(f"failed: {reason}")
    file.write(json.dumps({"suite": name, "error": reason}) + "\n")
    return False


def _line(row: dict[str, Any]) -> str:
    value = "not measured" if row["value"] is None else f"{row['value']:.3f} {row['unit']}"
    sign = ">=" if row["better"] == "higher" else "<="
    target = "" if row["target"] is None else f"{sign} {row['target']:g}"
    verdict = {True: "met", False: "missed", None: ""}[row["met"]]
    return f"{row['name']:<34} {value:>16}  {target:>8}  {verdict:<7} {row['note']}"


if __name__ == "__main__":
    sys.exit(main())
