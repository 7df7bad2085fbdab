"""The package's logger, ``"tilelang"``: what it writes where, and from which level on."""

from __future__ import annotations

import logging
import sys

__all__ = ["install_handler", "set_log_level", "show"]

_LOGGER = logging.getLogger("tilelang")


def show(text: str) -> None:
    """Write a line to stderr, above a progress bar if there is one."""
    # A bar can only be there if tqdm was imported, and only its own writer keeps the bar whole.
    tqdm = sys.modules.get("tqdm")
    if tqdm is not None:
        tqdm.tqdm.write(text, file=sys.stderr)
    else:
        sys.stderr.write(f"{text}\n")


class _Handler(logging.Handler):
    """Writes records with :func:`show`, unless the program has set logging up itself.

    Such a program gets the records through the root logger, and once is enough.
    """

    def emit(self, record: logging.LogRecord) -> None:
        if _LOGGER.propagate and logging.getLogger().handlers:
            return
        try:
            show(self.format(record))
        except Exception:  # noqa: BLE001  (what cannot be logged must not stop the program)
            self.handleError(record)


def install_handler() -> None:
    """Give the logger its handler; once is enough, more do nothing."""
    if any(isinstance(handler, _Handler) for handler in _LOGGER.handlers):
        return
    handler = _Handler()
    handler.setFormatter(logging.Formatter("%(asctime)s [%(name)s:%(levelname)s] %(message)s"))
    _LOGGER.addHandler(handler)


def set_log_level(level: int | str) -> None:
    """Log what is at least as grave as ``level``; by default warnings and errors.

    Parameters
    ----------
    level : int or str
        A number of :mod:`logging`, or one of its names in any case: ``"DEBUG"``, ``"info"``.

    Raises
    ------
    ValueError
        If there is no such level.
    """
    # For a name that it does not know, logging answers with a text.
    number = logging.getLevelName(level.upper()) if isinstance(level, str) else level
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(
            "a log level is DEBUG, INFO, WARNING, ERROR, CRITICAL or a number from 0 on, found "
            f"{level!r}"
        )
    _LOGGER.setLevel(number)
