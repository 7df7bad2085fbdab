"""Where the launches of a program stand in the user's source.

Generated code does not depend on it, so it is in no cache key: a kernel from the cache gets the
lines of the program that asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tvm import ir
from tvm import tirx as T
from tvm_ffi import structural_walk

from tilelang.engine.host_plan import DeviceFunction, is_launch, split_launches

__all__ = ["Line", "current_line_table", "launch_lines", "line_table"]

Line = tuple[str, int]


def line_table(devices: Iterable[DeviceFunction]) -> dict[str, Line]:
    """Entry name to file and line of the user's ``T.Kernel``."""
    table = {}
    for device in devices:
        span = device.func.body.span or device.func.span
        if span is not None:
            table[device.name] = _line(span)
    return table


def launch_lines(func: T.PrimFunc) -> tuple[Line, ...]:
    """The lines of the launches of ``func`` in order, each once; of the function without any."""
    lines: dict[Line, None] = {}

    def on_loop(loop: T.For) -> None:
        if loop.span is not None and is_launch(loop):
            lines[_line(loop.span)] = None

    structural_walk(func.body, (T.For, on_loop))
    if not lines and func.span is not None:
        lines[_line(func.span)] = None
    return tuple(lines)


def current_line_table(
    stored: Mapping[str, Sequence[str | int]], func: T.PrimFunc, device_type: str
) -> Mapping[str, Sequence[str | int]]:
    """What ``stored``, made for a program equal to ``func``, is for ``func`` itself."""
    known = {(str(file), int(line)) for file, line in stored.values()}
    if known == set(launch_lines(func)):
        return stored
    return line_table(split_launches(func, device_type)[1])


def _line(span: ir.Span) -> Line:
    return str(span.source_name.name), int(span.line)
