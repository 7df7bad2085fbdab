"""Ctrl-C during a compile.

TVM turns an exception raised inside a traversal callback into a ``RuntimeError`` without text,
and a frame above may wrap or drop that. While a compile runs, the exception that a signal handler
raises is therefore remembered and raised again at the end, whatever became of it in between.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["interruptible"]


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C leave the block as ``KeyboardInterrupt``.

    Does nothing outside the main thread, where no signal handler runs, and when SIGINT is ignored
    or handled outside Python.
    """
    handler = None
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        yield
        return
    raised: list[BaseException] = []

    def remember(number: int, frame: FrameType | None) -> None:
        try:
            handler(number, frame)
        except BaseException as error:
            raised.append(error)
            raise

    signal.signal(signal.SIGINT, remember)
    try:
        yield
    except BaseException as error:
        if raised and error is not raised[0]:
            raise raised[0] from None
        raise
    else:
        if raised:
            raise raised[0]
    finally:
        # Nested blocks and a handler set meanwhile by user code must survive.
        if signal.getsignal(signal.SIGINT) is remember:
            signal.signal(signal.SIGINT, handler)
