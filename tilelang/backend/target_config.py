"""Small helpers for the normalisers of backends: reading and completing target descriptions."""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm.target import Target

__all__ = ["has_kind", "kind_has_option", "target_option"]


def has_kind(kind: str) -> bool:
    """Whether the installed TVM knows target kind ``kind``."""
    return kind in Target.list_kinds()


def kind_has_option(kind: str, option: str) -> bool:
    """Whether target kind ``kind`` declares ``option``."""
    options = tvm_ffi.get_global_func("target.ListTargetKindOptionsFromName")
    return has_kind(kind) and option in options(kind)


def target_option(target: Target, name: str, default: Any = None) -> Any:
    """Return option ``name`` of ``target``, or ``default`` when it is not set."""
    value = target.attrs.get(name) if target.attrs else None
    return default if value is None else value
