"""The configuration in force while passes run."""

from __future__ import annotations

import contextvars
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import tvm

from tilelang.transform.pass_config import (
    PassConfigKey,
    normalize_pass_configs,
    tvm_pass_configs,
)

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["PassContext", "get_pass_context"]

_current: contextvars.ContextVar[PassContext | None] = contextvars.ContextVar(
    "tilelang_pass_context", default=None
)


class PassContext:
    """Pass configurations for the code inside a ``with`` block.

    TileLang's keys are read by our passes through :func:`get_pass_context`; TVM's keys, the
    optimisation level and instruments go to a ``tvm.transform.PassContext`` that is entered with
    it. Contexts nest; the innermost one counts as a whole, as in TVM. Threads do not share them.

    Parameters
    ----------
    config : mapping, optional
        Checked by :func:`~tilelang.transform.pass_config.normalize_pass_configs`.
    opt_level : int
        TVM's optimisation level.
    instruments : sequence, optional
        TVM pass instruments.

    Examples
    --------
    >>> with PassContext(config={"tl.enable_fast_math": True}) as context:
    ...     context.config["tl.enable_fast_math"]
    True
    """

    def __init__(
        self,
        config: Mapping[str | PassConfigKey, Any] | None = None,
        *,
        opt_level: int = 3,
        instruments: Any = None,
    ) -> None:
        self.config: Mapping[str, Any] = normalize_pass_configs(config)
        self._tvm_context = tvm.transform.PassContext(
            opt_level=opt_level, config=tvm_pass_configs(self.config), instruments=instruments
        )
        self._outer: list[contextvars.Token[PassContext | None]] = []

    @staticmethod
    def current() -> PassContext:
        """The innermost context of this thread; an empty one outside every ``with``."""
        return get_pass_context()

    def __enter__(self) -> Self:
        self._tvm_context.__enter__()
        self._outer.append(_current.set(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _current.reset(self._outer.pop())
        self._tvm_context.__exit__(kind, error, traceback)


def get_pass_context() -> PassContext:
    """The innermost :class:`PassContext` of this thread; an empty one outside every ``with``."""
    found = _current.get()
    return found if found is not None else PassContext()
