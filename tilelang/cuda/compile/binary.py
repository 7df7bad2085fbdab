"""What a device compiler returns: the binary, and what it says about the kernels in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["DeviceBinary", "Resources", "parse_resources"]


@dataclass(frozen=True)
class Resources:
    """What one kernel takes, per thread unless it says otherwise.

    Parameters
    ----------
    registers : int
    stack_bytes, spill_store_bytes, spill_load_bytes : int
        Local memory, and how much of it holds registers that did not fit.
    shared_bytes : int
        Static shared memory of a block.
    barriers : int
        Hardware barriers of a block.
    """

    registers: int = 0
    stack_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    shared_bytes: int = 0
    barriers: int = 0


@dataclass(frozen=True)
class DeviceBinary:
    """Compiled device code.

    Parameters
    ----------
    code : bytes
    kind : {"cubin", "fatbin", "ptx"}
    log : str
        The compiler's messages.
    resources : mapping
        By the name of the kernel.
    """

    code: bytes
    kind: str
    log: str = ""
    resources: Mapping[str, Resources] = field(default_factory=dict)


_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_PROPERTIES = re.compile(r"Function properties for (\w+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = {
    "registers": re.compile(r"Used (\d+) registers"),
    "barriers": re.compile(r"used (\d+) barriers"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
}


def parse_resources(log: str) -> dict[str, Resources]:
    """Read what ``ptxas -v`` reports about entry functions."""
    found: dict[str, dict[str, int]] = {}
    entry = function = ""
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry = function = match[1]
            found[entry] = {}
        elif match := _PROPERTIES.search(line):
            function = match[1]
        elif (match := _STACK.search(line)) and function == entry and entry:
            names = ("stack_bytes", "spill_store_bytes", "spill_load_bytes")
            found[entry].update(zip(names, map(int, match.groups()), strict=True))
        elif entry and "Used " in line:
            for name, pattern in _USED.items():
                if match := pattern.search(line):
                    found[entry][name] = int(match[1])
    return {name: Resources(**values) for name, values in found.items()}
