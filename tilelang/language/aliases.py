"""Deprecated names. Each is its successor with a ``DeprecationWarning``."""

from __future__ import annotations

import warnings
from typing import Any

from tilelang.ir.op.im2col import im2col

__all__ = ["c2d_im2col"]


def c2d_im2col(*args: Any, **kwargs: Any) -> None:
    """Deprecated: use ``T.im2col``."""
    warnings.warn("T.c2d_im2col is deprecated; use T.im2col", DeprecationWarning, stacklevel=2)
    im2col(*args, **kwargs)
