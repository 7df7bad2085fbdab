"""Fuzz for a while: ``python -m testing.fuzz --seconds 120 --seed 7``.

A failure is shrunk and written to ``testing/fuzz/corpus`` as a program that the tests then repeat.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from testing.fuzz.execute import Mismatch, check
from testing.fuzz.programs import Program, programs, render

CORPUS = Path(__file__).parent / "corpus"


def fuzz_once(number: int, ways: tuple[str, ...], examples: int) -> str | None:
    """Run one batch; return the source of the smallest program that fails, if any does."""
    smallest: list[str] = []

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def batch(program: Program) -> None:
        source = render(program)
        try:
            check(source, ways)
        except Exception:
            smallest[:] = [source]
            raise

    try:
        batch()
    except (Mismatch, Exception) as error:  # noqa: BLE001  any error is a finding
        print(error)
    return smallest[0] if smallest else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=int, default=50, help="programs a batch")
    parser.add_argument("--with-c", action="store_true", help="also run every program as C")
    args = parser.parse_args()
    ways = ("interpreter", "llvm", "c") if args.with_c else ("interpreter", "llvm")
    end, batches, failures = time.monotonic() + args.seconds, 0, 0
    while time.monotonic() < end:
        source = fuzz_once(args.seed + batches, ways, args.examples)
        batches += 1
        if source is not None:
            failures += 1
            name = hashlib.sha256(source.encode()).hexdigest()[:12]
            (CORPUS / f"found_{name}.py").write_text(source)
            print(f"kept as testing/fuzz/corpus/found_{name}.py")
    print(f"seeds {args.seed}..{args.seed + batches - 1}: {batches} batches, {failures} failing")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
