"""The command line: ``python -m tilelang <command>``.

* ``cache info`` and ``cache clear``: the kernel cache on disk.
* ``doctor``: what is installed, which backends work here, and why others do not.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

__all__ = ["main"]

# Command -> module with ``add_arguments(parser)`` and ``run(options) -> int``; one is imported.
_COMMANDS = {
    "cache": ("tilelang.cache.cli", "show or clear the kernel cache"),
    "doctor": ("tilelang.tools.doctor", "report what works on this machine"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; ``sys.argv[1:]`` by default.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(prog="python -m tilelang", description="TileLang tools")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    named = argv[0] if argv else None
    for command, (module_name, summary) in _COMMANDS.items():
        sub = commands.add_parser(command, help=summary, description=summary)
        if command == named:
            module = importlib.import_module(module_name)
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    options = parser.parse_args(argv)
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
