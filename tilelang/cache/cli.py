"""``python -m tilelang cache info|clear``."""

from __future__ import annotations

import argparse

from tilelang.cache import cache_info, clear_cache

__all__ = ["add_arguments", "run"]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the ``cache`` command."""
    parser.add_argument("action", choices=("info", "clear"), help="what to do with the cache")


def run(options: argparse.Namespace) -> int:
    """Run the command; returns the exit status."""
    if options.action == "clear":
        before = clear_cache()
        _say(f"removed {before.entries} kernels ({_size(before.size_bytes)}) from {before.root}")
        return 0
    info = cache_info()
    bound = _size(info.max_bytes) if info.max_bytes else "unbounded"
    _say(f"{info.root}: {info.entries} kernels, {_size(info.size_bytes)} of {bound}")
    return 0


def _say(text: str) -> None:
    print(text)  # noqa: T201  (the output of the command)


def _size(count: float) -> str:
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:.0f} B" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"
