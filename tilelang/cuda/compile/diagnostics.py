"""What a rejected compile tells the user: their line, the first error, and where the rest is."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tvm import ir

from tilelang.env import env
from tilelang.errors import DeviceCompileError

__all__ = ["rejection"]

_ERROR = re.compile(r"\berror\b[^:]*:", re.IGNORECASE)
_PLACE = re.compile(r"^(?P<file>[^\s():]+)[(:](?P<line>\d+)")
_CONTEXT = 2


def rejection(
    compiler: str, source: str, log: str, lines: Mapping[str, tuple[str, int]] | None
) -> DeviceCompileError:
    """The error for source that ``compiler`` refused.

    Parameters
    ----------
    lines : mapping, optional
        Kernel name to the user's ``(file, line)``; the error points to the kernel it is in.
    """
    first = _first_error(log)
    number = _line_of(first)
    excerpt = _excerpt(source, number)
    path = _write_log(source, log)
    message = f"{compiler} rejected the generated CUDA code: {first}{excerpt}"
    if path is not None:
        message += f"\nfull log and source: {path}"
    span = _named_span(first) or _span(source, number, lines or {})
    return DeviceCompileError(message, span)


def _first_error(log: str) -> str:
    for line in log.splitlines():
        if _ERROR.search(line):
            return line.strip()
    return next((line.strip() for line in log.splitlines() if line.strip()), "no message")


def _line_of(first: str) -> int | None:
    match = _PLACE.match(first)
    return int(match["line"]) if match and match["file"].endswith(".cu") else None


def _named_span(first: str) -> ir.Span | None:
    """The user's line itself, where ``#line`` directives lead the compiler there."""
    match = _PLACE.match(first)
    if match is None or not match["file"].endswith(".py"):
        return None
    line = int(match["line"])
    return ir.Span(ir.SourceName(match["file"]), line, line, 0, 0)


def _excerpt(source: str, number: int | None) -> str:
    """The lines around the error in the generated text."""
    if number is None:
        return ""
    text = source.splitlines()
    first, last = max(0, number - 1 - _CONTEXT), min(len(text), number + _CONTEXT)
    shown = [
        f"\n  {'>' if at + 1 == number else ' '} {at + 1:4d} | {text[at]}"
        for at in range(first, last)
    ]
    return "".join(shown)


def _span(source: str, number: int | None, lines: Mapping[str, tuple[str, int]]) -> ir.Span | None:
    """The user's line of the kernel around line ``number`` of the source."""
    before = "\n".join(source.splitlines()[:number])
    placed = [(before.rfind(f" {name}("), name) for name in lines]
    if not placed:
        return None
    file, line = lines[max(placed)[1]]
    return ir.Span(ir.SourceName(file), line, line, 0, 0)


def _write_log(source: str, log: str) -> Path | None:
    """Keep the whole log with the source; None where nothing can be written."""
    stem = hashlib.sha256(source.encode()).hexdigest()[:12]
    for folder in (env.tmp_dir(), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"rejected-{stem}.log"
            path.write_text(f"{log}\n\n{source}", encoding="utf-8")
        except OSError:
            continue
        return path
    return None
