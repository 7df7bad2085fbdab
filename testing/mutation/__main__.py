"""The mutation score: ``python -m testing.mutation``, or with a part of the names to look at."""

from __future__ import annotations

import sys
import time

from testing.mutation.mutations import MUTATIONS
from testing.mutation.run import baseline, run_mutations


def main(parts: list[str]) -> int:
    chosen = [m for m in MUTATIONS if not parts or any(part in m.name for part in parts)]
    wrong = baseline()
    for name, text in wrong.items():
        print(f"without mutation, {name}: {text}")
    if wrong:
        return 2
    start, killed = time.monotonic(), 0
    for verdict in run_mutations(chosen):
        killed += verdict.killed
        fate = f"killed by {verdict.kernel}: {verdict.reason}" if verdict.killed else "SURVIVED"
        print(f"{verdict.mutation.name:60} {fate[:110]}", flush=True)
    rate = 100 * killed / max(1, len(chosen))
    seconds = time.monotonic() - start
    print(f"{killed} of {len(chosen)} mutations killed ({rate:.0f} %) in {seconds:.0f} s")
    return 0 if killed == len(chosen) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
