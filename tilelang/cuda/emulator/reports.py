"""From what the runtime reports to errors that name source lines."""

from __future__ import annotations

import linecache
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tilelang.contrib.files import temporary_folder
from tilelang.cuda.emulator.checks import Counters
from tilelang.cuda.headers import include_dirs
from tilelang.errors import EmulatorError, KernelAssertionError

__all__ = ["Lines", "raise_reports"]

_ADDRESS = re.compile(r"@\{([0-9a-f]+)\}")
_GENERATED = "kernel.cu"
_TOOLS = ("addr2line", "llvm-addr2line")


class Lines:
    """Source lines of code addresses, through the debug information of a library.

    Parameters
    ----------
    contents : bytes
        The shared library.
    source : str
        Its CUDA source.
    """

    def __init__(self, contents: bytes, source: str) -> None:
        self._contents = contents
        self._source = source.splitlines()

    def locate(self, offsets: Iterable[str]) -> dict[str, str]:
        """``file:line`` of every offset, given as hexadecimal text."""
        wanted = sorted(set(offsets))
        tool = next((path for name in _TOOLS if (path := shutil.which(name))), None)
        if not wanted or tool is None:
            return {offset: f"code offset 0x{offset}" for offset in wanted}
        with temporary_folder() as folder:
            library = folder / "kernel.so"
            library.write_bytes(self._contents)
            command = [tool, "-a", "-i", "-e", str(library), *(f"0x{o}" for o in wanted)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        found: dict[str, list[str]] = {}
        frames: list[str] = []
        for line in done.stdout.splitlines():
            if line.startswith("0x"):
                frames = found.setdefault(f"{int(line, 16):x}", [])
            else:
                name, _, number = line.partition(" (")[0].rpartition(":")
                # Its folder is gone, and the tool puts the current one in its place.
                generated = Path(name).name == _GENERATED
                frames.append(f"{_GENERATED if generated else name}:{number}")
        return {offset: _user_frame(found.get(offset, [])) for offset in wanted}

    def text(self, where: str) -> str:
        """The source line at ``file:line``; empty if it cannot be read."""
        name, _, number = where.rpartition(":")
        if not number.isdigit():
            return ""
        if Path(name).name == _GENERATED:
            index = int(number) - 1
            return self._source[index].strip() if index < len(self._source) else ""
        return linecache.getline(name, int(number)).strip()

    def counters(self, text: str) -> list[Counters]:
        """Parse ``space, offset, requests, actual, ideal`` lines and sum them by source line."""
        rows = [line.split("\t") for line in text.splitlines()]
        where = self.locate(row[1] for row in rows)
        sums: dict[tuple[str, str], list[int]] = {}
        for space, offset, *numbers in rows:
            total = sums.setdefault((where[offset], space), [0, 0, 0])
            for i, number in enumerate(numbers):
                total[i] += int(number)
        return [Counters(line, space, *total) for (line, space), total in sorted(sums.items())]


def _user_frame(frames: list[str]) -> str:
    """The innermost frame outside of our headers; calls are inlined, so there may be several."""
    headers = tuple(str(folder) for folder in include_dirs())
    for frame in frames:
        if not frame.startswith(headers):
            return frame
    return frames[0] if frames else "an unknown line"


def raise_reports(kernel: str, text: str, lines: Lines) -> None:
    """Raise the error for the reports of a launch, one a line as ``kind<tab>message``.

    Raises
    ------
    KernelAssertionError
        If an assertion of the kernel failed.
    EmulatorError
        For anything else.
    """
    reports = [line.partition("\t") for line in text.splitlines()]
    where = lines.locate(_ADDRESS.findall(text))
    parts = []
    for kind, _, message in reports:
        parts.append(f"{kind}: {_ADDRESS.sub(lambda match: where[match.group(1)], message)}")
        for place in dict.fromkeys(where[offset] for offset in _ADDRESS.findall(message)):
            if code := lines.text(place):
                parts.append(f"  --> {place}\n   | {code}")
    error = KernelAssertionError if reports and reports[0][0] == "trap" else EmulatorError
    raise error(f"emulated kernel '{kernel}': " + "\n".join(parts))
