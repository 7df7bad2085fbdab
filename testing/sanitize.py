"""Run the tests of ``testing/sanitizer.txt`` on a GPU under compute-sanitizer.

``python testing/sanitize.py`` runs memcheck and racecheck; a name runs that tool only. Each prints
the sanitizer's own summary and pytest's; the exit status is 0 if nothing was reported and all
tests passed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "testing" / "sanitizer.txt"
TOOLS = ("memcheck", "racecheck")
SUMMARY = re.compile(r"=+ (ERROR SUMMARY|RACECHECK SUMMARY): .*|=+ .*(passed|failed|error).* in .*")
FINDINGS = 86


def listed() -> list[str]:
    """The tests of the list."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return [line for line in map(str.strip, lines) if line and not line.startswith("#")]


def command(sanitizer: str, tool: str, tests: list[str]) -> list[str]:
    """How the tests run under one tool."""
    watch = [sanitizer, "--tool", tool, "--error-exitcode", str(FINDINGS), "--print-limit", "20"]
    return [*watch, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]


def run(sanitizer: str, tool: str, tests: list[str]) -> int:
    """Run one tool; print its output while it comes and its summary at the end."""
    environment = {**os.environ, "TILELANG_TEST_DEVICE": "cuda"}
    summary = []
    with subprocess.Popen(
        command(sanitizer, tool, tests), cwd=ROOT, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        for line in process.stdout or ():
            print(line, end="", flush=True)
            if SUMMARY.fullmatch(line.strip()):
                summary.append(line.strip())
    found = "reports" if process.returncode == FINDINGS else f"status {process.returncode}"
    print(f"{tool}: {'clean' if process.returncode == 0 else found}")
    for line in summary:
        print(f"  {line}")
    return process.returncode


def main() -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tools", nargs="*", default=TOOLS, metavar="tool", help=" or ".join(TOOLS))
    tools = parser.parse_args().tools
    if unknown := [tool for tool in tools if tool not in TOOLS]:
        parser.error(f"no tool {unknown[0]!r}; there are {', '.join(TOOLS)}")
    sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not Path(sanitizer).is_file():
        parser.error("compute-sanitizer is not on the path; it comes with the CUDA toolkit")
    return max(run(sanitizer, tool, listed()) != 0 for tool in tools)


if __name__ == "__main__":
    sys.exit(main())
