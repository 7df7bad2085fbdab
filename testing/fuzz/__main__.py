"""Fuzz for a while: ``python -m testing.fuzz --seconds 120 --seed 7 --ways interpreter cuda``.

A failure is shrunk and written to ``testing/fuzz/corpus`` as a program that the tests then repeat.
The program that is running is kept in ``--current``, in case it takes the process down.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from testing.fuzz.execute import WAYS, check
from testing.fuzz.program import Program, render
from testing.fuzz.programs import FAMILIES, programs

CORPUS = Path(__file__).parent / "corpus"


@dataclass
class Failure:
    """The smallest program that failed so far, why, and since when a smaller one is sought."""

    source: str
    error: Exception
    since: float


class _SmallEnough(KeyboardInterrupt):
    """The one kind of exception that hypothesis lets through."""


def fuzz_once(
    number: int, examples: int, run: Callable[[str], None], family: str, shrink_seconds: float
) -> Failure | None:
    """Run one batch and shrink what fails."""
    found: Failure | None = None

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(family))
    def batch(program: Program) -> None:
        nonlocal found
        if found is not None and time.monotonic() - found.since > shrink_seconds:
            raise _SmallEnough
        source = render(program)
        try:
            run(source)
        except Exception as error:
            since = time.monotonic() if found is None else found.since
            found = Failure(source, error, since)
            raise

    with contextlib.suppress(Exception, _SmallEnough):
        batch()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=int, default=50, help="programs a batch")
    parser.add_argument("--family", choices=["all", *FAMILIES], default="all")
    parser.add_argument(
        "--ways", nargs="+", choices=list(WAYS), default=["interpreter", "llvm"],
        help="executions; the first is what the others are compared with",
    )  # fmt: skip
    parser.add_argument("--shrink-seconds", type=float, default=60)
    parser.add_argument("--keep", type=Path, default=CORPUS, help="folder for failures")
    parser.add_argument("--current", type=Path, help="file for the program that is running")
    args = parser.parse_args()
    count = 0

    def run(source: str) -> None:
        nonlocal count
        count += 1
        if args.current is not None:
            args.current.write_text(source)
        check(source, args.ways)

    end, batches, failures = time.monotonic() + args.seconds, 0, 0
    while time.monotonic() < end:
        number = args.seed + batches
        failure = fuzz_once(number, args.examples, run, args.family, args.shrink_seconds)
        batches += 1
        if failure is not None:
            failures += 1
            name = f"found_{hashlib.sha256(failure.source.encode()).hexdigest()[:12]}.py"
            (args.keep / name).write_text(failure.source)
            text = f"{type(failure.error).__name__}: {failure.error}"
            print(f"seed {number}: kept as {args.keep / name}\n{text[:1500]}\n", flush=True)
    last = args.seed + batches - 1
    print(f"seeds {args.seed}..{last}: {count} programs in {batches} batches, {failures} failing")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
