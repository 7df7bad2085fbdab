"""Where in the user's source a node comes from.

The line is found by walking the Python stack up to the nearest frame outside this package, TVM
and the few standard modules that call back into them. Nothing has to be recorded per statement.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType

import tvm
import tvm_ffi
from tvm import ir

__all__ = ["frame_span", "is_user_file", "make_span", "user_frame", "user_span"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_INTERNAL_PREFIXES = tuple(
    os.path.join(os.path.dirname(os.path.abspath(path)), "")
    for path in (os.path.join(_PACKAGE, "x"), tvm.__file__, tvm_ffi.__file__)
)
_STANDARD_LIBRARY = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")
_INSTALLED = ("site-packages", "dist-packages")
_NATIVE = (".cc", ".cpp", ".h", ".pxi", ".pyx")  # frames that tvm_ffi adds to tracebacks
_GENERATED = ("<frozen", "<string>", "<attrs", "<unknown>", "<call of ")
_CACHE_LIMIT = 65536

_internal: dict[str, bool] = {}
_sources: dict[str, ir.SourceName] = {}
_positions: dict[CodeType, list[tuple[int | None, int | None, int | None, int | None]]] = {}
# Code objects of two files can be equal.
_spans: dict[tuple[str, CodeType, int], ir.Span] = {}


def is_user_file(filename: str) -> bool:
    """Whether code of ``filename`` is the user's (not of this package, TVM or Python itself)."""
    internal = _internal.get(filename)
    if internal is None:
        internal = _internal[filename] = _is_internal(filename)
    return not internal


def _is_internal(filename: str) -> bool:
    if filename.startswith(_GENERATED) or filename.endswith(_NATIVE):
        return True
    if filename.startswith(_INTERNAL_PREFIXES):
        return True
    standard = filename.startswith(_STANDARD_LIBRARY)
    return standard and not any(part in filename for part in _INSTALLED)


def make_span(
    filename: str, line: int, column: int = 0, end_line: int | None = None, end_column: int = 0
) -> ir.Span:
    """Build a span. Lines and columns count from 1; column 0 means unknown."""
    source = _sources.get(filename)
    if source is None:
        source = _sources[filename] = ir.SourceName(filename)
    return ir.Span(source, line, line if end_line is None else end_line, column, end_column)


def user_frame(depth: int = 1) -> FrameType | None:
    """The nearest frame of the user's code, starting ``depth`` frames up, or None."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        internal = _internal.get(frame.f_code.co_filename)
        if internal is None:
            internal = not is_user_file(frame.f_code.co_filename)
        if not internal:
            return frame
        frame = frame.f_back
    return None


def user_span() -> ir.Span | None:
    """The span of the user's line being executed, or None if no user code is on the stack."""
    frame = user_frame(2)
    return None if frame is None else frame_span(frame)


def frame_span(frame: FrameType) -> ir.Span:
    """The span of the instruction that ``frame`` executes."""
    code = frame.f_code
    key = (code.co_filename, code, frame.f_lasti)
    span = _spans.get(key)
    if span is None:
        if len(_spans) > _CACHE_LIMIT:
            _spans.clear()
            _positions.clear()
        span = _spans[key] = _build_span(frame)
    return span


def _build_span(frame: FrameType) -> ir.Span:
    code = frame.f_code
    line = frame.f_lineno or code.co_firstlineno
    table = _positions.get(code)
    if table is None:
        if not hasattr(code, "co_positions"):  # Python 3.10
            return make_span(code.co_filename, line)
        table = _positions[code] = list(code.co_positions())
    start, end, column, end_column = table[frame.f_lasti // 2]
    if start is None or column is None or end is None or end_column is None:
        return make_span(code.co_filename, line)
    return make_span(code.co_filename, start, column + 1, end, end_column + 1)
