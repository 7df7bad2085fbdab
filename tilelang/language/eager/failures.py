"""Exceptions that leave a trace: located at the user's line, with the user's frames only."""

from __future__ import annotations

import functools
import linecache
import os
import re
from collections.abc import Callable
from importlib import import_module
from types import TracebackType
from typing import Any, TypeVar

import tvm
import tvm_ffi
from tvm import ir

from tilelang.errors import (
    TileLangError,
    TraceAttributeError,
    TraceError,
    TraceNameError,
    TraceTypeError,
)
from tilelang.ir.expr import is_buffer
from tilelang.ir.span import frame_span, is_user_file, make_span
from tilelang.language.eager.values import describe

__all__ = ["short_traceback"]

F = TypeVar("F", bound=Callable[..., Any])

_TVM = tuple(
    os.path.dirname(os.path.abspath(module.__file__)) + os.sep for module in (tvm, tvm_ffi)
)
#: A class of the IR in a message of Python, numpy or torch about the type of an argument.
_EXPRESSION = re.compile(
    r"(?:not |type |')(?:Var|TensorLoad|TensorRegion|Call|Cast|Add|Sub|Mul|Div|Mod|"
    r"FloorDiv|FloorMod|Min|Max|Select)\b"
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


_UNTRACED = (
    "this function is called while the kernel is traced but is not rewritten. Decorate it with "
    "T.macro, or use "
)


def _translated(error: Exception, entries: list[TracebackType]) -> TileLangError | None:
    """The mistake behind an exception of Python, TVM or a library; None if it is the user's own."""
    text = str(error).strip()
    first = text.splitlines()[0].removeprefix("Check failed: ") if text else type(error).__name__
    if isinstance(error, RecursionError):
        return TraceError(
            "the functions called here call themselves without end while the kernel is traced; a "
            "macro is written out at each call, so a recursion must end at a compile-time condition"
        )
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
        return _no_name(error, entries[-1])
    if isinstance(error, AttributeError) and isinstance(error.obj, ir.Expr):
        return _no_attribute(error.obj, str(error.name))
    if isinstance(error, TypeError) and _EXPRESSION.search(first):
        return TraceTypeError(
            f"a run-time expression is given to a Python function that needs a number ({first}). "
            "Use the function of T of the same name (T.exp for math.exp); a plain function with "
            "range(...) of an expression becomes a T.macro"
        )
    if not _from_tvm(entries):
        return None
    if "and / or / not" in first:
        return TraceError(
            f"a run-time expression has no truth value outside traced code; {_UNTRACED}"
            "T.if_then_else, T.all, T.any, T.min or T.max"
        )
    return TraceError(f"this cannot be traced: {first}")


def _is_language_name(name: str) -> bool:
    return name in vars(import_module("tilelang.language")) and not name.startswith("_")


def _no_name(error: NameError, entry: TracebackType) -> TraceNameError | None:
    text = f"name '{error.name}' is not defined"
    if _is_language_name(str(error.name)):
        return TraceNameError(f"{text}; did you mean T.{error.name}?")
    line = linecache.getline(entry.tb_frame.f_code.co_filename, entry.tb_lineno)
    if "Tensor" not in line and "empty" not in line:
        return None
    return TraceNameError(
        f"{text}; a size that comes from the tensors is declared first: "
        f'{error.name} = T.const("{error.name}")'
    )


def _no_attribute(owner: ir.Expr, name: str) -> TraceAttributeError:
    what = describe(owner)
    if _is_language_name(name):
        return TraceAttributeError(f"{what} has no attribute '{name}'; did you mean T.{name}(...)?")
    known = "shape and dtype" if is_buffer(owner) else "dtype"
    return TraceAttributeError(f"{what} has no attribute '{name}'; it has {known}")


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
            mistake = _translated(error, entries) if users else None
            if mistake is None:
                raise
            located = mistake.at(_span(users[-1]))
            known = not located.message.startswith("this cannot be traced")
            raise located.with_traceback(_trimmed(users[-8:])) from None if known else error

    return wrapper  # type: ignore[return-value]
