"""Exceptions that leave a trace: located at the user's line, with the user's frames only."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

import tvm
import tvm_ffi

from tilelang.errors import TileLangError, TraceError
from tilelang.ir.span import frame_span, is_user_file, make_span

__all__ = ["short_traceback"]

F = TypeVar("F", bound=Callable[..., Any])

_TVM = tuple(
    os.path.dirname(os.path.abspath(module.__file__)) + os.sep for module in (tvm, tvm_ffi)
)
_NATIVE = (".cc", ".h", ".cpp", ".pxi", ".pyx", "<unknown>")


def _entries(traceback: TracebackType | None) -> list[TracebackType]:
    found = []
    while traceback is not None:
        found.append(traceback)
        traceback = traceback.tb_next
    return found


def _is_user(entry: TracebackType) -> bool:
    return is_user_file(entry.tb_frame.f_code.co_filename)


def _span(entry: TracebackType) -> object:
    frame = entry.tb_frame
    if frame.f_lasti == entry.tb_lasti:
        return frame_span(frame)
    return make_span(frame.f_code.co_filename, entry.tb_lineno)


def _trimmed(entries: list[TracebackType]) -> TracebackType | None:
    chain: TracebackType | None = None
    for entry in reversed(entries):
        chain = TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chain


def _from_tvm(entries: list[TracebackType]) -> bool:
    filename = entries[-1].tb_frame.f_code.co_filename
    return filename.startswith(_TVM) or filename.endswith(_NATIVE)


def _translated(error: Exception) -> TraceError:
    text = str(error).strip()
    first = text.splitlines()[0].removeprefix("Check failed: ") if text else type(error).__name__
    if "and / or / not" in first:
        return TraceError(
            "a run-time expression has no truth value outside traced code; this function is "
            "called while the kernel is traced but is not rewritten. Decorate it with T.macro, "
            "or use T.if_then_else, T.all, T.any, T.min or T.max"
        )
    return TraceError(f"this cannot be traced: {first}")


def short_traceback(entry: F) -> F:
    """Wrap a function that runs user code under trace.

    Errors of the language get the user's line and a traceback of user frames. Errors of TVM become
    :class:`TraceError`. What the user's own code raises passes unchanged.
    """

    @functools.wraps(entry)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return entry(*args, **kwargs)
        except TileLangError as error:
            users = [item for item in _entries(error.__traceback__) if _is_user(item)]
            located = error.at(_span(users[-1])) if users else error
            raise located.with_traceback(_trimmed(users)) from error.__cause__
        except Exception as error:
            entries = _entries(error.__traceback__)
            users = [item for item in entries if _is_user(item)]
            if not users or not _from_tvm(entries):
                raise
            located = _translated(error).at(_span(users[-1]))
            raise located.with_traceback(_trimmed(users)) from error

    return wrapper  # type: ignore[return-value]
